"""The places of rates on DynamoDB."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.expressions import conditional
from hourbell.adapters.dynamodb.rate_items import (
    Minute,
    decode_minute,
    rate_item_key,
    taking,
    unchanged,
)
from hourbell.adapters.dynamodb.reading import batch_get
from hourbell.adapters.sdk_errors import code_of, translation
from hourbell.domain.errors import Transient
from hourbell.domain.rates import Filled, Line, Rate
from hourbell.domain.shards import MINUTE
from hourbell.usecases.rate_port import MAX_MINUTES

_CONDITION_FAILED: Final = "ConditionalCheckFailedException"
_MOST_AHEAD: Final = 64
_MOST_KNOWN: Final = 10_000


class DynamoRates:
    """The `Rates` port: an item for each minute, written if nobody else did."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.control
        # By name: under which limit which minutes are known to be full, [from, to).
        # Places are never given back, so that they stay it.
        self._full: dict[str, tuple[int, datetime, datetime]] = {}

    def reserve(self, rate: Rate, wanted: Sequence[datetime]) -> list[datetime | None]:
        """Take a place for each instant: the first at or after it that is free."""
        line, minutes, ahead = Line(rate, wanted), 0, 1
        found: dict[datetime, Minute] = {}
        while (minute := self._next(rate, line)) is not None and minutes < MAX_MINUTES:
            if minute not in found:
                found = self._read(rate, minute, ahead)
                # Full minutes lie side by side: who meets one reads on in strides.
                ahead = min(2 * ahead, _MOST_AHEAD)
            filled = self._take(rate, line, minute, found[minute])
            minutes += bool(filled.places)
            if rate.is_full(filled.taken):
                self._note_full(rate, minute)
            line.accept(filled)
        return line.places

    def _next(self, rate: Rate, line: Line) -> datetime | None:
        """Return the next minute to look at, past those that are known to be full."""
        if rate.name in self._full and line.minute is not None:
            limit, first, end = self._full[rate.name]
            if limit == rate.limit and first <= line.minute < end:
                line.skip_to(end)
        return line.minute

    def _note_full(self, rate: Rate, minute: datetime) -> None:
        limit, first, end = self._full.get(rate.name, (0, minute, minute))
        if limit != rate.limit or end != minute:
            first = minute
        if len(self._full) >= _MOST_KNOWN:
            self._full.clear()
        self._full[rate.name] = (rate.limit, first, minute + MINUTE)

    def _read(self, rate: Rate, minute: datetime, count: int) -> dict[datetime, Minute]:
        """Return so many minutes from one on, consistently."""
        minutes = [minute + number * MINUTE for number in range(count)]
        keys = {
            key["control_key"]["S"]: (each, key)
            for each in minutes
            for key in [rate_item_key(rate, each)]
        }
        found = dict.fromkeys(minutes, Minute())
        items = batch_get(
            self._database,
            self._table,
            [key for _, key in keys.values()],
            consistent=True,
        )
        for item in items:
            found[keys[item["control_key"]["S"]][0]] = decode_minute(item)
        return found

    def _take(self, rate: Rate, line: Line, minute: datetime, known: Minute) -> Filled:
        """Take the places of a minute for those who wait; anew when others were first.

        Raises:
            Transient: others were first each time.
        """
        for attempt in self._database.contended.rounds():
            if attempt:
                known = self._read(rate, minute, 1)[minute]
            filled = line.fill(known.taken)
            if not filled.places or self._write(rate, minute, filled, known):
                return filled
        raise Transient(f"the places of {rate.name} are contended")

    def _write(
        self, rate: Rate, minute: datetime, filled: Filled, known: Minute
    ) -> bool:
        """Store a minute; False when it was changed since it was read.

        An attempt of ours whose answer was lost looks like that too: its places stay
        empty then.
        """
        changes = taking(minute, filled.taken, known.revision + 1)
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "Key": rate_item_key(rate, minute),
            **conditional(unchanged(known), changes),
        }
        with translation():
            try:
                self._database.client.update_item(**arguments)
            except ClientError as error:
                if code_of(error) == _CONDITION_FAILED:
                    return False
                raise
        return True
