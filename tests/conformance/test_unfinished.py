"""What of a bucket may still need somebody, without what is over."""

from dataclasses import replace

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind, release_of
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.usecases.ports import Page

from tests.conformance import samples
from tests.conformance.samples import BUCKET, SHARD, acknowledging, planned, scheduling
from tests.conformance.worlds import World


def sent(name: str, *, tracked: bool) -> Occurrence:
    row = acknowledging(scheduling(planned(name)).row).row
    return replace(row, expires_at=None if tracked else samples.NOW)


def release(row: Occurrence) -> Dispatch:
    at = row.scheduled_for
    return release_of(replace(row, available_at=at, waits=1), SHARD, at)


def pages(world: World) -> list[Page]:
    found, after = [], None
    while True:
        page = world.timeline.unfinished(BUCKET, SHARD, after=after)
        found.append(page)
        after = page.after
        if after is None:
            return found


@pytest.mark.parametrize("state", State)
def test_a_row_of_whatever_state_is_told_while_it_has_no_expiry(
    world: World, state: State
) -> None:
    row = replace(sent("a", tracked=True), state=state)
    over = replace(sent("b", tracked=False), state=state)
    world.seed([row, over])
    (page,) = pages(world)
    assert (page.rows, page.dispatches, page.unreadable) == ((row,), (), ())


def test_what_was_sent_is_told_if_its_send_stored_no_expiry(
    packed_world: World,
) -> None:
    rows = [scheduling(planned(name)).row for name in ("tracked", "untracked")]
    packed_world.seed(rows)
    tracked, untracked = map(acknowledging, rows)
    tracked = replace(tracked, row=replace(tracked.row, expires_at=None))
    packed_world.timeline.move([tracked, untracked])
    (page,) = pages(packed_world)
    assert page.rows == (tracked.row,)


def test_dispatch_rows_are_told_whether_done_or_not(packed_world: World) -> None:
    row = sent("a", tracked=True)
    first = release(row)
    second = replace(first, kind=DispatchKind.UNCLAIMED, number=2)
    packed_world.seed([row])
    packed_world.timeline.post([first, second])
    done = first.done(samples.DUE)
    packed_world.timeline.settle([done])
    (page,) = pages(packed_world)
    assert (page.rows, set(page.dispatches)) == ((row,), {done, second})


def test_an_empty_bucket_is_one_empty_page(world: World) -> None:
    assert pages(world) == [Page((), None)]


def test_pages_go_on_from_where_the_last_one_ended(world: World) -> None:
    rows = [sent(f"row-{number}", tracked=number % 2 == 0) for number in range(4)]
    world.seed(rows)
    keys = sorted(row.key for row in rows)
    page = world.timeline.unfinished(BUCKET, SHARD, after=keys[1])
    left = {row.key for row in rows if row.expires_at is None and row.key > keys[1]}
    assert {row.key for row in page.rows} == left
    assert world.timeline.unfinished(BUCKET, SHARD, after=keys[-1]).rows == ()


def test_rows_of_other_buckets_and_shards_are_none_of_its_business(
    world: World,
) -> None:
    row = sent("a", tracked=True)
    world.seed([row, replace(row, shard=SHARD + 1)])
    assert world.timeline.unfinished(BUCKET, SHARD).rows == (row,)
    elsewhere = RowKey(BUCKET, SHARD + 2, "")
    assert world.timeline.unfinished(BUCKET, elsewhere.shard).rows == ()
