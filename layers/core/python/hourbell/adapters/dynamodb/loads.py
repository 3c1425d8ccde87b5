"""The statistic of loads on DynamoDB: an item for each UTC hour."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, decode, encode
from hourbell.adapters.dynamodb.expressions import unconditional
from hourbell.adapters.dynamodb.models import LoadItem, minute_name
from hourbell.adapters.dynamodb.reading import batch_get
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.load import floor_hour
from hourbell.domain.shards import MINUTE

KEPT: Final = timedelta(days=9)
"""How long after its hour an item is of use: eight days, and one to spare."""


class DynamoLoads:
    """The `Loads` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.control

    def add(self, counts: Mapping[datetime, int]) -> None:
        """Add to the counts of UTC minutes: one write for each hour, tried once."""
        by_hour: defaultdict[datetime, dict[int, int]] = defaultdict(dict)
        for minute, count in counts.items():
            by_hour[floor_hour(minute)][minute.minute] = count
        for hour, added in by_hour.items():
            with translation():
                # A repetition might count twice, and would keep a pass waiting.
                self._database.single.update_item(**self._adding(hour, added))

    def read(self, hours: Iterable[datetime]) -> dict[datetime, int]:
        """Return the counts of the minutes of some UTC hours."""
        wanted = {layout.load_key(hour): hour for hour in hours}
        keys = [load_item_key(hour) for hour in wanted.values()]
        items = batch_get(self._database, self._table, keys, consistent=False)
        counts: dict[datetime, int] = {}
        for item in items:
            values = decode(LoadItem, item)
            hour = wanted[values["control_key"]]
            for number in range(60):
                count = values.get(minute_name(number))
                if count is not None:
                    counts[hour + number * MINUTE] = count
        return counts

    def _adding(self, hour: datetime, added: Mapping[int, int]) -> dict[str, Any]:
        attributes = LoadItem.get_attributes()
        return {
            "TableName": self._table,
            "Key": load_item_key(hour),
            **unconditional(
                [
                    LoadItem.schema.set(layout.SCHEMA),
                    LoadItem.expires_at.set(hour + KEPT),
                    *(
                        attributes[minute_name(number)].add(count)
                        for number, count in sorted(added.items())
                    ),
                ]
            ),
        }


def load_item_key(hour: datetime) -> Item:
    """Return the key of a UTC hour's loads."""
    values = {"control_key": layout.load_key(hour), "item": layout.LOAD_SORT}
    return encode(LoadItem, values)
