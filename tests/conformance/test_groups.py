"""The `ShardGroups` port."""

from dataclasses import replace
from datetime import timedelta

from hourbell.usecases.ports import Lease, Write

from tests.conformance.samples import DUE as FLOOR
from tests.conformance.samples import MINUTE, NOW
from tests.conformance.worlds import World

GROUP = 2


def acquire(world: World, holder: str, *, at: timedelta = timedelta()) -> Lease | None:
    return world.groups.acquire(GROUP, holder, now=NOW + at, duration=MINUTE)


def held(world: World, holder: str, *, at: timedelta = timedelta()) -> Lease:
    lease = acquire(world, holder, at=at)
    assert lease is not None
    return lease


def test_without_a_record_there_is_no_lease(world: World) -> None:
    assert acquire(world, "a") is None


def test_the_first_lease_starts_at_the_floor(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)

    lease = held(world, "a")

    assert lease == Lease(GROUP, "a", 1, NOW + MINUTE, FLOOR, {})


def test_ensure_keeps_the_first_floor(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    world.groups.ensure(GROUP, FLOOR + MINUTE)
    world.fresh_groups().ensure(GROUP, FLOOR + 2 * MINUTE)

    assert held(world, "a").floor == FLOOR


def test_ensure_leaves_a_lease_alone(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    held(world, "a")
    world.fresh_groups().ensure(GROUP, FLOOR)

    assert acquire(world, "b") is None


def test_groups_are_independent(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    world.groups.ensure(GROUP + 1, FLOOR + MINUTE)
    held(world, "a")

    other = world.groups.acquire(GROUP + 1, "b", now=NOW, duration=MINUTE)

    assert other == Lease(GROUP + 1, "b", 1, NOW + MINUTE, FLOOR + MINUTE, {})


def test_a_live_lease_keeps_others_out_until_it_expires(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    held(world, "a")

    assert acquire(world, "b", at=MINUTE - timedelta(microseconds=1)) is None
    lease = held(world, "b", at=MINUTE)
    assert (lease.holder, lease.generation) == ("b", 2)
    assert lease.expires_at == NOW + 2 * MINUTE


def test_the_holder_may_acquire_again(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    first = held(world, "a")

    second = held(world, "a", at=timedelta(seconds=30))

    assert second.generation == first.generation + 1
    assert world.groups.release(first, {}) is Write.LOST
    assert world.groups.release(second, {}) is Write.APPLIED


def test_a_released_lease_is_free_and_watermarks_are_kept(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    marks = {2: FLOOR + MINUTE, 6: FLOOR + 5 * MINUTE}

    assert world.groups.release(held(world, "a"), marks) is Write.APPLIED

    lease = held(world, "b")
    assert lease == Lease(GROUP, "b", 2, NOW + MINUTE, FLOOR, marks)


def test_a_release_keeps_watermarks_that_it_does_not_name(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    world.groups.release(held(world, "a"), {2: FLOOR, 6: FLOOR})

    world.groups.release(held(world, "b"), {6: FLOOR + MINUTE})

    assert held(world, "c").watermarks == {2: FLOOR, 6: FLOOR + MINUTE}


def test_a_release_after_a_takeover_is_lost_and_stores_nothing(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    old = held(world, "a")
    held(world, "b", at=MINUTE)

    assert world.groups.release(old, {2: FLOOR + MINUTE}) is Write.LOST
    assert acquire(world, "a", at=MINUTE) is None
    assert held(world, "c", at=2 * MINUTE).watermarks == {}


def test_a_late_release_counts_while_nobody_took_over(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")

    assert world.groups.release(lease, {2: FLOOR + MINUTE}) is Write.APPLIED


def test_a_release_may_be_repeated_after_a_lost_answer(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")

    answers = [world.groups.release(lease, {2: FLOOR}) for _ in range(2)]

    assert answers == [Write.APPLIED, Write.APPLIED]
    held(world, "b")
    assert world.groups.release(lease, {2: FLOOR + MINUTE}) is Write.LOST


def test_another_holder_with_the_right_generation_is_lost(world: World) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")

    assert world.groups.release(replace(lease, holder="b"), {}) is Write.LOST


def test_a_finished_pass_is_remembered_and_an_unfinished_one_changes_nothing(
    world: World,
) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")
    assert lease.passed_at is None
    world.groups.release(lease, {}, NOW)
    assert held(world, "b").passed_at == NOW
    world.groups.release(held(world, "b"), {}, None)
    assert held(world, "c").passed_at == NOW


def test_the_pass_that_was_through_with_its_second_looks_is_remembered(
    world: World,
) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")
    assert lease.looked_at is None
    world.groups.release(lease, {}, None, NOW)
    second = held(world, "b")
    assert (second.passed_at, second.looked_at) == (None, NOW)
    world.groups.release(second, {}, NOW + MINUTE, None)
    third = held(world, "c")
    assert (third.passed_at, third.looked_at) == (NOW + MINUTE, NOW)


def test_up_to_where_last_looks_got_is_remembered_and_may_go_back(
    world: World,
) -> None:
    world.groups.ensure(GROUP, FLOOR)
    lease = held(world, "a")
    assert lease.looked_until is None
    world.groups.release(lease, {}, None, None, NOW)
    second = held(world, "b")
    assert (second.looked_at, second.looked_until) == (None, NOW)
    world.groups.release(second, {}, NOW, NOW)
    third = held(world, "c")
    assert third.looked_until == NOW
    world.groups.release(third, {}, looked_until=FLOOR)
    assert held(world, "d").looked_until == FLOOR
