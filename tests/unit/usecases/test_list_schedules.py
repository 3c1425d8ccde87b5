"""Listing: filters on pages of the index, in a bounded number of reads."""

from dataclasses import dataclass, field
from typing import Any, cast

from hourbell.domain.definition import ScheduleState
from hourbell.usecases.list_schedules import MAX_READS, Filter, list_schedules
from hourbell.usecases.ports import ListEntry, Listing, Schedules

from tests.unit.usecases.world import START


def entry(number: int, **tags: str) -> ListEntry:
    state = ScheduleState.PAUSED if number % 2 else ScheduleState.ACTIVE
    name = f"bell-{number}"
    return ListEntry(f"sch{number}", name, state, 1, 1, START, START, tags)


@dataclass
class Index:
    """Entries, whose cursor is a number."""

    entries: list[ListEntry]
    limits: list[int] = field(default_factory=list)

    def listing(
        self, tenant_id: str, *, prefix: str, after: str | None, limit: int
    ) -> Listing:
        assert (tenant_id, prefix) == ("acme", "be")
        self.limits.append(limit)
        start = int(after or 0)
        end = start + limit
        following = str(end) if end < len(self.entries) else None
        return Listing(tuple(self.entries[start:end]), following)


def listed(index: Index, **query: Any) -> Listing:
    limit, after = query.pop("limit"), query.pop("after", None)
    schedules = cast("Schedules", index)
    wanted = Filter(prefix="be", **query)
    return list_schedules(schedules, "acme", wanted, after=after, limit=limit)


def test_without_a_filter_a_page_is_a_page() -> None:
    index = Index([entry(n) for n in range(5)])
    page = listed(index, limit=3)
    assert ([each.name for each in page.entries], page.after) == (
        ["bell-0", "bell-1", "bell-2"],
        "3",
    )
    assert index.limits == [3]
    assert listed(index, limit=3, after="3").after is None


def test_a_page_is_filled_over_several_reads_and_never_over() -> None:
    index = Index([entry(n) for n in range(20)])
    page = listed(index, limit=4, state=ScheduleState.PAUSED)
    names = [each.name for each in page.entries]
    assert names == ["bell-1", "bell-3", "bell-5", "bell-7"]
    # What is still wanted bounds what is read, so that no entry is skipped.
    assert (index.limits, page.after) == ([4, 2, 1, 1], "8")
    rest = listed(index, limit=20, state=ScheduleState.PAUSED, after=page.after)
    names = [each.name for each in rest.entries]
    assert names == [f"bell-{n}" for n in range(9, 20, 2)]


def test_what_is_rare_costs_a_bounded_number_of_reads() -> None:
    index = Index([entry(n) for n in range(1_000)])
    page = listed(index, limit=10, tags=frozenset({"a:b"}))
    assert (page.entries, page.after) == ((), str(10 * MAX_READS))
    assert len(index.limits) == MAX_READS


def test_all_tags_must_be_there() -> None:
    index = Index([entry(1, a="b"), entry(2, a="b", c="d:e"), entry(3, c="d:e")])
    page = listed(index, limit=10, tags=frozenset({"a:b", "c:d:e"}))
    assert [each.name for each in page.entries] == ["bell-2"]


def test_large_entries_leave_no_room_and_none_is_skipped_or_repeated() -> None:
    # 50 tags with 380 letters of four bytes: 77,000 bytes and 600 besides.
    key, value = "\U0001d400" * 126, "\U0001d400" * 256
    tags = {f"{number:02}{key}": value for number in range(50)}
    large = set(range(20, 140))
    index = Index([entry(n, **(tags if n in large else {})) for n in range(150)])
    names: list[str] = []
    sizes, after = [], None
    while True:
        page = listed(index, limit=100, after=after)
        names += [each.name for each in page.entries]
        sizes.append(len(page.entries))
        after = page.after
        if after is None:
            break
    assert names == [f"bell-{n}" for n in range(150)]
    # 4 MiB have room for 54 of them, or for 53 and 20 of 600 bytes.
    assert sizes == [73, 54, 23]


def test_what_fits_of_a_page_that_is_filtered_goes_on_where_it_ended() -> None:
    tags = {f"k{number}": "x" * 100_000 for number in range(10)}
    index = Index([entry(n, **tags) for n in range(30)])
    names: list[str] = []
    after: str | None = None
    while True:
        page = listed(index, limit=8, after=after, state=ScheduleState.PAUSED)
        assert len(page.entries) <= 4
        names += [each.name for each in page.entries]
        after = page.after
        if after is None:
            break
    assert names == [f"bell-{n}" for n in range(1, 30, 2)]
