"""That the model judges what was sent by what was there when it was sent."""

from dataclasses import replace

from hourbell.domain.occurrence import CancelReason, Occurrence, State

from tests.simulation.crash_world import CrashWorld
from tests.simulation.lives import MINUTE, SECOND, Act, Life
from tests.simulation.log import Spec
from tests.simulation.model import Model
from tests.simulation.rules import DAY, Rule

# Due every minute from 12:01 on, materialized again only at 12:12, canceled at 12:17.
LATE = Life(
    "late, then canceled",
    (
        Act(SECOND, "create", Spec(Rule("every", 1), 1, "CATCH_UP", 3)),
        Act(17 * MINUTE, "cancel"),
    ),
    21 * MINUTE,
    (90 * SECOND, 12 * MINUTE),
)


def lived() -> CrashWorld:
    """Return a world in which overdue times ran, and nothing is wrong."""
    world = CrashWorld(LATE)
    world.live()
    assert world.log.violations == []
    return world


def caught_up(world: CrashWorld) -> list[Occurrence]:
    """Return the rows that ran overdue, the earliest first."""
    rows = [row for row in world.store.all_rows() if row.misfire and row.sends]
    return sorted(rows, key=lambda row: row.scheduled_for)


def canceled(world: CrashWorld, row: Occurrence) -> Occurrence:
    """Return the row that a stop puts in the place of one weeks later."""
    later = world.now + 16 * DAY
    return replace(
        row,
        state=State.CANCELED,
        misfire=False,
        scheduled_at=None,
        available_at=None,
        reason=CancelReason.CANCELED,
        finished_at=later,
        expires_at=later + 15 * DAY,
        decision=None,
    )


def test_what_ran_late_and_expired_is_judged_by_what_it_was() -> None:
    world = lived()
    rows = caught_up(world)
    assert len(rows) == 3
    for row in rows:
        del world.store.rows[row.key.partition][row.key.sort]
        world.store.put_row(canceled(world, row))

    Model(world).judge()

    assert world.log.violations == []


def test_the_account_of_a_gap_row_holds_when_its_place_is_taken_anew() -> None:
    world = lived()
    (gap,) = [row for row in world.store.all_rows() if row.decision is not None]
    assert gap.decision is not None
    assert gap.decision.count > 4
    del world.store.rows[gap.key.partition][gap.key.sort]
    world.store.put_row(canceled(world, gap))

    Model(world).judge()

    assert world.log.violations == []


def test_a_row_that_stands_tells_the_lane_of_its_messages() -> None:
    world = lived()
    row = caught_up(world)[0]
    world.store.put_row(replace(row, misfire=False))

    Model(world).judge()

    broken = {each.invariant for each in world.log.violations}
    assert broken >= {"a message goes to its lane", "an occurrence has its own time"}
