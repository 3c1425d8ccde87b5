"""List a tenant's schedules, page by page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hourbell.domain.definition import ScheduleState
from hourbell.usecases.ports import ListEntry, Listing, Schedules

MAX_READS: Final = 5
"""How many pages one call reads at most to fill one of its own."""


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
    looked for in a bounded number of index entries.

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
        page = schedules.listing(
            tenant_id, prefix=wanted.prefix, after=after, limit=limit - len(found)
        )
        found += _admitted(page.entries, wanted)
        after = page.after
        if after is None or len(found) >= limit:
            break
    return Listing(tuple(found), after)


def _admitted(entries: Iterable[ListEntry], wanted: Filter) -> list[ListEntry]:
    return [entry for entry in entries if wanted.admits(entry)]
