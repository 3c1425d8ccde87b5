"""Start the replay of a tenant's dead letters, and list them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import format_instant
from hourbell.domain.job import Letters, Operation, derived_job_id
from hourbell.domain.work import DeadLetter
from hourbell.usecases.identify import Caller
from hourbell.usecases.jobs import Accepted, NewJob, Office, start_job
from hourbell.usecases.work_ports import Ledger


@dataclass(frozen=True, slots=True)
class WantedLetters:
    """Which dead letters, valid in its form.

    Attributes:
        schedule_id: of which schedule; None for all of the tenant's.
        since: the first instant of death that counts; None for any.
        until: the first one that no longer does; None for any.
    """

    schedule_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def check(self) -> None:
        """Check that there is an instant that counts.

        Raises:
            InvalidInput: `reversed_range`.
        """
        since, until = self.since, self.until
        if since is not None and until is not None and since >= until:
            message = "Allowed is an instant after since."
            found = format_instant(until)
            raise InvalidInput.of("until", "reversed_range", message, found=found)


def list_letters(
    ledger: Ledger,
    tenant_id: str,
    wanted: WantedLetters,
    *,
    after: str | None,
    limit: int,
) -> tuple[Sequence[DeadLetter], str | None]:
    """Return a page of a tenant's dead letters, and what leads to the next one.

    A page may be short, or even empty, although there is more.

    Raises:
        InvalidInput: `reversed_range`; or no page ended at `after` (`invalid_cursor`).
        Transient: the store did not answer.
    """
    wanted.check()
    return ledger.letters(
        tenant_id,
        schedule_id=wanted.schedule_id,
        after=after,
        limit=limit,
        since=wanted.since,
        until=wanted.until,
    )


def start_replay(
    office: Office,
    caller: Caller,
    wanted: WantedLetters,
    per_minute: int | None,
    key: str,
    now: datetime,
    *,
    dry_run: bool,
) -> Accepted:
    """Store a job that replays dead letters at a pace, and hand it over.

    Args:
        office: the ports.
        caller: whose letters, and on whose behalf.
        wanted: which of them.
        per_minute: how many may become receivable in a minute; None for the tenant's
            catch-up rate.
        key: names the request, so that repeating it makes one job.
        now: the current instant; what dies later is not replayed.
        dry_run: whether to tell only what would become of them.

    Raises:
        InvalidInput: `reversed_range`; or the pace is over the tenant's rate.
        Conflict: the key was used for another request (`idempotency_key_reused`).
        Transient: as `start_job`.
    """
    wanted.check()
    most = caller.tenant.quotas.catch_up_per_minute
    is_paced = per_minute is None or 1 <= per_minute <= most
    # Judged today, a repeated request may be wrong that once was right.
    if not is_paced and not _was_made(office, caller, key):
        message = f"Allowed is 1 to {most}, the tenant's catch-up rate."
        raise InvalidInput.of("per_minute", "out_of_range", message, found=per_minute)
    until = now if wanted.until is None else min(wanted.until, now)
    letters = Letters(wanted.schedule_id, wanted.since, until, per_minute or most)
    return start_job(
        office,
        caller,
        NewJob(
            operation=Operation.REPLAY,
            key=key,
            body_hash=_hash(wanted, per_minute, dry_run=dry_run),
            dry_run=dry_run,
            letters=letters,
        ),
        now,
    )


def _was_made(office: Office, caller: Caller, key: str) -> bool:
    job_id = derived_job_id(caller.tenant.tenant_id, key)
    return office.jobs.find(job_id) is not None


def _hash(wanted: WantedLetters, per_minute: int | None, *, dry_run: bool) -> str:
    members = {
        "operation": Operation.REPLAY,
        "dry_run": dry_run,
        "schedule_id": wanted.schedule_id,
        "since": wanted.since and format_instant(wanted.since),
        "until": wanted.until and format_instant(wanted.until),
        "per_minute": per_minute,
    }
    text = json.dumps(members, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
