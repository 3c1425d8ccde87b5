"""Definitions and the version log on DynamoDB."""

from collections.abc import Iterable

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.layout import SCHEDULES, TIMELINE
from hourbell.adapters.dynamodb.reading import batch_get, get_item
from hourbell.adapters.dynamodb.row_items import encode_occurrence
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    definition_key,
    encode_schedule,
    encode_version,
    version_key,
)
from hourbell.adapters.dynamodb.transactions import Put, put_together
from hourbell.domain.definition import Schedule, Version, VersionRef
from hourbell.domain.occurrence import Occurrence
from hourbell.usecases.ports import Write


class DynamoSchedules:
    """The `Schedules` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables = database.tables

    def create(self, schedule: Schedule, version: Version, first: Occurrence) -> Write:
        """Store definition, first version and first row in one transaction.

        Returns:
            APPLIED, or EXISTS when a key is taken; each contains the schedule_id.
        """
        table = self._tables.schedules
        return put_together(
            self._database,
            [
                Put(table, SCHEDULES, encode_schedule(schedule)),
                Put(table, SCHEDULES, encode_version(version)),
                Put(self._tables.timeline, TIMELINE, encode_occurrence(first)),
            ],
        )

    def find(self, schedule_id: str) -> Schedule | None:
        """Return the current definition by a consistent read."""
        item = get_item(
            self._database,
            self._tables.schedules,
            definition_key(schedule_id),
            consistent=True,
        )
        return None if item is None else decode_schedule(item)

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        """Return those of the versions that exist; duplicates are read once."""
        keys = [version_key(ref) for ref in dict.fromkeys(refs)]
        items = batch_get(
            self._database, self._tables.schedules, keys, consistent=consistent
        )
        return {version.ref: version for version in map(decode_version, items)}
