"""The pace of a replay follows what it let go, whatever became of that since."""

from dataclasses import replace
from datetime import timedelta

from hourbell.domain.job import JobState, Target
from hourbell.domain.occurrence import State
from hourbell.domain.retry import ErrorClass, Failure, Retry
from hourbell.usecases.occurrences import replay_occurrence

from tests.unit.usecases.jobs import run, stored
from tests.unit.usecases.test_replay_letters import outcomes, results, start
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, SECOND, World

FATAL = Failure(ErrorClass.PERMANENT, "Bad", "never")
BUSY = Failure(ErrorClass.THROTTLED, "Busy", "later", 6 * 3_600)


def test_a_long_wait_of_what_was_replayed_before_delays_no_other() -> None:
    world = World()
    world.store.principals["1:user/ann"] = "acme"
    shops = [Shop("30 13 * * *", retry=Retry(), world=world) for _ in range(3)]
    shops[0].due()
    names = [shop.first.occurrence_id for shop in shops]
    for shop, name in zip(shops, names, strict=True):
        shop.fail(name, shop.run(name), FATAL)
    world.clock.advance(MINUTE)
    job = start(world, per_minute=60)
    assert job.walk is not None
    # Its worker has found them all, and was interrupted.
    letters = {each.occurrence_id: each for each in world.store.letters.values()}
    found = [Target(letters[name].schedule_id, letter=letters[name]) for name in names]
    world.store.jobs[job.job_id] = replace(
        job,
        state=JobState.RUNNING,
        walk=replace(job.walk, rest=tuple(found), finished=True),
    )
    world.clock.advance(SECOND)
    replay_occurrence(world.workplace, "acme", names[0])
    world.relay_stream()
    world.clock.advance(SECOND)
    shops[0].fail(names[0], shops[0].run(names[0]), BUSY)
    row = shops[0].row(names[0])
    assert row.state is State.RETRY_WAIT
    now = world.clock.now()
    assert row.available_at is not None
    assert row.available_at - now >= timedelta(hours=6)

    run(world, stored(world, job))

    assert outcomes(world, job) == dict.fromkeys(names, "CHANGED")
    told = [each.available_at for each in results(world, job)]
    assert told == [now, now + SECOND, now + 2 * SECOND]
