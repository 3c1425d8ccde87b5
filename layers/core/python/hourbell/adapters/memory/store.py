"""The state that the in-memory adapters share."""

from dataclasses import dataclass, field

from hourbell.domain.definition import Handler, Schedule, Tenant, Version, VersionRef
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.ports import Lease


@dataclass(slots=True)
class MemoryStore:
    """All tables in one place, so that a transaction can span them.

    Attributes:
        rows: per partition `<bucket>#<shard>`, the rows by sort key.
        principals: normalized principal -> tenant_id.
        handlers: (tenant_id, name) -> handler.
        groups: the lease record of each shard group as it was last written.
        stream: the new image of every write to the timeline, oldest first.
    """

    schedules: dict[str, Schedule] = field(default_factory=dict)
    versions: dict[VersionRef, Version] = field(default_factory=dict)
    rows: dict[str, dict[str, Occurrence]] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    principals: dict[str, str] = field(default_factory=dict)
    handlers: dict[tuple[str, str], Handler] = field(default_factory=dict)
    groups: dict[int, Lease] = field(default_factory=dict)
    stream: list[Occurrence] = field(default_factory=list)

    def row(self, key: RowKey) -> Occurrence | None:
        """Return the row under a key, if there is one."""
        return self.rows.get(key.partition, {}).get(key.sort)

    def put_row(self, row: Occurrence) -> None:
        """Write a row whatever is there, and its new image to the stream."""
        key = row.key
        self.rows.setdefault(key.partition, {})[key.sort] = row
        self.stream.append(row)

    def all_rows(self) -> list[Occurrence]:
        """Return every row, by bucket, shard and sort key."""
        return [
            rows[sort] for _, rows in sorted(self.rows.items()) for sort in sorted(rows)
        ]

    def take_stream(self) -> list[Occurrence]:
        """Return the stream's records since the last call, and forget them."""
        records = list(self.stream)
        self.stream.clear()
        return records
