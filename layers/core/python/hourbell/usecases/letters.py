"""Send dead letters to the dead-letter queues of their handlers, and note it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.errors import Transient
from hourbell.domain.letter import encode_letter
from hourbell.domain.occurrence import Occurrence, RowKey, State, Transition
from hourbell.domain.packing import encoded_size, pack
from hourbell.domain.routing import dead_letter_key
from hourbell.usecases.directory_reads import read_handlers, read_tenants
from hourbell.usecases.outbox import Outbox
from hourbell.usecases.port_values import Change, same_wait
from hourbell.usecases.ports import Entry, Sent, Write
from hourbell.usecases.version_reads import read_versions


@dataclass(frozen=True, slots=True)
class LetterReport:
    """What became of dead letters.

    Attributes:
        sent: letters that a queue accepted, and that are noted as told.
        kept: letters that are noted as told and lie in the store only: their handler
            has no dead-letter queue.
        refused: letters that their queue refused for good, or that cannot be written
            any more; noted as told, too, since another try would end the same.
        unsettled: rows to be tried again: the letter was not accepted, or not noted.
        repeated: letters that somebody else had noted in the meantime.
    """

    sent: int = 0
    kept: int = 0
    refused: int = 0
    unsettled: tuple[RowKey, ...] = ()
    repeated: int = 0


def is_untold(row: Occurrence) -> bool:
    """Whether a row is DEAD and its letter is not noted as sent."""
    return row.state is State.DEAD and row.told_at is None


def send_letters(outbox: Outbox, rows: Sequence[Occurrence]) -> LetterReport:
    """Send the dead letters of untold rows, each at least once.

    Whatever goes wrong is told by the report: the rest of a batch is done already.

    Args:
        outbox: the ports.
        rows: DEAD and untold, as they stand in the store.
    """
    if not rows:
        return LetterReport()
    try:
        letters, unreadable = _written(outbox, rows)
    except Transient:
        return LetterReport(unsettled=tuple(row.key for row in rows))
    noted, unsent = _sent(outbox, letters)
    return _note(outbox, noted, [*unreadable, *unsent])


@dataclass(frozen=True, slots=True)
class _Letter:
    """A letter, ready to be sent.

    Attributes:
        body: empty when it cannot be written: its version is gone.
        queue: None when its handler has no dead-letter queue.
    """

    row: Occurrence
    body: str
    queue: str | None

    @property
    def size(self) -> int:
        return encoded_size(self.body)


def _written(
    outbox: Outbox, rows: Sequence[Occurrence]
) -> tuple[list[_Letter], list[RowKey]]:
    """Write letters; return them, and the keys of rows that have to wait for theirs.

    Raises:
        Transient: the store did not answer.
    """
    refs = {VersionRef(row.schedule_id, row.version) for row in rows}
    versions, faulty = read_versions(outbox.schedules, refs, consistent=True)
    queues, unclear = _queues(outbox, versions)
    letters: list[_Letter] = []
    unreadable: list[RowKey] = []
    for row in rows:
        ref = VersionRef(row.schedule_id, row.version)
        version = versions.get(ref)
        if ref in faulty or ref in unclear:
            unreadable.append(row.key)
        elif version is None:
            letters.append(_Letter(row, "", None))
        else:
            body = encode_letter(row, version)
            letters.append(_Letter(row, body, queues.get(ref)))
    return letters, unreadable


def _queues(
    outbox: Outbox, versions: Mapping[VersionRef, Version]
) -> tuple[dict[VersionRef, str | None], set[VersionRef]]:
    """Return where letters go by now, and of which versions that cannot be read.

    Nothing is returned of a handler or tenant that is gone.
    """
    names = {
        ref: (each.tenant_id, each.definition.handler) for ref, each in versions.items()
    }
    owners = {name[0] for name in names.values()}
    handlers, no_handlers = read_handlers(outbox.directory, names.values())
    tenants, no_tenants = read_tenants(outbox.directory, owners)
    queues = {
        ref: dead_letter_key(tenants[name[0]].tier, handlers[name])
        for ref, name in names.items()
        if name in handlers and name[0] in tenants
    }
    unclear = {
        ref
        for ref, name in names.items()
        if name in no_handlers or name[0] in no_tenants
    }
    return queues, unclear


def _sent(
    outbox: Outbox, letters: Sequence[_Letter]
) -> tuple[list[tuple[Occurrence, str]], list[RowKey]]:
    """Send letters; return the rows to note with what became of them, and the rest."""
    noted: list[tuple[Occurrence, str]] = []
    unsent: list[RowKey] = []
    by_queue: dict[str, list[_Letter]] = defaultdict(list)
    for letter in letters:
        if not letter.body:
            noted.append((letter.row, "refused"))
        elif letter.queue is None:
            noted.append((letter.row, "kept"))
        else:
            by_queue[letter.queue].append(letter)
    for queue, queued in by_queue.items():
        for batch in pack(queued, lambda letter: letter.size):
            for letter, answer in _answers(outbox, queue, batch):
                if answer is Sent.RETRY:
                    unsent.append(letter.row.key)
                else:
                    outcome = "sent" if answer is Sent.ACCEPTED else "refused"
                    noted.append((letter.row, outcome))
    return noted, unsent


def _answers(
    outbox: Outbox, queue: str, batch: Sequence[_Letter]
) -> Iterator[tuple[_Letter, Sent]]:
    entries = [
        Entry(str(place), letter.body, delay_seconds=0, group=letter.row.tenant_id)
        for place, letter in enumerate(batch)
    ]
    answers = outbox.queues.send(queue, entries)
    for entry, letter in zip(entries, batch, strict=True):
        yield letter, answers.get(entry.entry_id, Sent.RETRY)


def _note(
    outbox: Outbox,
    noted: Sequence[tuple[Occurrence, str]],
    unsettled: Sequence[RowKey],
) -> LetterReport:
    """Note rows as told, if nobody replayed them meanwhile, and report."""
    now = outbox.clock.now()
    changes = [
        Change(replace(row, told_at=now), Transition.TELL, same_wait(row))
        for row, _ in noted
    ]
    counts = dict.fromkeys(("sent", "kept", "refused"), 0)
    unclear: list[RowKey] = []
    repeated = 0
    answers = outbox.timeline.move(changes) if changes else []
    for (row, outcome), answer in zip(noted, answers, strict=True):
        if answer is Write.UNKNOWN:
            unclear.append(row.key)
        elif answer is Write.APPLIED:
            counts[outcome] += 1
        else:
            repeated += 1
    return LetterReport(
        sent=counts["sent"],
        kept=counts["kept"],
        refused=counts["refused"],
        unsettled=(*unsettled, *unclear),
        repeated=repeated,
    )
