"""The `Schedules` port: changing, and handing over from version to version."""

from dataclasses import replace

import pytest
from hourbell.domain.definition import (
    Schedule,
    ScheduleState,
    Tracking,
    Version,
    VersionRef,
)
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.occurrence import Occurrence
from hourbell.usecases.ports import Creation, Write

from tests.conformance import samples
from tests.conformance.samples import MINUTE, NOW, planned, succession
from tests.conformance.worlds import World


def create(world: World, label: object = "one", quota: int = 9) -> Creation:
    return world.schedules.create(
        samples.schedule(label),
        samples.current(label),
        samples.planned(label),
        quota=quota,
    )


def logged(world: World, number: int) -> Version:
    ref = VersionRef(samples.schedule_id("one"), number)
    return world.schedules.versions([ref], consistent=True)[ref]


def heir(number: int = 2) -> Version:
    """Return the new version with what a handover finds out."""
    return replace(
        succession(to=number).version,
        effective_from=NOW + 7 * MINUTE,
        base_sequence=11,
    )


def first_row(number: int = 2) -> Occurrence:
    return replace(planned(due=samples.DUE + 9 * MINUTE), version=number, sequence=12)


def relabeled(revision: int) -> Schedule:
    return replace(
        samples.schedule(),
        description="",
        tags={"team": "other"},
        revision=revision,
        updated_at=NOW + MINUTE,
    )


def test_relabel_changes_description_tags_and_revision_only(world: World) -> None:
    create(world)
    stranger = replace(relabeled(2), name="x", state=ScheduleState.PAUSED, version=9)

    assert world.schedules.relabel(stranger, revision=1) is Write.APPLIED

    assert world.schedules.find(stranger.schedule_id) == relabeled(2)


def test_relabel_against_another_revision_is_lost(world: World) -> None:
    assert world.schedules.relabel(relabeled(2), revision=1) is Write.LOST
    assert world.schedules.find(samples.schedule_id("one")) is None
    create(world)

    assert world.schedules.relabel(relabeled(3), revision=2) is Write.LOST
    assert world.schedules.find(samples.schedule_id("one")) == samples.schedule()


def test_succeed_stores_definition_versions_and_dispatch_row(world: World) -> None:
    create(world)
    change = succession()

    assert world.schedules.succeed(change) is Write.APPLIED

    assert world.schedules.find(change.schedule.schedule_id) == change.schedule
    assert logged(world, 2) == change.version
    assert logged(world, 1) == change.ended
    page = world.timeline.page(samples.BUCKET, samples.SHARD, consistent=True)
    assert page.dispatches == (change.dispatch,)
    assert page.rows == (samples.planned(),)
    assert world.schedules.count("acme") == 1
    assert world.schedules.find_by_name("acme", change.schedule.name) is not None


def test_what_a_change_empties_is_gone(world: World) -> None:
    create(world)
    change = succession()
    assert change.schedule.definition.flexible_window_seconds == 0

    world.schedules.succeed(change)

    stored = world.schedules.find(change.schedule.schedule_id)
    assert stored is not None
    assert (stored.description, stored.tags, stored.home_region) == ("", {}, "")
    assert stored.definition == change.schedule.definition
    assert stored.definition.tracking is Tracking.TRACKED


def unchanged(world: World, before: object) -> bool:
    return world.schedules.find(samples.schedule_id("one")) == before


def test_succeed_against_another_revision_is_lost(world: World) -> None:
    create(world)

    assert world.schedules.succeed(succession(revision=4)) is Write.LOST

    assert unchanged(world, samples.schedule())
    assert logged(world, 1) == samples.current()
    assert world.timeline.page(samples.BUCKET, samples.SHARD).dispatches == ()
    ref = VersionRef(samples.schedule_id("one"), 2)
    assert world.schedules.versions([ref], consistent=True) == {}


def test_succeed_of_nothing_is_lost(world: World) -> None:
    assert world.schedules.succeed(succession()) is Write.LOST
    assert unchanged(world, None)
    assert world.schedules.version_log(samples.schedule_id("one")) == ()


def test_succeed_during_a_handover_is_lost(world: World) -> None:
    create(world)
    world.schedules.succeed(succession())

    assert world.schedules.succeed(succession(to=3)) is Write.LOST

    assert unchanged(world, succession().schedule)
    assert logged(world, 2).ends_at is None


def test_succeed_of_a_version_that_is_not_in_the_log_is_lost(world: World) -> None:
    create(world)
    change = succession(to=4, revision=1)

    assert world.schedules.succeed(change) is Write.LOST

    assert unchanged(world, samples.schedule())
    assert len(world.schedules.version_log(change.schedule.schedule_id)) == 1


def test_succeed_over_a_dispatch_row_that_is_there_is_lost(world: World) -> None:
    create(world)
    done = replace(samples.dispatch(), state=DispatchState.DONE)
    world.seed([done])

    assert world.schedules.succeed(succession()) is Write.LOST

    assert unchanged(world, samples.schedule())
    page = world.timeline.page(samples.BUCKET, samples.SHARD, consistent=True)
    assert page.dispatches == (done,)


def test_a_first_row_whose_key_is_taken_stops_a_take_over(world: World) -> None:
    create(world)
    change = succession()
    world.schedules.succeed(change)
    world.seed([first_row()])

    answer = world.schedules.take_over(
        heir(), change.ended.ref, replace(first_row(), sequence=99)
    )

    assert answer is Write.LOST
    assert logged(world, 2) == change.version
    assert unchanged(world, change.schedule)
    assert world.timeline.read([first_row().key])[first_row().key] == first_row()


def test_take_over_writes_the_boundary_and_the_first_row_once(world: World) -> None:
    create(world)
    change = succession()
    world.schedules.succeed(change)

    answer = world.schedules.take_over(heir(), change.ended.ref, first_row())

    assert answer is Write.APPLIED
    assert logged(world, 2) == heir()
    ended = replace(change.ended, effective_to=heir().effective_from)
    assert logged(world, 1) == ended
    assert unchanged(world, replace(change.schedule, handover=False))
    assert world.timeline.read([first_row().key]) == {first_row().key: first_row()}

    late = replace(heir(), effective_from=NOW + 99 * MINUTE, base_sequence=99)
    other = replace(first_row(), scheduled_for=samples.DUE + 99 * MINUTE)
    assert world.schedules.take_over(late, change.ended.ref, other) is Write.LOST
    assert logged(world, 2) == heir()
    assert logged(world, 1) == ended
    assert world.timeline.read([other.key]) == {}


def test_a_version_may_take_over_without_a_first_row(world: World) -> None:
    create(world)
    change = succession(state=ScheduleState.PAUSED)
    world.schedules.succeed(change)
    paused = replace(change.version, effective_from=NOW + 7 * MINUTE)

    assert world.schedules.take_over(paused, change.ended.ref, None) is Write.APPLIED

    assert logged(world, 2) == paused
    assert logged(world, 2).state is ScheduleState.PAUSED


def test_take_over_without_a_handover_is_lost(world: World) -> None:
    ended = VersionRef(samples.schedule_id("one"), 1)
    assert world.schedules.take_over(heir(), ended, None) is Write.LOST
    create(world)

    assert world.schedules.take_over(heir(), ended, None) is Write.LOST

    assert unchanged(world, samples.schedule())
    assert logged(world, 1) == samples.current()
    assert len(world.schedules.version_log(ended.schedule_id)) == 1


def test_a_handover_that_is_done_lets_the_next_one_begin(world: World) -> None:
    create(world)
    change = succession()
    world.schedules.succeed(change)
    world.schedules.take_over(heir(), change.ended.ref, None)

    following = succession(to=3)
    assert world.schedules.succeed(following) is Write.APPLIED
    assert (
        world.schedules.take_over(heir(3), following.ended.ref, None) is Write.APPLIED
    )

    numbers = [v.version for v in world.schedules.version_log(heir().schedule_id)]
    assert numbers == [3, 2, 1]
    assert logged(world, 2).effective_to == heir(3).effective_from


def test_a_relabel_during_a_handover_leaves_it_under_way(world: World) -> None:
    create(world)
    change = succession()
    world.schedules.succeed(change)
    labeled = replace(change.schedule, description="new", revision=3, handover=False)

    assert world.schedules.relabel(labeled, revision=2) is Write.APPLIED

    assert unchanged(world, replace(labeled, handover=True))
    answer = world.schedules.take_over(heir(), change.ended.ref, None)
    assert answer is Write.APPLIED
    assert unchanged(world, labeled)


def test_a_cancel_frees_name_and_quota(world: World) -> None:
    create(world, quota=1)
    change = succession(state=ScheduleState.CANCELED)

    assert world.schedules.succeed(change) is Write.APPLIED

    assert world.schedules.count("acme") == 0
    assert world.schedules.find_by_name("acme", change.schedule.name) is None
    assert unchanged(world, change.schedule)
    heirs = replace(samples.schedule("heir"), name=change.schedule.name)
    answer = world.schedules.create(
        heirs, samples.current("heir"), samples.planned("heir"), quota=1
    )
    assert answer is Creation.CREATED


@pytest.mark.parametrize("state", [ScheduleState.ACTIVE, ScheduleState.PAUSED])
def test_other_changes_keep_name_and_quota(world: World, state: ScheduleState) -> None:
    create(world)

    assert world.schedules.succeed(succession(state=state)) is Write.APPLIED

    assert world.schedules.count("acme") == 1
    name = samples.schedule().name
    assert world.schedules.find_by_name("acme", name) == samples.schedule_id("one")


def test_a_cancel_that_is_lost_frees_nothing(world: World) -> None:
    create(world)
    change = succession(state=ScheduleState.CANCELED, revision=7)

    assert world.schedules.succeed(change) is Write.LOST

    assert world.schedules.count("acme") == 1
    assert world.schedules.find_by_name("acme", change.schedule.name) is not None


def test_a_name_that_another_schedule_has_meanwhile_is_not_freed(world: World) -> None:
    create(world)
    canceled = succession(state=ScheduleState.CANCELED)
    world.schedules.succeed(canceled)
    world.schedules.take_over(heir(), canceled.ended.ref, None)
    name = canceled.schedule.name
    world.schedules.create(
        replace(samples.schedule("heir"), name=name),
        samples.current("heir"),
        samples.planned("heir"),
        quota=1,
    )

    again = succession(state=ScheduleState.CANCELED, to=3)

    assert world.schedules.succeed(again) is Write.LOST
    assert world.schedules.count("acme") == 1
    assert world.schedules.find_by_name("acme", name) == samples.schedule_id("heir")


def grown(world: World, versions: int) -> list[Version]:
    """Store a schedule with so many versions; return its log, oldest first."""
    create(world)
    for number in range(2, versions + 1):
        change = succession(to=number)
        assert world.schedules.succeed(change) is Write.APPLIED
        taken = world.schedules.take_over(heir(number), change.ended.ref, None)
        assert taken is Write.APPLIED
    return [logged(world, number) for number in range(1, versions + 1)]


def test_the_version_log_is_newest_first_and_paged(world: World) -> None:
    log = grown(world, 11)
    schedule_id = samples.schedule_id("one")

    newest = world.schedules.version_log(schedule_id, limit=4)
    older = world.schedules.version_log(schedule_id, before=8, limit=4)
    oldest = world.schedules.version_log(schedule_id, before=4)

    assert [*newest, *older, *oldest] == log[::-1]
    assert len(newest) == len(older) == 4
    for nothing in (0, 1):
        assert world.schedules.version_log(schedule_id, before=nothing) == ()
    assert world.schedules.version_log(samples.schedule_id("nobody")) == ()
