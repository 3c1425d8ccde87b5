"""A job: one operation on many schedules, done item by item, and what became of it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hourbell.domain.definition import schedule_id_from
from hourbell.domain.errors import Finding
from hourbell.domain.replanning import Shift
from hourbell.domain.work import DeadLetter

CHUNK: Final = 25
"""Items that are done between two writes of a job's progress, at most."""

_ID: Final = re.compile("job[0-9a-hjkmnp-tv-z]{26}", re.ASCII)
_PLACE: Final = re.compile(r"[0-9]{8}T[0-9]{12}Z\.job[0-9a-hjkmnp-tv-z]{26}", re.ASCII)


class Operation(StrEnum):
    """What a job does to each of its items."""

    CREATE = "create"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    REPLAN = "replan"
    REPLAY = "replay"

    @property
    def is_platforms(self) -> bool:
        """Whether the platform starts it, for a tenant that may only read it."""
        return self is Operation.REPLAN


class JobState(StrEnum):
    """Where a job stands. PENDING: stored, and no worker has begun with it."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class Outcome(StrEnum):
    """What became of an item, or would have become of it without a dry run."""

    CREATED = "CREATED"
    CHANGED = "CHANGED"
    UNCHANGED = "UNCHANGED"
    REFUSED = "REFUSED"
    WOULD_CREATE = "WOULD_CREATE"
    WOULD_CHANGE = "WOULD_CHANGE"
    WOULD_NOT_CHANGE = "WOULD_NOT_CHANGE"
    WOULD_REFUSE = "WOULD_REFUSE"

    @property
    def is_change(self) -> bool:
        """Whether the item is created or changed by it, or would be."""
        return self in _CHANGES

    @property
    def is_refusal(self) -> bool:
        """Whether the item is refused, or would be."""
        return self in {Outcome.REFUSED, Outcome.WOULD_REFUSE}


_CHANGES: Final = frozenset(
    {Outcome.CREATED, Outcome.CHANGED, Outcome.WOULD_CREATE, Outcome.WOULD_CHANGE}
)


@dataclass(frozen=True, slots=True)
class Target:
    """A schedule whose state is to change; its name where it is known.

    Attributes:
        letter: of a replay, what says that an occurrence of the schedule is DEAD.
    """

    schedule_id: str
    name: str | None = None
    letter: DeadLetter | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an item was not done, as the route for one schedule would have said.

    Attributes:
        status: of HTTP.
        members: what else a program may want to know, JSON-ready.
    """

    status: int
    code: str
    message: str
    findings: tuple[Finding, ...] = ()
    members: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one item.

    Attributes:
        index: 0 for the first item of the job.
        schedule_id: None when there is none: a create that was refused.
        refusal: only when it was refused.
        shifts: of a replan, the first times that move.
        occurrence_id: of a replay, which occurrence.
        available_at: of an occurrence that is replayed, when it may be received.
    """

    index: int
    outcome: Outcome
    schedule_id: str | None = None
    name: str | None = None
    refusal: Refusal | None = None
    shifts: tuple[Shift, ...] = ()
    occurrence_id: str | None = None
    available_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Creator:
    """On whose behalf a job acts.

    Attributes:
        principal: normalized; it must still be the tenant's when an item is done.
        arn: as IAM reported it.
        source: where the request came from.
    """

    principal: str
    arn: str
    source: str


@dataclass(frozen=True, slots=True)
class Letters:
    """Which dead letters of a tenant a job replays, and how fast.

    Attributes:
        schedule_id: of which schedule; None for all of the tenant's.
        since: the first instant of death that counts; None for any.
        until: the first one that no longer does: never after the job was made, so
            that what dies by a replay is not replayed again.
        per_minute: how many may become receivable in a minute.
    """

    schedule_id: str | None
    since: datetime | None
    until: datetime
    per_minute: int


@dataclass(frozen=True, slots=True)
class Walk:
    """How far the tenant's schedules, or those with some tags, were gone through.

    Or, of a replay, its dead letters.

    Attributes:
        tags: which all of them have; none for all of the tenant's.
        after: where the listing goes on; None at its beginning.
        finished: whether it was gone through to its end.
        rest: what the last page had and is not done yet.
        letters: which dead letters; None for schedules.
        next_at: of a replay, when the next occurrence may be received at the earliest.
    """

    tags: Mapping[str, str]
    after: str | None = None
    finished: bool = False
    rest: tuple[Target, ...] = ()
    letters: Letters | None = None
    next_at: datetime | None = None

    def paced(self, results: Sequence[Result]) -> "Walk":
        """Return it after these results: the next occurrence keeps its distance."""
        if self.letters is None:
            return self
        taken = [each.available_at for each in results if each.available_at is not None]
        if not taken:
            return self
        apart = timedelta(minutes=1) / self.letters.per_minute
        return replace(self, next_at=max(taken) + apart)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many items there are and what became of those that are done.

    Attributes:
        total: None while that is not known.
        changed: created or changed.
    """

    total: int | None = None
    changed: int = 0
    unchanged: int = 0
    refused: int = 0

    @property
    def done(self) -> int:
        """How many items have a result: also the index of the next one."""
        return self.changed + self.unchanged + self.refused

    def with_results(self, results: Sequence[Result]) -> "Progress":
        """Return the progress after these results."""
        changed = sum(each.outcome.is_change for each in results)
        refused = sum(each.outcome.is_refusal for each in results)
        return Progress(
            self.total,
            self.changed + changed,
            self.unchanged + len(results) - changed - refused,
            self.refused + refused,
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One operation on many schedules.

    Attributes:
        body_hash: SHA-256 of the request; equal for equal requests.
        reason: for the version log of each schedule.
        failure: code of what made it FAILED.
        walk: for items that are found by their tags; None when they are listed.
        step: grows with every write of progress, so that of two workers one loses.
    """

    job_id: str
    tenant_id: str
    operation: Operation
    dry_run: bool
    creator: Creator
    body_hash: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    reason: str | None = None
    state: JobState = JobState.PENDING
    finished_at: datetime | None = None
    failure: str | None = None
    progress: Progress = Progress()
    walk: Walk | None = None
    step: int = 0

    @property
    def is_open(self) -> bool:
        """Whether there is still work to do for it, and nobody stopped it."""
        return self.state in {JobState.PENDING, JobState.RUNNING}

    @property
    def place(self) -> str:
        """Where it stands among the tenant's jobs: later ones sort after it."""
        return f"{self.created_at:%Y%m%dT%H%M%S%f}Z.{self.job_id}"

    @property
    def source(self) -> str:
        """Where its changes come from, for the version log."""
        return f"job {self.job_id}"

    def key_of(self, index: int) -> str:
        """Return the idempotency key of one of its creates.

        The blanks keep it apart from the keys of callers, which have none.
        """
        return f"job {self.job_id} {index}"


def derived_job_id(tenant_id: str, key: str) -> str:
    """Return the id of the job that a request with this key makes."""
    digest = hashlib.sha256(f"{tenant_id}\njob\n{key}".encode()).digest()
    return "job" + schedule_id_from(digest).removeprefix("sch")


def is_job_id(text: str) -> bool:
    """Whether a text has the form of a job's id."""
    return _ID.fullmatch(text) is not None


def is_job_place(text: str) -> bool:
    """Whether a text has the form of a job's place among others."""
    return _PLACE.fullmatch(text) is not None
