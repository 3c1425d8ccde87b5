"""What happens to a batch of stream records after the function was called.

Pure rules of a Lambda stream mapping: partial failures, bisection, retries, age.
Within one batch the order of records is kept: a later part is tried only when the
earlier parts are settled.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

RETENTION_SECONDS = 86_400.0
UNLIMITED = -1
FIRST_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5.0

EXHAUSTED = "RetryAttemptsExhausted"
EXPIRED = "RecordAgeExceeded"


@dataclass(frozen=True, slots=True)
class Record:
    """One stream record.

    Attributes:
        sequence: its sequence number in the shard.
        created_at: seconds since the epoch.
        payload: the record as the function gets it, in JSON.
    """

    sequence: str
    created_at: float
    payload: bytes = b"{}"


@dataclass(frozen=True, slots=True)
class Rules:
    """How a mapping treats failures; -1 means without limit, as in CloudFormation.

    Attributes:
        max_age_seconds: records older than this are given up; at most a day, which
            is as long as a stream keeps them.
    """

    bisect: bool = False
    report_item_failures: bool = False
    max_retries: int = UNLIMITED
    max_age_seconds: float = UNLIMITED

    @property
    def age_limit_seconds(self) -> float:
        """Return the age at which a record is given up."""
        if self.max_age_seconds == UNLIMITED:
            return RETENTION_SECONDS
        return min(self.max_age_seconds, RETENTION_SECONDS)


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that go to the function together.

    Attributes:
        failures: how many calls with these records have failed.
    """

    records: tuple[Record, ...]
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The function processed every record."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The function failed, or its answer counts as a failure."""

    reason: str


@dataclass(frozen=True, slots=True)
class FailedFrom:
    """The function processed the records before this position."""

    position: int


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The function was not run (throttled, engine away): not one of the attempts."""

    reason: str


Outcome = Succeeded | Failed | FailedFrom | Unavailable


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from an outcome.

    Attributes:
        done: records that were processed.
        given_up: records that go to the on-failure destination.
        condition: why they were given up.
        calls: how often the function was called with them.
        rest: what is left to do, in this order.
        backoff_seconds: how long to wait before it.
    """

    done: tuple[Record, ...] = ()
    given_up: tuple[Record, ...] = ()
    condition: str = ""
    calls: int = 0
    rest: tuple[Batch, ...] = ()
    backoff_seconds: float = 0.0


def read_answer(answer: Any, batch: Batch, rules: Rules) -> Outcome:
    """Return what the function's answer says about the batch.

    Only the lowest reported sequence number counts. An identifier that is missing
    or not of this batch makes the whole batch fail, as on AWS.
    """
    if not rules.report_item_failures or not isinstance(answer, Mapping):
        return Succeeded()
    reported = answer.get("batchItemFailures")
    if not reported:
        return Succeeded()
    positions = {record.sequence: at for at, record in enumerate(batch.records)}
    failed = [_identifier(entry) for entry in reported]
    unknown = [name for name in failed if name not in positions]
    if unknown:
        return Failed(f"unknown item identifier {unknown[0]!r}")
    return FailedFrom(min(positions[name] for name in failed))


def expire(batch: Batch, rules: Rules, now: float) -> Step:
    """Give up the records that are too old; the rest stays to be done."""
    fresh = tuple(
        record
        for record in batch.records
        if now - record.created_at <= rules.age_limit_seconds
    )
    if len(fresh) == len(batch.records):
        return Step(rest=(batch,))
    kept = set(map(id, fresh))
    old = tuple(record for record in batch.records if id(record) not in kept)
    rest = (replace(batch, records=fresh),) if fresh else ()
    return Step(given_up=old, condition=EXPIRED, calls=batch.failures, rest=rest)


def settle(batch: Batch, outcome: Outcome, rules: Rules) -> Step:
    """Return what follows from the outcome of one call."""
    match outcome:
        case Succeeded():
            return Step(done=batch.records)
        case Unavailable():
            return Step(rest=(batch,), backoff_seconds=MAX_BACKOFF_SECONDS / 10)
        case FailedFrom(position) if position > 0:
            # Progress: the shorter rest starts its count anew, and it cannot go on
            # for ever since it shrinks each time.
            left = Batch(batch.records[position:])
            return Step(
                done=batch.records[:position],
                rest=(left,),
                backoff_seconds=FIRST_BACKOFF_SECONDS,
            )
        case _:
            return _retry(batch, rules)


def _retry(batch: Batch, rules: Rules) -> Step:
    if rules.bisect and len(batch.records) > 1:
        # Splitting is not one of the attempts: a poison record is alone after a few.
        middle = (len(batch.records) + 1) // 2
        halves = (batch.records[:middle], batch.records[middle:])
        return Step(
            rest=tuple(Batch(half, batch.failures) for half in halves),
            backoff_seconds=FIRST_BACKOFF_SECONDS,
        )
    failures = batch.failures + 1
    if rules.max_retries != UNLIMITED and failures > rules.max_retries:
        return Step(given_up=batch.records, condition=EXHAUSTED, calls=failures)
    wait = FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10)
    return Step(
        rest=(replace(batch, failures=failures),),
        backoff_seconds=min(wait, MAX_BACKOFF_SECONDS),
    )


def _identifier(entry: Any) -> str:
    name = entry.get("itemIdentifier") if isinstance(entry, Mapping) else None
    return str(name or "")


class Progress:
    """Which records of a shard are settled, so that a restart skips none.

    The checkpoint is the last record before the first unsettled one: records after
    it may be delivered twice after a crash, none is lost.
    """

    def __init__(self, checkpoint: str | None = None) -> None:
        self.checkpoint = checkpoint
        # Sequence -> settled, in shard order.
        self._open: OrderedDict[str, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def read(self, sequence: str) -> None:
        """Note that a record was read from the shard."""
        self._open[sequence] = False

    def settle(self, sequences: Iterable[str]) -> bool:
        """Note that records are settled; return whether the checkpoint moved."""
        for sequence in sequences:
            self._open[sequence] = True
        before = self.checkpoint
        while self._open and self._open[next(iter(self._open))]:
            self.checkpoint, _ = self._open.popitem(last=False)
        return self.checkpoint != before
