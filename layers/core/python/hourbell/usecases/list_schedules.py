"""List a tenant's schedules, page by page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hourbell.domain.definition import ScheduleState
from hourbell.domain.packing import encoded_size
from hourbell.usecases.ports import ListEntry, Listing, Schedules

MAX_READS: Final = 5
"""How many pages one call reads at most to fill one of its own."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""What the entries of a page come to as JSON: Lambda answers up to 6 MB."""

# Besides tags: ids, instants and names of members, all of them ASCII.
_BARE_BYTES: Final = 600
# What stands around a tag in JSON that is itself a text of JSON.
_AROUND_TAG: Final = len(r"\"\":\"\",")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which schedules are wanted.

    Attributes:
        prefix: how the name begins.
        state: None for any.
        tags: `key:value` of each tag that all of them have.
    """

    prefix: str = ""
    state: ScheduleState | None = None
    tags: frozenset[str] = frozenset()

    def admits(self, entry: ListEntry) -> bool:
        """Whether an entry has the state and the tags."""
        if self.state is not None and entry.state is not self.state:
            return False
        return self.tags <= {f"{key}:{value}" for key, value in entry.tags.items()}


def list_schedules(
    schedules: Schedules,
    tenant_id: str,
    wanted: Filter,
    *,
    after: str | None,
    limit: int,
) -> Listing:
    """Return a page of the tenant's schedules.

    A page may be short, or even empty, although there is more: state and tags are
    looked for in a bounded number of index entries, and very large tags leave no room.

    Args:
        schedules: the port.
        tenant_id: whose.
        wanted: which.
        after: where the page before ended; None for the first.
        limit: entries at most.

    Raises:
        InvalidInput: `after` is not what an earlier page gave (`invalid_cursor`).
        Transient: the store did not answer.
    """
    found: list[ListEntry] = []
    for _ in range(MAX_READS):
        asked, fits = limit - len(found), False
        while asked and not fits:
            page = schedules.listing(
                tenant_id, prefix=wanted.prefix, after=after, limit=asked
            )
            more = [*found, *_admitted(page.entries, wanted)]
            fits = sum(map(_bytes, more)) <= MOST_BYTES
            # Only the index can say where a page ends, so it is asked for fewer.
            asked //= 2
        if not fits:
            break
        found, after = more, page.after
        if after is None or len(found) >= limit:
            break
    return Listing(tuple(found), after)


def _bytes(entry: ListEntry) -> int:
    """Return how many bytes an entry takes at most as JSON within JSON."""
    # Characters that JSON escapes are in no tag.
    tags = (
        encoded_size(key) + encoded_size(value) + _AROUND_TAG
        for key, value in entry.tags.items()
    )
    return _BARE_BYTES + sum(tags)


def _admitted(entries: Iterable[ListEntry], wanted: Filter) -> list[ListEntry]:
    return [entry for entry in entries if wanted.admits(entry)]
