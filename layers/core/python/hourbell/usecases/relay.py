"""Move outbox records into their queues, and acknowledge what the queues accepted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hourbell.domain.definition import Tracking, Version, VersionRef
from hourbell.domain.dispatch import letter_of
from hourbell.domain.errors import Transient
from hourbell.domain.message import encode
from hourbell.domain.occurrence import (
    CancelReason,
    Lane,
    Occurrence,
    RowKey,
    State,
    Transition,
)
from hourbell.domain.packing import encoded_size, pack
from hourbell.domain.policies import (
    MAX_DELAY_SECONDS,
    SWEEP_MIN_AGE,
    delay_seconds,
    expires_at,
)
from hourbell.domain.retry import DeadReason
from hourbell.domain.work import DeadLetter
from hourbell.usecases.letters import LetterReport, is_untold, send_letters
from hourbell.usecases.outbox import Outbox
from hourbell.usecases.port_values import same_wait
from hourbell.usecases.ports import Change, Entry, Sent, Write
from hourbell.usecases.unsent import canceling, objection_to_sending
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.work_ports import Deed

__all__ = ["Delivery", "Outbox", "RelayReport", "relay_keys", "relay_rows"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One acknowledged send.

    Attributes:
        enqueue_lag: enqueued_at - available_at; negative when ahead.
        visible_lag: visible_at - available_at; never negative by the relay's clock.
    """

    queue: str
    lane: Lane | None
    enqueue_lag: timedelta
    visible_lag: timedelta
    misfire: bool


@dataclass(frozen=True, slots=True)
class RelayReport:
    """What became of the records.

    Attributes:
        deliveries: sends that were acknowledged.
        unsettled: records to be tried again: not accepted, or accepted but not
            acknowledged (then they are sent again, with the same occurrence_id), or
            of a version that cannot be read.
        deferred: records whose time is beyond the longest delay, or that a handover
            under way has yet to decide; the sweep brings them up when it is near.
        canceled: records that their version does not own.
        refused: records that the queue refused for good; DEAD with the reason.
        repeated: records that somebody else had settled in the meantime.
        letters: what became of dead letters, but for what is `unsettled`, `repeated`.
    """

    deliveries: tuple[Delivery, ...] = ()
    unsettled: tuple[RowKey, ...] = ()
    deferred: int = 0
    canceled: int = 0
    refused: int = 0
    repeated: int = 0
    letters: LetterReport = field(default_factory=LetterReport)

    def and_letters(self, letters: LetterReport) -> "RelayReport":
        """Return it together with what became of dead letters."""
        return replace(
            self,
            unsettled=self.unsettled + letters.unsettled,
            repeated=self.repeated + letters.repeated,
            letters=letters,
        )


def relay_keys(outbox: Outbox, keys: Iterable[RowKey]) -> RelayReport:
    """Relay the records that lie under these keys and are still unacknowledged.

    Of DEAD rows, send the letters that are not noted as sent.

    Raises:
        Transient: rows or versions could not be read; nothing was sent.
    """
    wanted = set(keys)
    found = outbox.timeline.read(wanted)
    rows = [row for row in found.values() if row.state is State.SCHEDULED]
    dead = [row for row in found.values() if is_untold(row)]
    report = _relay(outbox, rows).and_letters(send_letters(outbox, dead))
    settled = len(wanted) - len(rows) - len(dead)
    return replace(report, repeated=report.repeated + settled)


def relay_rows(outbox: Outbox, rows: Sequence[Occurrence]) -> RelayReport:
    """Relay outbox records as the stream brought them.

    A record that the stream brings late may have been settled since: those are read
    again first, so that a repeated batch does not send everything twice. DEAD rows are
    always read again: they are rare, and their letters hurry less.

    Raises:
        Transient: rows or versions could not be read; nothing was sent.
    """
    records = {row.key: row for row in rows if row.state is State.SCHEDULED}
    now = outbox.clock.now()
    late = [key for key, row in records.items() if _age(row, now) > SWEEP_MIN_AGE]
    untold = {row.key for row in rows if is_untold(row)}
    again = untold.union(late)
    current = outbox.timeline.read(again) if again else {}
    settled = 0
    for key in late:
        row = current.get(key)
        if row is None or row.state is not State.SCHEDULED:
            del records[key]
            settled += 1
    dead = [row for key, row in current.items() if key in untold and is_untold(row)]
    report = _relay(outbox, list(records.values()))
    report = report.and_letters(send_letters(outbox, dead))
    settled += len(untold) - len(dead)
    return replace(report, repeated=report.repeated + settled)


def _age(row: Occurrence, now: datetime) -> timedelta:
    return now - (row.scheduled_at or now)


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A record, ready to be sent."""

    row: Occurrence
    body: str
    ends_here: bool

    @property
    def available_at(self) -> datetime:
        return self.row.available_at or self.row.scheduled_for

    @property
    def size(self) -> int:
        return encoded_size(self.body)


def _relay(outbox: Outbox, rows: Sequence[Occurrence]) -> RelayReport:
    refs = {VersionRef(row.schedule_id, row.version) for row in rows}
    versions, faulty = read_versions(outbox.schedules, refs, consistent=True)
    now = outbox.clock.now()
    reach = now + timedelta(seconds=MAX_DELAY_SECONDS)
    parcels: list[_Parcel] = []
    changes: list[Change] = []
    refused: list[Occurrence] = []
    unsent: list[RowKey] = []
    deferred = 0
    for row in sorted(rows, key=_turn):
        ref = VersionRef(row.schedule_id, row.version)
        version = versions.get(ref)
        reason = objection_to_sending(outbox.schedules, row, version)
        if ref in faulty:
            unsent.append(row.key)
        elif version is None or reason is not None:
            gone = canceling(row, reason or CancelReason.ORPHANED, now)
            changes.append(Change(gone, Transition.CANCEL, same_wait(row)))
        elif version.holds(row.scheduled_for) or (row.available_at or now) > reach:
            deferred += 1
        else:
            parcels.append(_parcel(row, version))
    for batch in _batches(parcels):
        sent = _send(outbox, batch)
        changes += sent.accepted
        refused += sent.refused
        unsent += sent.retry
    report = replace(_settle(outbox, changes, unsent), deferred=deferred)
    return _bury(outbox, report, refused)


def _turn(row: Occurrence) -> tuple[datetime, datetime]:
    """Order by when it may be received, and a backlog by its times."""
    return row.available_at or row.scheduled_for, row.scheduled_for


def _parcel(row: Occurrence, version: Version) -> _Parcel:
    """Make a record ready; an UNTRACKED occurrence ends when it is enqueued."""
    untracked = version.definition.tracking is Tracking.UNTRACKED
    return _Parcel(row, encode(row, version, row.sends + 1), untracked)


def _batches(parcels: Sequence[_Parcel]) -> Iterator[list[_Parcel]]:
    """Yield batches for one queue each, within its limits, soonest first."""
    by_queue: dict[str | None, list[_Parcel]] = defaultdict(list)
    for parcel in parcels:
        by_queue[parcel.row.queue].append(parcel)
    for queued in by_queue.values():
        yield from pack(queued, lambda parcel: parcel.size)


@dataclass(frozen=True, slots=True)
class _Answered:
    """What a queue said to a batch."""

    accepted: list[Change] = field(default_factory=list)
    refused: list[Occurrence] = field(default_factory=list)
    retry: list[RowKey] = field(default_factory=list)


def _send(outbox: Outbox, batch: Sequence[_Parcel]) -> _Answered:
    """Send one batch; return the changes to make, and what was not accepted.

    The delay is computed right before the call, from the same clock that
    `available_at` is compared with, and rounded up: never early.
    """
    now = outbox.clock.now()
    entries = [
        Entry(
            entry_id=str(place),
            body=parcel.body,
            delay_seconds=delay_seconds(parcel.available_at, now),
            group=parcel.row.tenant_id,
        )
        for place, parcel in enumerate(batch)
    ]
    answers = outbox.queues.send(batch[0].row.queue or "", entries)
    enqueued_at = outbox.clock.now()
    told = _Answered()
    for entry, parcel in zip(entries, batch, strict=True):
        answer = answers.get(entry.entry_id, Sent.RETRY)
        if answer is Sent.ACCEPTED:
            told.accepted.append(_acknowledging(parcel, entry, enqueued_at))
        elif answer is Sent.REFUSED:
            told.refused.append(parcel.row)
        else:
            told.retry.append(parcel.row.key)
    return told


def _acknowledging(parcel: _Parcel, entry: Entry, enqueued_at: datetime) -> Change:
    """Return the change for a record that the queue accepted.

    Where the occurrence ends with it, the row gets its expiry in the same write.
    """
    row = parcel.row
    acknowledged = replace(
        row,
        state=State.ENQUEUED,
        enqueued_at=enqueued_at,
        visible_at=enqueued_at + timedelta(seconds=entry.delay_seconds),
        sends=row.sends + 1,
        expires_at=expires_at(enqueued_at) if parcel.ends_here else None,
    )
    return Change(acknowledged, Transition.ACKNOWLEDGE, same_wait(row))


def _bury(
    outbox: Outbox, report: RelayReport, rows: Sequence[Occurrence]
) -> RelayReport:
    """End records whose messages the queue will never take, and report it.

    Their letters go by the stream; should that lose them, by a dispatch row.
    """
    buried = repeated = 0
    unsettled: list[RowKey] = []
    for row in rows:
        now = outbox.clock.now()
        dead = replace(
            row,
            state=State.DEAD,
            reason=DeadReason.SEND_REFUSED,
            finished_at=now,
            expires_at=expires_at(now),
        )
        try:
            deed = Deed(
                (Change(dead, Transition.REFUSE, same_wait(row)),),
                dispatches=(letter_of(dead, outbox.shards.current(), now),),
                letters=(DeadLetter.of(dead),),
            )
            done = outbox.ledger.do(deed) is Write.APPLIED
        except Transient:
            unsettled.append(row.key)
            continue
        buried += done
        repeated += not done
    return replace(
        report,
        unsettled=(*report.unsettled, *unsettled),
        refused=buried,
        repeated=report.repeated + repeated,
    )


def _settle(
    outbox: Outbox, changes: Sequence[Change], unsent: Sequence[RowKey]
) -> RelayReport:
    """Write what became of the records, and report it."""
    deliveries: list[Delivery] = []
    unsettled = list(unsent)
    canceled = repeated = 0
    for change, answer in zip(changes, outbox.timeline.move(changes), strict=True):
        if answer is Write.UNKNOWN:
            unsettled.append(change.row.key)
        elif answer is not Write.APPLIED:
            repeated += 1
        elif change.transition is Transition.ACKNOWLEDGE:
            deliveries.append(_delivery(change.row))
        else:
            canceled += 1
    return RelayReport(
        deliveries=tuple(deliveries),
        unsettled=tuple(unsettled),
        canceled=canceled,
        repeated=repeated,
    )


def _delivery(row: Occurrence) -> Delivery:
    available_at = row.available_at or row.scheduled_for
    enqueued_at = row.enqueued_at or available_at
    visible_at = row.visible_at or enqueued_at
    return Delivery(
        queue=row.queue or "",
        lane=row.lane,
        enqueue_lag=enqueued_at - available_at,
        visible_lag=visible_at - available_at,
        misfire=row.misfire,
    )
