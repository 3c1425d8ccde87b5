"""The `Parking` port."""

from dataclasses import replace
from datetime import timedelta

from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.layout import SCHEMA
from hourbell.adapters.dynamodb.parking import encode_parked
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.usecases.ports import Write

from tests.conformance.samples import DUE, MINUTE, NOW, planned
from tests.conformance.worlds import World, dynamo_world

GROUP = 2


def parked(row: Occurrence, **members: object) -> ParkedRow:
    value = ParkedRow(
        GROUP,
        row.key,
        ParkReason.TENANT_GONE,
        since=NOW,
        next_try_at=NOW + 15 * MINUTE,
        tenant_id="acme",
    )
    return replace(value, **members)  # type: ignore[arg-type]


def test_of_a_group_without_parked_rows_there_are_none(world: World) -> None:
    assert world.parking.parked(GROUP) == ()


def test_what_was_parked_is_found_in_key_order_and_by_group(world: World) -> None:
    late, soon = parked(planned(1, DUE + MINUTE)), parked(planned(2))
    other = replace(parked(planned(3)), group=GROUP + 1)
    for row in (late, soon, other):
        assert world.parking.park(row) is Write.APPLIED

    assert world.parking.parked(GROUP) == (soon, late)
    assert world.parking.parked(GROUP + 1) == (other,)


def test_a_row_is_parked_once_and_the_first_reason_stays(world: World) -> None:
    row = parked(planned())
    world.parking.park(row)

    again = replace(row, reason=ParkReason.UNCLEAR, since=NOW + MINUTE)

    assert world.parking.park(again) is Write.EXISTS
    assert world.parking.parked(GROUP) == (row,)


def test_a_row_whose_tenant_is_not_known_and_one_of_a_run_can_be_parked(
    world: World,
) -> None:
    rows = [
        parked(planned(1), tenant_id=None, reason=ParkReason.ROW_UNREADABLE),
        parked(replace(planned(2), run="0123456789abcdef")),
    ]
    for row in rows:
        world.parking.park(row)

    assert set(world.parking.parked(GROUP)) == set(rows)


def test_putting_off_counts_and_only_the_next_try_does(world: World) -> None:
    row = parked(planned())
    world.parking.park(row)
    later = replace(row, tries=1, next_try_at=NOW + 45 * MINUTE)

    assert world.parking.put_off(replace(later, tries=2)) is Write.LOST
    assert world.parking.put_off(later) is Write.APPLIED
    assert world.parking.put_off(replace(later, since=DUE)) is Write.LOST
    assert world.parking.parked(GROUP) == (later,)


def test_what_is_not_parked_cannot_be_put_off_or_forgotten(world: World) -> None:
    row = parked(planned())

    assert world.parking.put_off(replace(row, tries=1)) is Write.LOST
    assert world.parking.unpark(row) is Write.LOST
    assert world.parking.parked(GROUP) == ()


def test_a_row_is_forgotten_only_as_it_was_seen(world: World) -> None:
    row = parked(planned())
    world.parking.park(row)
    world.parking.put_off(replace(row, tries=1))

    assert world.parking.unpark(row) is Write.LOST
    assert world.parking.unpark(replace(row, tries=1)) is Write.APPLIED
    assert world.parking.parked(GROUP) == ()
    assert world.parking.park(row) is Write.APPLIED


def test_pages_go_through_a_group_in_key_order(world: World) -> None:
    rows = [parked(planned(n, DUE + n * MINUTE)) for n in range(5)]
    for row in reversed(rows):
        world.parking.park(row)
    world.parking.park(replace(parked(planned(9)), group=GROUP + 1))

    found: list[ParkedRow] = []
    after = None
    for _ in range(4):
        page = world.parking.page(GROUP, after=after, limit=2)
        assert len(page.rows) <= 2
        found += page.rows
        after = page.after
        if after is None:
            break

    assert found == rows
    assert after is None
    assert world.parking.page(GROUP, after=rows[-1].place, limit=2).rows == ()


def test_a_parked_row_is_found_by_its_key(world: World) -> None:
    row = parked(planned())
    world.parking.park(row)

    assert world.parking.find(GROUP, row.key) == row
    assert world.parking.find(GROUP + 1, row.key) is None
    assert world.parking.find(GROUP, planned(2).key) is None


def test_what_was_asked_for_is_tried_at_once_and_no_older_look_undoes_it(
    world: World,
) -> None:
    row = parked(planned())
    world.parking.park(row)
    asked = row.asked_for(NOW + MINUTE)

    assert world.parking.ask(asked) is Write.APPLIED
    assert world.parking.parked(GROUP) == (asked,)
    # A pass that tried the row before it was asked for.
    late = replace(row, tries=1, next_try_at=NOW + 45 * MINUTE)
    assert world.parking.put_off(late) is Write.LOST
    assert world.parking.unpark(row) is Write.LOST
    # The next one has seen it.
    assert world.parking.put_off(replace(late, asked_at=asked.asked_at)) is (
        Write.APPLIED
    )
    assert world.parking.ask(asked.asked_for(NOW + 2 * MINUTE)) is Write.LOST
    assert world.parking.unpark(replace(late, asked_at=asked.asked_at)) is (
        Write.APPLIED
    )


def test_asking_again_counts_as_of_then(world: World) -> None:
    row = parked(planned())
    world.parking.park(row)
    first, second = row.asked_for(NOW + MINUTE), row.asked_for(NOW + 2 * MINUTE)
    world.parking.ask(first)

    assert world.parking.ask(second) is Write.APPLIED
    assert world.parking.unpark(first) is Write.LOST
    assert world.parking.unpark(second) is Write.APPLIED


def test_what_is_not_parked_cannot_be_asked_for(world: World) -> None:
    assert world.parking.ask(parked(planned()).asked_for(NOW)) is Write.LOST
    assert world.parking.parked(GROUP) == ()


def test_more_parked_rows_than_a_page_holds_are_all_found(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    # 1 MB is one answer of the service: the names make each item 1 KB and more.
    rows = [parked(planned(n), tenant_id="t" * 1500) for n in range(800)]
    for row in rows:
        moto_database.client.put_item(
            TableName=moto_database.tables.control, Item=encode_parked(row)
        )

    assert len(world.parking.parked(GROUP)) == 800


def test_a_parked_row_of_another_release_hides_no_other(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    kept = parked(planned(1))
    world.parking.park(kept)
    for number, damage in enumerate(
        [{"schema": {"N": str(SCHEMA + 8)}}, {"reason": {"S": "LOST_IN_SPACE"}}]
    ):
        moto_database.client.put_item(
            TableName=moto_database.tables.control,
            Item=encode_parked(parked(planned(2 + number))) | damage,
        )

    assert world.parking.parked(GROUP) == (kept,)
    assert world.parking.page(GROUP, after=None, limit=9).rows == (kept,)


def test_a_parked_row_never_expires() -> None:
    item = encode_parked(parked(planned(), next_try_at=NOW + timedelta(days=99)))

    assert "expires_at" not in item
