"""What workers ask of the worker plane, and what it answers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.retry import Failure
from hourbell.domain.work import Attempt

MAX_ITEMS: Final = 10
"""How many occurrences one call names at most: one receive of SQS."""

MIN_LEASE_SECONDS: Final = 10
MAX_LEASE_SECONDS: Final = 43_200
USUAL_LEASE_SECONDS: Final = 60


class Answer(StrEnum):
    """What a worker is to do with the message.

    RUN: work, then complete or fail, and delete it. SKIP, BUSY, WAIT: delete it.
    ERROR, and SKIP for EXPIRED without a state: leave it; the queue brings it again.
    """

    RUN = "RUN"
    SKIP = "SKIP"
    BUSY = "BUSY"
    WAIT = "WAIT"
    ERROR = "ERROR"


class SkipReason(StrEnum):
    """Why there is nothing to do.

    EXPIRED: its deadline has passed, or it was missed; or the row is gone, never was,
    or is another tenant's. A row is kept for longer than SQS keeps its messages.
    """

    CANCELED = "CANCELED"
    SUPERSEDED = "SUPERSEDED"
    SKIPPED_OVERLAP = "SKIPPED_OVERLAP"
    ALREADY_DONE = "ALREADY_DONE"
    EXPIRED = "EXPIRED"


class WaitReason(StrEnum):
    """Why an occurrence comes again later."""

    TOO_EARLY = "TOO_EARLY"
    OVERLAP = "OVERLAP"
    CONCURRENCY = "CONCURRENCY"
    # Its schedule is being changed.
    HANDOVER = "HANDOVER"


class ClaimFault(StrEnum):
    """Why a claim has no answer. NOT_TRACKED: there is nothing to claim.

    UNAVAILABLE: the store did not answer in time, or what it has cannot be read.
    """

    NOT_TRACKED = "not_tracked"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class ClaimOrder:
    """An occurrence that a worker has a message of.

    Attributes:
        lease_token: 16 to 64 characters that the worker drew at random, so that it
            may repeat a claim whose answer was lost; None to be given one.
        send: which send of the occurrence brought the message; None when unknown.
    """

    occurrence_id: str
    lease_token: str | None = None
    send: int | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of a claim.

    Attributes:
        reason: of SKIP and WAIT, a SkipReason or WaitReason; of ERROR a ClaimFault.
        lease_token: of RUN: what heartbeat, complete and fail must show.
        lease_expires_at: of RUN: when another worker may take over, unless extended.
        attempt: of RUN: the number of the attempt since the last replay, from 1.
        state: of RUN None; else the row's state, if there is a row.
    """

    occurrence_id: str
    answer: Answer
    reason: str | None = None
    lease_token: str | None = None
    lease_expires_at: datetime | None = None
    attempt: int | None = None
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """An occurrence that a worker says it has."""

    occurrence_id: str
    lease_token: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that a worker says has failed."""

    occurrence_id: str
    lease_token: str
    failure: Failure


class Outcome(StrEnum):
    """What became of what a worker said.

    LEASE_LOST: the token is not that of the current attempt, or the attempt is over in
    another way. NOT_FOUND: no such occurrence, or another tenant's. UNAVAILABLE: the
    store did not answer in time, or what it has cannot be read; say it again.
    """

    OK = "OK"
    LEASE_LOST = "LEASE_LOST"
    NOT_FOUND = "NOT_FOUND"
    UNAVAILABLE = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat.

    Attributes:
        lease_expires_at: of OK, the new one; never earlier than before.
        cancel_requested: whether the worker should stop: the occurrence, or its whole
            schedule, was canceled. It fails then, and is not worked on again.
    """

    occurrence_id: str
    outcome: Outcome
    lease_expires_at: datetime | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer to a complete or a fail.

    Attributes:
        state: of OK, what the occurrence is in now; after a fail RETRY_WAIT, DEAD or
            CANCELED.
        available_at: of RETRY_WAIT, when it comes again.
        reason: of DEAD and CANCELED, why.
    """

    occurrence_id: str
    outcome: Outcome
    state: State | None = None
    available_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """An occurrence with its attempts.

    Attributes:
        earlier: its attempts that another one follows, or shall follow, the oldest
            first. The last one stands on the row as well while it is waited for.
    """

    row: Occurrence
    earlier: tuple[Attempt, ...]
