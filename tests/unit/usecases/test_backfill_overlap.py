"""A backfill may say itself what becomes of its occurrences that would overlap."""

from datetime import datetime, timedelta

import pytest
from hourbell.domain.definition import Tracking
from hourbell.domain.errors import InvalidInput
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.schedule import Timing
from hourbell.usecases.backfill_values import Outcome
from hourbell.usecases.work_values import Answer

from tests.unit.usecases.test_backfill import fill
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, START, World

HOUR = timedelta(hours=1)


def filled(shop: Shop, overlap: Overlap | None, count: int = 3) -> list[str]:
    """Make up for hours before the schedule was, all due at once; return their ids."""
    world = shop.world
    begin = START - count * HOUR
    done = fill(world, shop.first, begin, START, overlap=overlap, per_minute=6_000)
    assert [item.outcome for item in done.items] == [Outcome.CREATED] * count
    for _ in range(2):
        shop.tick()
        world.clock.advance(MINUTE)
    names = [item.occurrence_id for item in done.items]
    return [name for name in names if name is not None]


def answers(shop: Shop, names: list[str]) -> list[Answer]:
    return [shop.claim(name)[0].answer for name in names]


@pytest.mark.parametrize("own", Overlap)
@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        (Overlap.ALLOW, [Answer.RUN, Answer.RUN, Answer.RUN]),
        (Overlap.SKIP_IF_RUNNING, [Answer.RUN, Answer.SKIP, Answer.SKIP]),
        (Overlap.QUEUE_ONE, [Answer.RUN, Answer.WAIT, Answer.SKIP]),
    ],
)
def test_its_occurrences_have_the_policy_that_it_names(
    own: Overlap, overlap: Overlap, expected: list[Answer]
) -> None:
    shop = Shop("0 * * * *", overlap=own)
    assert answers(shop, filled(shop, overlap)) == expected


@pytest.mark.parametrize("own", Overlap)
def test_without_one_they_have_the_schedules(own: Overlap) -> None:
    shop = Shop("0 * * * *", overlap=own)
    names = filled(shop, None)
    assert shop.row(names[0]).overlap is None
    second = {
        Overlap.ALLOW: Answer.RUN,
        Overlap.SKIP_IF_RUNNING: Answer.SKIP,
        Overlap.QUEUE_ONE: Answer.WAIT,
    }
    assert answers(shop, names[:2]) == [Answer.RUN, second[own]]


def test_what_may_overlap_keeps_the_schedules_own_out_of_nothing() -> None:
    shop = Shop("0 * * * *", overlap=Overlap.SKIP_IF_RUNNING)
    first, second, _ = filled(shop, Overlap.ALLOW)
    token = shop.run(first)
    shop.until(shop.first.scheduled_for)
    own = shop.run(shop.first.occurrence_id, seconds=7_200)
    # Neither its claim nor its end is anything to the one that has the place.
    shop.run(second)
    shop.complete(first, token)
    (next_one,) = filled_later(shop)
    assert answers(shop, [next_one]) == [Answer.SKIP]
    shop.complete(shop.first.occurrence_id, own)


def filled_later(shop: Shop) -> list[str]:
    """Let the schedule's next time come; return its occurrence's id."""
    due = shop.first.scheduled_for + HOUR
    shop.until(due)
    return [r.occurrence_id for r in shop.world.rows() if r.scheduled_for == due]


def test_the_one_that_waits_is_woken_when_the_first_is_over() -> None:
    shop = Shop("0 * * * *")
    first, second, _ = filled(shop, Overlap.QUEUE_ONE)
    token = shop.run(first)
    assert answers(shop, [second]) == [Answer.WAIT]
    shop.complete(first, token)
    assert shop.row(second).state is State.SCHEDULED
    assert answers(shop, [second]) == [Answer.RUN]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("overlap", [Overlap.SKIP_IF_RUNNING, Overlap.QUEUE_ONE])
def test_what_is_untracked_can_have_none(overlap: Overlap, *, dry_run: bool) -> None:
    shop = Shop("0 * * * *", tracking=Tracking.UNTRACKED)
    begin: datetime = START - 3 * HOUR
    with pytest.raises(InvalidInput) as refused:
        fill(shop.world, shop.first, begin, overlap=overlap, dry_run=dry_run)
    assert refused.value.code == "overlap_needs_tracking"
    assert shop.world.store.backfills == {}
    done = fill(shop.world, shop.first, begin, overlap=Overlap.ALLOW, dry_run=dry_run)
    assert len(done.items) == 3


def test_a_missed_time_that_is_made_up_for_has_it_too() -> None:
    world = World()
    row = world.add(
        Timing("0 * * * *"),
        tracking=Tracking.TRACKED,
        misfire=Misfire(MisfirePolicy.SKIP),
    )
    world.clock.set(row.scheduled_for + 30 * MINUTE)
    world.scan()
    (missed,) = world.rows(State.MISSED)
    fill(world, row, row.scheduled_for, overlap=Overlap.QUEUE_ONE)
    reopened = world.store.row(missed.key)
    assert reopened is not None
    assert reopened.overlap is Overlap.QUEUE_ONE
