"""Packed conditional writes: BatchExecuteStatement with an outcome per statement.

A packed call is neither atomic nor ordered, costs what its single writes cost, and
answers for each statement. Decision record 0001 compares it with transactions.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from hourbell.adapters.backoff import Backoff
from hourbell.adapters.chunks import chunks
from hourbell.adapters.dynamodb.codec import Item, fields_of
from hourbell.adapters.dynamodb.layout import DISPATCH, TIMELINE
from hourbell.adapters.dynamodb.models import DispatchItem, OccurrenceItem
from hourbell.adapters.dynamodb.moves import stored
from hourbell.adapters.dynamodb.row_items import encode_dispatch, encode_occurrence
from hourbell.adapters.sdk_errors import (
    REFUSED_FOR_NOW,
    SDK_ERRORS,
    UNCLEAR,
    is_transient,
    is_unclear,
    translated,
)
from hourbell.domain.dispatch import Dispatch, DispatchState
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, Transition
from hourbell.usecases.ports import Change, Write

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

log = logging.getLogger(__name__)

MAX_STATEMENTS: Final = 25
MAX_STATEMENT_CHARACTERS: Final = 8192

# What the condition's failure means, by the code of a statement's error. Codes of
# single statements lack the `Exception` that codes of calls end with.
_DECIDED: Final = {
    "DuplicateItem": Write.EXISTS,
    "ConditionalCheckFailed": Write.LOST,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One conditional write: a constant text and its values."""

    text: str
    parameters: list[dict[str, Any]]

    def as_request(self) -> dict[str, Any]:
        """Return it as the call takes it."""
        return {"Statement": self.text, "Parameters": self.parameters}


class RowWriter(Protocol):
    """What the timeline needs of a way to write rows."""

    def insert(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert rows where their keys are free."""
        ...

    def update(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions."""
        ...


class PackedWriter:
    """Writes rows in packs of 25 statements."""

    def __init__(
        self, client: "DynamoDBClient", table: str, backoff: Backoff | None = None
    ) -> None:
        """Make a writer.

        Args:
            client: must not retry by itself, or a write that it retried in secret
                would answer LOST to its own success.
            table: physical name of the timeline.
            backoff: between attempts at statements that were not decided.
        """
        self._client = client
        self._table = table
        self._backoff = backoff or Backoff()

    def insert(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert rows where their keys are free.

        Returns:
            one of APPLIED, EXISTS, UNKNOWN per row, in order.
        """
        return self.run([insertion(self._table, encode_occurrence(r)) for r in rows])

    def update(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions.

        Returns:
            one of APPLIED, LOST, UNKNOWN per change, in order.
        """
        return self.run([transition(self._table, change) for change in changes])

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Insert dispatch rows where their keys are free; answer as `insert`."""
        return self.run(
            [insertion(self._table, encode_dispatch(d)) for d in dispatches]
        )

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Set dispatch rows DONE where they are PENDING; answer as `update`."""
        return self.run([settlement(self._table, each) for each in dispatches])

    def run(self, statements: Sequence[Statement]) -> list[Write]:
        """Execute statements until each is decided or the backoff is used up."""
        outcomes = _Outcomes(len(statements))
        for _ in self._backoff.rounds():
            self._round(statements, outcomes)
            if not outcomes.pending:
                break
        return outcomes.results

    def _round(self, statements: Sequence[Statement], outcomes: "_Outcomes") -> None:
        """Try every undecided statement once; stop early when a whole call fails."""
        packs = list(chunks(outcomes.pending, MAX_STATEMENTS))
        outcomes.pending = []
        answers = True
        for pack in packs:
            if not answers:
                outcomes.pending.extend(pack)
                continue
            codes = self._call([statements[index] for index in pack])
            answers = not isinstance(codes, str)
            for place, index in enumerate(pack):
                outcomes.note(index, codes if isinstance(codes, str) else codes[place])

    def _call(self, statements: Iterable[Statement]) -> list[str | None] | str:
        """Return the error code of each statement, None where it was applied.

        When the call as a whole failed for now, return the one code for all.

        Raises:
            Permanent: the call as a whole was refused for good.
        """
        requests = [statement.as_request() for statement in statements]
        try:
            answer: Any = self._client.batch_execute_statement(
                Statements=requests  # type: ignore[arg-type]
            )
        except SDK_ERRORS as error:
            if not is_transient(error):
                raise translated(error) from error
            return "InternalServerError" if is_unclear(error) else "ThrottlingError"
        return [
            each["Error"]["Code"] if "Error" in each else None
            for each in answer["Responses"]
        ]


class _Outcomes:
    """What is known of each statement so far.

    Attributes:
        pending: indices of statements that are to be tried again.
    """

    def __init__(self, count: int) -> None:
        self.results = [Write.UNKNOWN] * count
        self.pending = list(range(count))
        self._unclear: set[int] = set()

    def note(self, index: int, code: str | None) -> None:
        """Take in the error code of a statement, None if it was applied."""
        if code is None:
            self.results[index] = Write.APPLIED
        elif code in _DECIDED:
            self.results[index] = self._decided(index, _DECIDED[code])
        elif code in UNCLEAR or code in REFUSED_FOR_NOW:
            self.pending.append(index)
            if code in UNCLEAR:
                self._unclear.add(index)
        else:
            # One row at fault must not stop the others: it stays what it is.
            log.error("a packed write was refused", extra={"code": code})

    def _decided(self, index: int, verdict: Write) -> Write:
        if verdict is Write.LOST and index in self._unclear:
            # Perhaps it was our own earlier attempt that changed the state.
            return Write.UNKNOWN
        return verdict


def insertion(table: str, item: Item) -> Statement:
    """Return the statement that inserts an item where its key is free."""
    return Statement(_insert_text(table, tuple(item)), list(item.values()))


def transition(table: str, change: Change) -> Statement:
    """Return the statement that makes a transition if the row allows it."""
    fields, row = fields_of(OccurrenceItem), change.row
    writes = TRANSITIONS[change.transition].writes
    written = [fields[name].typed(stored(name, getattr(row, name))) for name in writes]
    # A value is in the parameters, that there is none in the text.
    expected = [(name, stored(name, value)) for name, value in change.expects]
    forms = tuple((name, value is not None) for name, value in expected)
    compared = [
        fields[name].typed(value) for name, value in expected if value is not None
    ]
    return Statement(
        _update_text(table, change.transition, forms),
        [*written, {"S": row.key.partition}, {"S": row.key.sort}, *compared],
    )


def settlement(table: str, dispatch: Dispatch) -> Statement:
    """Return the statement that sets a dispatch row DONE if it is PENDING."""
    expires_at = fields_of(DispatchItem)["expires_at"].typed(dispatch.expires_at)
    key = dispatch.key
    kind = {"S": DISPATCH}
    values = [expires_at, {"S": key.partition}, {"S": key.sort}, kind]
    return Statement(_settle_text(table), values)


@cache
def _settle_text(table: str) -> str:
    fields = fields_of(DispatchItem)
    state, kind = fields["state"].wire, fields["kind"].wire
    done = f"\"{state}\" = '{DispatchState.DONE.value}'"
    targets = f'{done}, "{fields["expires_at"].wire}" = ?'
    keys = f'"{TIMELINE.partition}" = ? AND "{TIMELINE.sort}" = ?'
    pending = f'"{kind}" = ? AND "{state}" = \'{DispatchState.PENDING.value}\''
    parts = ["UPDATE", f'"{table}"', "SET", targets, "WHERE", keys, "AND", pending]
    return _checked(" ".join(parts))


@cache
def _insert_text(table: str, names: tuple[str, ...]) -> str:
    members = ", ".join(f"'{name}': ?" for name in names)
    return _checked(f'INSERT INTO "{table}" VALUE {{{members}}}')


@cache
def _update_text(
    table: str, transition_name: Transition, expected: tuple[tuple[str, bool], ...]
) -> str:
    fields = fields_of(OccurrenceItem)
    move = TRANSITIONS[transition_name]
    state = fields["state"].wire
    targets = [f"\"{state}\" = '{move.target.value}'"]
    targets += [f'"{fields[name].wire}" = ?' for name in move.writes]
    sources = ", ".join(f"'{source.value}'" for source in sorted(move.sources))
    keys = f'"{TIMELINE.partition}" = ? AND "{TIMELINE.sort}" = ?'
    conditions = [keys, f'"{state}" IN [{sources}]']
    # An absent attribute and a NULL have no type of a value's.
    conditions += [
        f'"{field.wire}" = ?'
        if has_value
        else f"NOT attribute_type(\"{field.wire}\", '{field.type}')"
        for name, has_value in expected
        for field in [fields[name]]
    ]
    parts = ["UPDATE", f'"{table}"', "SET", ", ".join(targets)]
    return _checked(" ".join([*parts, "WHERE", " AND ".join(conditions)]))


def _checked(text: str) -> str:
    if len(text) > MAX_STATEMENT_CHARACTERS:
        raise ValueError(f"a statement of {len(text)} characters is too long")
    return text
