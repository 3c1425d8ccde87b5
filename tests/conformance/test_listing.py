"""The `Schedules` port: listing."""

import base64
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hourbell.domain.definition import ScheduleState
from hourbell.domain.errors import InvalidInput
from hourbell.usecases.ports import ListEntry

from tests.conformance import samples
from tests.conformance.worlds import World


def store(world: World, name: str, tenant_id: str = "acme") -> str:
    schedule = replace(samples.schedule(name), name=name, tenant_id=tenant_id)
    world.schedules.create(
        schedule, samples.current(name), samples.planned(name), quota=1_000
    )
    return schedule.schedule_id


def pages(world: World, limit: int, prefix: str = "") -> list[tuple[ListEntry, ...]]:
    found: list[tuple[ListEntry, ...]] = []
    after: str | None = None
    while True:
        listing = world.schedules.listing(
            "acme", prefix=prefix, after=after, limit=limit
        )
        found.append(listing.entries)
        after = listing.after
        if after is None:
            return found


def names(found: list[tuple[ListEntry, ...]]) -> list[str]:
    return [entry.name for page in found for entry in page]


def test_an_entry_tells_what_the_definition_does(world: World) -> None:
    schedule = samples.schedule()
    store(world, schedule.name)

    ((entry,),) = [page for page in pages(world, 100) if page]

    assert entry == ListEntry(
        schedule_id=samples.schedule_id(schedule.name),
        name=schedule.name,
        state=ScheduleState.ACTIVE,
        version=1,
        revision=1,
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
        tags=schedule.tags,
    )


def test_an_entry_may_lack_tags(world: World) -> None:
    schedule = replace(samples.schedule(), tags={})
    world.schedules.create(schedule, samples.current(), samples.planned(), quota=1)

    assert [entry.tags for page in pages(world, 9) for entry in page] == [{}]


@pytest.mark.parametrize("limit", [1, 3, 7, 1_000])
def test_every_schedule_of_the_tenant_is_listed_once(world: World, limit: int) -> None:
    mine = [f"bell {n:02d}" for n in range(23)]
    for name in mine:
        store(world, name)
    store(world, "foreign", "other")

    found = pages(world, limit)

    assert sorted(names(found)) == mine
    assert all(len(page) <= limit for page in found)


def test_a_listing_of_nothing_is_empty(world: World) -> None:
    store(world, "foreign", "other")

    assert names(pages(world, 5)) == []


def test_a_listing_is_in_order_of_name_within_a_list_shard(world: World) -> None:
    for n in range(40):
        store(world, f"bell {n:02d}")

    listed = names(pages(world, 6))

    # As many ascending runs as there are list shards, at most.
    falls = sum(a > b for a, b in pairwise(listed))
    assert falls < 16


@pytest.mark.parametrize("limit", [2, 100])
def test_a_prefix_selects_names(world: World, limit: int) -> None:
    wanted = ["daily/report", "daily/report #2", "daily/tëst"]
    for name in [*wanted, "daily", "dail", "weekly", "xdaily/"]:
        store(world, name)

    assert sorted(names(pages(world, limit, "daily/"))) == wanted
    assert names(pages(world, limit, "daily/report #2")) == ["daily/report #2"]
    assert names(pages(world, limit, "nothing")) == []


def test_a_prefix_longer_than_a_name_does_not_match_the_id_behind_it(
    world: World,
) -> None:
    store(world, "daily")

    assert names(pages(world, 10, "daily#sch")) == []


def test_a_listing_stands_while_schedules_come_change_and_go(world: World) -> None:
    stays = {f"bell {n:02d}" for n in range(0, 40, 2)}
    for name in sorted(stays):
        store(world, name)
    seen: list[str] = []
    after: str | None = None
    for turn in range(10_000):
        page = world.schedules.listing("acme", after=after, limit=3)
        seen += [entry.name for entry in page.entries]
        after = page.after
        if after is None:
            break
        store(world, f"bell {turn:02d} came later")
        if page.entries:
            current = world.schedules.find(page.entries[0].schedule_id)
            assert current is not None
            labeled = replace(current, revision=current.revision + 1, tags={"n": "1"})
            world.schedules.relabel(labeled, revision=current.revision)

    assert after is None
    assert stays <= set(seen)
    assert len(seen) == len(set(seen))


def cursor(**members: object) -> str:
    text = json.dumps(members, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


KEY = "daily#" + samples.schedule_id("x")


@pytest.mark.parametrize(
    "after",
    [
        "",
        "?",
        "nonsense",
        "é",
        "A" * 10_000,
        base64.urlsafe_b64encode(b"[" * 1_000).decode(),
        base64.urlsafe_b64encode(b'{"v":1,"shard":0,"key":null}').decode() + "==",
        cursor(),
        cursor(v=2, shard=0, key=None),
        cursor(v=True, shard=0, key=None),
        cursor(v=1, shard=-1, key=None),
        cursor(v=1, shard=16, key=None),
        cursor(v=1, shard=True, key=None),
        cursor(v=1, shard=0.0, key=None),
        cursor(v=1, shard="0", key=None),
        cursor(v=1, shard=0),
        cursor(v=1, shard=0, key=None, more=1),
        cursor(v=1, shard=0, key=""),
        cursor(v=1, shard=0, key="daily"),
        cursor(v=1, shard=0, key="daily#sch"),
        cursor(v=1, shard=0, key="weekly#" + samples.schedule_id("x")),
        cursor(v=1, shard=0, key="daily" + "x" * 1_000 + "#" + samples.schedule_id(1)),
        cursor(v=1, shard=0, key="daily\ud800#" + samples.schedule_id("x")),
        cursor(shard=0, v=1, key=KEY),
    ],
)
def test_another_text_is_no_cursor(world: World, after: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        world.schedules.listing("acme", prefix="daily", after=after, limit=5)
    assert raised.value.code == "invalid_cursor"


def test_a_cursor_may_name_a_schedule_that_is_gone(world: World) -> None:
    store(world, "daily 1")

    for shard in range(16):
        after = cursor(v=1, shard=shard, key=KEY)
        listing = world.schedules.listing(
            "acme", prefix="daily", after=after, limit=100
        )
        assert listing.after is None
