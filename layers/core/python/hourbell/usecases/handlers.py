"""Register handlers: what a tenant's consumers do, and which queue it goes to."""

import fnmatch
import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import Handler, HandlerState, Routing, Tenant
from hourbell.domain.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Transient,
)
from hourbell.domain.instants import format_instant
from hourbell.domain.names import is_handler_name
from hourbell.domain.queue_arn import QueueArn
from hourbell.usecases.expected import ANY, Expected
from hourbell.usecases.identify import account_of
from hourbell.usecases.kept import Kept
from hourbell.usecases.paging import page_after
from hourbell.usecases.ports import Directory, Ids, Probe, QueueProbe, Write

TEST_EVENT_TYPE: Final = "com.hourbell.handler.test.v1"

_ROUNDS = 3

_REFUSALS = {
    Probe.NOT_FOUND: "There is no such queue, or it does not show itself to us.",
    Probe.ACCESS_DENIED: "The queue, or the key that encrypts it, denies us access.",
    Probe.REFUSED: "The queue refused the test message.",
}


@dataclass(frozen=True, slots=True)
class QueueOffer:
    """Which queues besides the shared ones this deployment can send to.

    Attributes:
        own: ARN that all of the deployment's queues begin with, up to its prefix:
            `arn:aws:sqs:<region>:<account>:<prefix>`; None when it has none to offer.
        dedicated: the tenants that have lane queues of their own.
        external: patterns (`*`, `?`) of ARNs that the deployment may send to.
    """

    own: QueueArn | None = None
    dedicated: AbstractSet[str] = frozenset()
    external: tuple[str, ...] = ()

    def dedicated_base(self, tenant_id: str) -> str | None:
        """Return the ARN of a tenant's own queues without `-<lane>`, if it has any."""
        if self.own is None or tenant_id not in self.dedicated:
            return None
        return f"{self.own}-tenant-{tenant_id}"

    def is_own(self, arn: QueueArn) -> bool:
        """Whether a queue is one of the deployment's."""
        own = self.own
        if own is None:
            return False
        same_place = (arn.region, arn.account) == (own.region, own.account)
        return same_place and arn.name.startswith(f"{own.name}-")

    def reaches(self, arn: QueueArn) -> bool:
        """Whether the deployment may send to a queue of somebody else's."""
        return any(fnmatch.fnmatchcase(str(arn), each) for each in self.external)


@dataclass(frozen=True, slots=True)
class Switchboard:
    """What registering handlers needs."""

    directory: Directory
    probe: QueueProbe
    ids: Ids
    offer: QueueOffer = QueueOffer()


@dataclass(frozen=True, slots=True)
class HandlerChange:
    """What a change names; None, or KEPT, leaves a field as it is.

    Attributes:
        queue_arn: of an external queue; None is none.
        dead_letter_queue_arn: of an external dead-letter queue; None is none.
        dispatch_rate: messages a second; None is any.
    """

    routing: Routing | None = None
    state: HandlerState | None = None
    queue_arn: str | Kept | None = Kept.KEPT
    dispatch_rate: int | Kept | None = Kept.KEPT
    description: str | None = None
    dead_letter_queue_arn: str | Kept | None = Kept.KEPT

    def applied_to(self, handler: Handler) -> Handler:
        """Return the handler after the change, its revision as it was.

        A change away from EXTERNAL forgets the queues.
        """
        routing = self.routing or handler.routing
        is_same = routing is handler.routing
        queue_arn, letters_arn = self.queue_arn, self.dead_letter_queue_arn
        if isinstance(queue_arn, Kept):
            queue_arn = handler.queue_arn if is_same else None
        if isinstance(letters_arn, Kept):
            letters_arn = handler.dead_letter_queue_arn if is_same else None
        rate = self.dispatch_rate
        return replace(
            handler,
            routing=routing,
            state=self.state or handler.state,
            queue_arn=queue_arn,
            dead_letter_queue_arn=letters_arn,
            dispatch_rate=handler.dispatch_rate if isinstance(rate, Kept) else rate,
            description=(
                handler.description if self.description is None else self.description
            ),
        )


@dataclass(frozen=True, slots=True)
class HandlerPage:
    """Handlers in order of name; `after` is where the next page begins, if any."""

    handlers: tuple[Handler, ...]
    after: str | None


def register_handler(
    board: Switchboard, tenant: Tenant, wanted: Handler, now: datetime
) -> Handler:
    """Store a handler after its queue was found to be there.

    Args:
        board: the ports.
        tenant: whose it is.
        wanted: the handler; `queue_arn` only if it is EXTERNAL.
        now: the current instant, for the test message.

    Returns:
        the handler as it is stored.

    Raises:
        InvalidInput: the queue is missing, not allowed or not writable.
        Conflict: the name is taken (`handler_exists`), or the deployment has no such
            queue (`not_provisioned`).
        Transient: a store or the queue did not answer.
    """
    if board.directory.handler(tenant.tenant_id, wanted.name) is not None:
        raise _handler_exists()
    handler = _connected(board, tenant, wanted, now)
    if board.directory.register_handler(handler) is not Write.APPLIED:
        raise _handler_exists()
    return handler


def get_handler(directory: Directory, tenant: Tenant, name: str) -> Handler:
    """Return one of the tenant's handlers.

    Raises:
        NotFound: the tenant has none of this name.
    """
    found = None
    if is_handler_name(name):
        found = directory.handler(tenant.tenant_id, name)
    if found is None:
        raise NotFound("There is no handler of this name.")
    return found


def list_handlers(
    directory: Directory, tenant: Tenant, *, after: str | None, limit: int
) -> HandlerPage:
    """Return a page of the tenant's handlers, retired ones too, in order of name.

    Args:
        directory: the port.
        tenant: whose.
        after: where an earlier page ended; None for the first.
        limit: the most that a page holds.

    Raises:
        InvalidInput: no page ended there (`invalid_cursor`).
    """
    page = page_after(
        after,
        limit,
        lambda most: directory.handlers(tenant.tenant_id, after=after, limit=most),
        place_of=lambda handler: handler.name,
        is_place=is_handler_name,
    )
    return HandlerPage(*page)


def change_handler(
    board: Switchboard,
    tenant: Tenant,
    name: str,
    change: HandlerChange,
    now: datetime,
    *,
    expected: Expected = ANY,
) -> Handler:
    """Change what the change names, and count the revision up if anything differs.

    Messages that are scheduled already go to the queue that they were scheduled for.

    Args:
        board: the ports.
        tenant: whose it is.
        name: which one.
        change: what shall be different.
        now: the current instant, for the test message to another queue.
        expected: which revisions it was made for.

    Raises:
        InvalidInput: the queue is missing, not allowed or not writable.
        Conflict: the deployment has no such queue (`not_provisioned`).
        NotFound: the tenant has none of this name.
        PreconditionFailed: the stored revision is none of those.
        Transient: others kept changing it, or a store did not answer.
    """
    for _ in range(_ROUNDS):
        stored = get_handler(board.directory, tenant, name)
        expected.check(stored.revision)
        changed = change.applied_to(stored)
        if _route(changed) != _route(stored):
            changed = _connected(board, tenant, _as_named(changed, stored), now)
        if changed == stored:
            return stored
        changed = replace(changed, revision=stored.revision + 1)
        answer = board.directory.change_handler(changed, revision=stored.revision)
        if answer is Write.APPLIED:
            return changed
    raise Transient(f"handler {name} is being changed by others")


def retire_handler(
    board: Switchboard,
    tenant: Tenant,
    name: str,
    now: datetime,
    *,
    expected: Expected = ANY,
) -> Handler:
    """Let no new schedule name a handler; those that do go on. Again is no error.

    Raises:
        NotFound: the tenant has none of this name.
        PreconditionFailed: the stored revision is none of those.
        Transient: others kept changing it.
    """
    change = HandlerChange(state=HandlerState.RETIRED)
    return change_handler(board, tenant, name, change, now, expected=expected)


def _route(handler: Handler) -> tuple[Routing, str | None, str | None]:
    return handler.routing, handler.queue_arn, handler.dead_letter_queue_arn


def _as_named(changed: Handler, stored: Handler) -> Handler:
    """Return a handler without the queues of its tenant's, which nobody named."""
    own = Routing.DEDICATED
    is_kept = changed.routing is own and changed.queue_arn == stored.queue_arn
    return replace(changed, queue_arn=None) if is_kept else changed


def _connected(
    board: Switchboard, tenant: Tenant, handler: Handler, now: datetime
) -> Handler:
    """Return the handler with the queues that it is to have, which were found to work.

    A change of one of an external handler's queues tries both: rights are not ours.
    """
    named = {
        field: text
        for field, text in (
            ("queue_arn", handler.queue_arn),
            ("dead_letter_queue_arn", handler.dead_letter_queue_arn),
        )
        if text is not None
    }
    if handler.routing is Routing.EXTERNAL:
        if handler.queue_arn is None:
            message = f"{Routing.EXTERNAL} routing needs the queue's ARN."
            raise InvalidInput.of("queue_arn", "missing", message)
        for field, text in named.items():
            _check_external(board, tenant, handler, field, text, now)
        return handler
    for field, text in named.items():
        message = f"A queue is named for {Routing.EXTERNAL} routing only."
        raise InvalidInput.of(field, "unexpected", message, found=text)
    if handler.routing is Routing.SHARED:
        return handler
    base = board.offer.dedicated_base(tenant.tenant_id)
    if base is None:
        raise Conflict(
            "No queues of its own are provisioned for this tenant.",
            code="not_provisioned",
        )
    return replace(handler, queue_arn=base)


def _check_external(
    board: Switchboard,
    tenant: Tenant,
    handler: Handler,
    field: str,
    text: str,
    now: datetime,
) -> None:
    """Send a test message to a queue, if it may be this tenant's at all."""
    arn = QueueArn.parse(text, field=field)
    if not board.offer.external:
        raise Conflict(
            "This deployment sends to no queues but its own.", code="not_provisioned"
        )
    principals = board.directory.principals_of(tenant.tenant_id)
    accounts = {account_of(each) for each in principals}
    if board.offer.is_own(arn) or arn.account not in accounts:
        # Else a tenant could have us write where we may and it may not.
        message = (
            "Allowed is a queue of the tenant's: in the account of one of its "
            "principals, and none of Hourbell's own."
        )
        raise InvalidInput.of(field, "foreign_queue", message, found=text)
    if not board.offer.reaches(arn):
        raise Conflict(
            "This deployment is not set up to send to that queue.",
            code="not_provisioned",
        )
    body = _test_message(handler, board.ids.token(), now)
    refusal = _REFUSALS.get(board.probe.verify(text, body))
    if refusal is not None:
        raise InvalidInput.of(field, "queue_not_writable", refusal, found=text)


def _test_message(handler: Handler, token: str, now: datetime) -> str:
    """Return a CloudEvent by which a consumer can tell a test from work."""
    event = {
        "specversion": "1.0",
        "type": TEST_EVENT_TYPE,
        "source": f"/hourbell/handlers/{handler.name}",
        "id": token,
        "time": format_instant(now),
        "subject": handler.name,
        "datacontenttype": "application/json",
        "data": {"handler": handler.name, "tenant": handler.tenant_id},
    }
    return json.dumps(event, separators=(",", ":"))


def _handler_exists() -> Conflict:
    return Conflict(
        "The tenant has a handler of this name, perhaps a retired one.",
        code="handler_exists",
    )
