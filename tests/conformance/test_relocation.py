"""Moving rows of the timeline from shard to shard."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.relocation import DynamoRelocation
from hourbell.adapters.dynamodb.row_items import encode_dispatch, encode_occurrence
from hourbell.adapters.memory import shards as memory_shards
from hourbell.domain.dispatch import Dispatch, DispatchState
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Misplaced, Relocation

from tests.conformance import samples
from tests.conformance.samples import (
    BUCKET,
    DUE,
    MINUTE,
    SHARD,
    acknowledging,
    canceling,
    planned,
    scheduling,
)
from tests.conformance.worlds import World

THERE = 11
DONE = replace(
    samples.dispatch("done"), state=DispatchState.DONE, expires_at=DUE + 15 * MINUTE
)


def elsewhere(key: RowKey) -> RowKey:
    return replace(key, shard=THERE)


def pages(
    relocation: Relocation, bucket: str = BUCKET, segments: int = 1
) -> Iterator[tuple[Misplaced, ...]]:
    """Walk through all parts, page by page."""
    for segment in range(segments):
        after: str | None = None
        while True:
            page, after = relocation.rows_from(
                bucket, segment=segment, segments=segments, after=after
            )
            yield page
            if after is None:
                break


def walk(
    relocation: Relocation, bucket: str = BUCKET, segments: int = 1
) -> list[Misplaced]:
    return [row for page in pages(relocation, bucket, segments) for row in page]


def told(world: World, *rows: Occurrence | Dispatch) -> list[Misplaced]:
    """Return what a walk tells of some rows."""
    found = {row.key: row for row in walk(world.relocation)}
    return [found[row.key] for row in rows]


def relocate(world: World, rows: Sequence[Misplaced], shard: int = THERE) -> list[str]:
    return list(world.relocation.relocate(rows, [shard] * len(rows)))


def test_an_empty_timeline_has_no_rows(world: World) -> None:
    assert walk(world.relocation, segments=4) == []


def test_rows_of_earlier_buckets_are_left_out(world: World) -> None:
    early = planned("early", DUE - MINUTE)
    rows = [planned("a"), planned("b", DUE + MINUTE), planned("c", DUE + 999 * MINUTE)]
    past = samples.dispatch("early", DUE - timedelta(seconds=1))
    world.seed([early, past, *rows, samples.dispatch()])
    found = {row.key for row in walk(world.relocation)}
    assert found == {*(row.key for row in rows), samples.dispatch().key}


@pytest.mark.parametrize("segments", [1, 2, 7, 64])
def test_the_parts_have_every_row_once(world: World, segments: int) -> None:
    rows = [replace(planned(n, DUE + n // 8 * MINUTE), shard=n % 8) for n in range(60)]
    dispatches = [replace(samples.dispatch(n), shard=n % 8) for n in range(10)]
    world.seed(rows)
    world.seed(dispatches)
    keys = [row.key for row in walk(world.relocation, segments=segments)]
    expected = [row.key for row in rows] + [row.key for row in dispatches]
    assert sorted(keys) == sorted(expected)


def test_a_part_tells_the_same_rows_again(world: World) -> None:
    world.seed([replace(planned(n), shard=n) for n in range(20)])
    first, second = (walk(world.relocation, segments=3) for _ in range(2))
    assert Counter(row.key for row in first) == Counter(row.key for row in second)


def test_it_is_told_who_may_have_a_row_in_hand(world: World) -> None:
    plain = planned("planned")
    leaving = scheduling(planned("leaving")).row
    sent = acknowledging(scheduling(planned("sent")).row).row
    canceled = canceling(planned("canceled")).row
    deferred = replace(planned("deferred"), state=State.DEFERRED)
    rows: list[Occurrence | Dispatch] = [plain, leaving, sent, canceled, deferred]
    rows += [samples.dispatch(), DONE]
    world.seed(rows)
    assert [(row.is_open, row.is_leaving) for row in told(world, *rows)] == [
        (True, False),
        (True, True),
        (False, False),
        (False, False),
        (False, False),
        (True, False),
        (False, False),
    ]


def test_rows_of_both_kinds_are_moved_as_they_are(world: World) -> None:
    sent = acknowledging(scheduling(planned("sent")).row).row
    canceled, run = canceling(planned("gone")).row, replace(planned("run"), run="7")
    dispatch = samples.dispatch()
    rows: list[Occurrence] = [planned("plain"), sent, canceled, run]
    world.seed([*rows, dispatch, DONE])
    found = told(world, *rows, dispatch, DONE)
    assert relocate(world, found) == [Write.APPLIED] * 6
    page = world.timeline.page(BUCKET, THERE, consistent=True)
    moved = {row.key: row for row in page.rows}
    assert moved == {elsewhere(row.key): replace(row, shard=THERE) for row in rows}
    assert set(page.dispatches) == {
        replace(each, shard=THERE) for each in (dispatch, DONE)
    }
    left = world.timeline.page(BUCKET, SHARD, consistent=True)
    assert (left.rows, left.dispatches) == ((), ())


def test_each_row_goes_to_its_own_shard(world: World) -> None:
    rows = [planned(n) for n in range(25)]
    world.seed(rows)
    found = told(world, *rows)
    shards = [20 + number for number in range(25)]
    assert set(world.relocation.relocate(found, shards)) == {Write.APPLIED}
    keys = [replace(row.key, shard=20 + n) for n, row in enumerate(rows)]
    assert set(world.timeline.read(keys)) == set(keys)
    assert world.timeline.read([row.key for row in rows]) == {}


def test_nothing_to_move_is_nothing(world: World) -> None:
    assert relocate(world, []) == []


def test_a_row_that_changed_meanwhile_stays_as_it_is(world: World) -> None:
    row = planned()
    world.seed([row])
    found = told(world, row)
    change = scheduling(row)
    world.seed([change.row])
    assert relocate(world, found) == [Write.LOST]
    assert world.timeline.read([row.key, elsewhere(row.key)]) == {row.key: change.row}


def test_a_row_that_is_gone_is_not_put_elsewhere(world: World) -> None:
    row = planned()
    world.seed([row])
    found = told(world, row)
    assert relocate(world, found) == [Write.APPLIED]
    assert relocate(world, found, THERE + 1) == [Write.LOST]
    keys = [replace(row.key, shard=shard) for shard in (SHARD, THERE, THERE + 1)]
    assert set(world.timeline.read(keys)) == {elsewhere(row.key)}


def test_a_row_whose_place_is_taken_stays_where_it_is(world: World) -> None:
    row, other = planned(), replace(planned(), shard=THERE, sequence=9)
    world.seed([row, other])
    assert relocate(world, told(world, row)) == [Write.LOST]
    keys = [row.key, other.key]
    assert world.timeline.read(keys) == {row.key: row, other.key: other}


@pytest.mark.parametrize(
    ("here", "there", "answer"),
    [
        (DispatchState.PENDING, DispatchState.PENDING, Write.APPLIED),
        (DispatchState.DONE, DispatchState.PENDING, Write.APPLIED),
        (DispatchState.DONE, DispatchState.DONE, Write.APPLIED),
        # It is worked off first.
        (DispatchState.PENDING, DispatchState.DONE, Write.LOST),
    ],
)
def test_of_a_dispatch_row_in_both_places_one_is_left(
    world: World, here: DispatchState, there: DispatchState, answer: Write
) -> None:
    stray = replace(samples.dispatch(), state=here)
    like = replace(stray, shard=THERE, state=there, written_at=DUE)
    plain = planned()
    world.seed([stray, like, plain])
    found = told(world, stray, plain)
    assert relocate(world, found) == [answer, Write.APPLIED]
    left = world.timeline.look_up([stray.key, like.key]).dispatches
    expected = {like} if answer is Write.APPLIED else {stray, like}
    assert set(left) == expected


def test_a_dispatch_row_that_was_done_meanwhile_is_not_removed(world: World) -> None:
    stray = samples.dispatch()
    like = replace(stray, shard=THERE)
    world.seed([stray, like])
    found = told(world, stray)
    done = replace(stray, state=DispatchState.DONE)
    world.seed([done])
    assert relocate(world, found) == [Write.LOST]
    assert set(world.timeline.look_up([stray.key, like.key]).dispatches) == {done, like}


@pytest.mark.parametrize("place", [0, 3, 5])
def test_one_that_cannot_be_moved_holds_up_no_other(world: World, place: int) -> None:
    rows = [planned(n) for n in range(6)]
    world.seed(rows)
    found = told(world, *rows)
    world.seed([canceling(rows[place]).row])
    expected = [Write.APPLIED] * 6
    expected[place] = Write.LOST
    assert relocate(world, found) == expected
    page = world.timeline.page(BUCKET, THERE, consistent=True)
    assert len(page.rows) == 5
    left = world.timeline.page(BUCKET, SHARD, consistent=True)
    assert left.rows == (canceling(rows[place]).row,)


def test_a_row_is_put_where_both_places_are_free(world: World) -> None:
    row = planned()
    assert world.relocation.plan_apart(row, elsewhere(row.key)) is Write.APPLIED
    assert world.timeline.read([row.key]) == {row.key: row}


def test_a_row_that_is_there_stands(world: World) -> None:
    row = planned()
    world.seed([row])
    other = replace(row, sequence=9)
    assert world.relocation.plan_apart(other, elsewhere(row.key)) is Write.EXISTS
    assert world.timeline.read([row.key]) == {row.key: row}


def test_a_row_that_is_in_the_other_place_stands(world: World) -> None:
    row = planned()
    there = replace(row, shard=THERE)
    world.seed([there])
    assert world.relocation.plan_apart(row, there.key) is Write.EXISTS
    assert world.timeline.read([row.key, there.key]) == {there.key: there}


def test_many_rows_are_told_page_by_page(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_shards, "PAGE", 3)
    rows = [replace(planned(n, DUE + n % 3 * MINUTE), shard=n % 2) for n in range(20)]
    world.seed([planned("early", DUE - MINUTE), *rows])
    found = [row.key for row in walk(world.relocation, segments=2)]
    assert sorted(found) == sorted(row.key for row in rows)


DATABASES = ["moto", pytest.param("engine", marks=pytest.mark.engine)]


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def put(database: Database, item: dict[str, Any]) -> None:
    database.client.put_item(TableName=database.tables.timeline, Item=item)


def items(database: Database) -> list[dict[str, Any]]:
    found = database.client.scan(TableName=database.tables.timeline)["Items"]
    return sorted(found, key=lambda item: item["row_key"]["S"])


def padded(row: Occurrence, size: int) -> dict[str, Any]:
    return {**encode_occurrence(row), "padding": {"S": "x" * size}}


def test_a_call_reads_a_megabyte_and_the_next_goes_on(database: Database) -> None:
    rows = [replace(planned(n), shard=n % 2) for n in range(8)]
    for row in rows:
        put(database, padded(row, 300_000))
    found = list(pages(DynamoRelocation(database)))
    assert len(found) > 1
    keys = [row.key for page in found for row in page]
    assert sorted(keys) == sorted(row.key for row in rows)


def test_rows_of_whatever_release_are_moved_with_all_they_have(
    database: Database,
) -> None:
    """Also those that this release cannot read."""
    other = {**encode_occurrence(planned("other")), "schema": {"N": "999"}}
    newer = {**encode_dispatch(samples.dispatch()), "more": {"M": {"a": {"N": "1.5"}}}}
    stateless = encode_occurrence(planned("stateless"))
    del stateless["state"]
    written = [other, newer, stateless]
    for item in written:
        put(database, item)
    relocation = DynamoRelocation(database)
    found = walk(relocation)
    assert {(row.is_open, row.is_leaving) for row in found} == {(True, False)}
    answers = relocation.relocate(found, [THERE] * 3)
    assert answers == [Write.APPLIED] * 3
    moved = [{**item, "bucket_shard": {"S": f"{BUCKET}#0011"}} for item in written]
    assert items(database) == sorted(moved, key=lambda item: item["row_key"]["S"])


def test_a_row_of_nothing_but_its_key_is_moved(database: Database) -> None:
    key = planned().key
    put(database, {"bucket_shard": {"S": key.partition}, "row_key": {"S": key.sort}})
    relocation = DynamoRelocation(database)
    found = walk(relocation)
    assert relocation.relocate(found, [THERE]) == [Write.APPLIED]
    assert [item["bucket_shard"]["S"] for item in items(database)] == [f"{BUCKET}#0011"]


def test_a_change_of_what_this_release_cannot_read_is_noticed(
    database: Database,
) -> None:
    row = {**encode_occurrence(planned()), "more": {"S": "of a later release"}}
    put(database, row)
    relocation = DynamoRelocation(database)
    found = walk(relocation)
    put(database, {**row, "more": {"S": "changed"}})
    assert relocation.relocate(found, [THERE]) == [Write.LOST]
    assert items(database) == [{**row, "more": {"S": "changed"}}]


def test_what_another_adapter_told_of_is_refused(moto_database: Database) -> None:
    strange = Misplaced(planned().key, is_open=True, is_leaving=False, token=None)
    with pytest.raises(TypeError):
        DynamoRelocation(moto_database).relocate([strange], [THERE])
