"""Judge whether a tenant may have a definition: its handler and the tenant's quotas."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Final

from hourbell.domain.definition import Definition, HandlerState, Tenant, Tracking
from hourbell.domain.errors import Finding
from hourbell.domain.packing import encoded_size
from hourbell.domain.retry import Retry
from hourbell.domain.schedule import Timing, anchored, upcoming
from hourbell.usecases.ports import Directory

EXAMINED: Final = 1_000
"""How many of a timing's next times the least distance is looked for in."""

# No expression has two times closer than that.
_LEAST_SECONDS: Final = 60


def admission_findings(
    directory: Directory,
    tenant: Tenant,
    definition: Definition,
    now: datetime,
    *,
    before: Definition | None = None,
) -> tuple[Finding, ...]:
    """Return why a tenant may not have a definition; empty when it may.

    Args:
        directory: where handlers are registered.
        tenant: whose schedule it is.
        definition: what is wanted; its timing is valid.
        now: the current instant.
        before: the definition in force; what it has already is not judged again.
    """
    findings: list[Finding] = []
    if before is None or before.handler != definition.handler:
        findings += handler_findings(directory, tenant, definition.handler)
    if before is None or before.payload_json != definition.payload_json:
        findings += _payload_findings(tenant, definition.payload_json)
    if _retries(before) != _retries(definition):
        findings += _retry_findings(tenant, definition)
    if before is None or before.timing != definition.timing:
        findings += _interval_findings(tenant, definition.timing, now)
    return tuple(findings)


def handler_findings(
    directory: Directory, tenant: Tenant, name: str
) -> Iterator[Finding]:
    """Yield why schedules may not name a handler."""
    handler = directory.handler(tenant.tenant_id, name)
    if handler is None:
        message = f"No handler {name!r} is registered on this tenant."
        yield Finding("handler", "unknown_handler", message, name)
    elif handler.state is HandlerState.RETIRED:
        message = f"The handler {name!r} is retired: it serves what names it already."
        yield Finding("handler", "handler_retired", message, name)


def _payload_findings(tenant: Tenant, payload_json: str) -> Iterator[Finding]:
    allowed, found = tenant.quotas.payload_bytes, encoded_size(payload_json)
    if found > allowed:
        message = f"The tenant's quota is {allowed} bytes as JSON; found {found}."
        yield Finding("payload", "payload_too_large", message, str(found))


def _retries(definition: Definition | None) -> Retry | None:
    """Return the policy that retries go by; None where there are none."""
    tracked = definition is not None and definition.tracking is Tracking.TRACKED
    return definition.retry if definition is not None and tracked else None


def _retry_findings(tenant: Tenant, definition: Definition) -> Iterator[Finding]:
    retry, quotas = _retries(definition), tenant.quotas
    if retry is None:
        return
    code = "retry_over_quota"
    if retry.max_attempts > quotas.retry_attempts:
        allowed, found = quotas.retry_attempts, retry.max_attempts
        message = f"The tenant's quota is {allowed} attempts; found {found}."
        yield Finding("retry.max_attempts", code, message, str(found), str(allowed))
    longest, deadline = quotas.retry_deadline_seconds, retry.deadline_seconds
    if longest is not None and (deadline is None or deadline > longest):
        shown = "null" if deadline is None else str(deadline)
        message = f"The tenant's quota is a deadline of {longest} s; found {shown}."
        yield Finding("retry.deadline_seconds", code, message, shown, str(longest))


def _interval_findings(
    tenant: Tenant, timing: Timing, now: datetime
) -> Iterator[Finding]:
    allowed = timedelta(seconds=tenant.quotas.min_interval_seconds)
    if allowed <= timedelta(seconds=_LEAST_SECONDS):
        return
    times = islice(upcoming(anchored(timing, now), now), EXAMINED)
    for earlier, later in pairwise(times):
        if later - earlier < allowed:
            message = (
                f"The tenant's quota is {allowed.total_seconds():.0f} s between two "
                f"times; {earlier:%Y-%m-%dT%H:%M:%SZ} and {later:%Y-%m-%dT%H:%M:%SZ} "
                f"lie {(later - earlier).total_seconds():.0f} s apart."
            )
            expression = timing.expression
            yield Finding("expression", "interval_too_short", message, expression)
            return
