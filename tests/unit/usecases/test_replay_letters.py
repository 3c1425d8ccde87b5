"""A job replays dead letters: each once, at a pace, whatever stops it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Quotas, TenantState
from hourbell.domain.errors import Conflict, InvalidInput, Transient
from hourbell.domain.job import Job, JobState, Progress, Result
from hourbell.domain.occurrence import State
from hourbell.domain.retry import Retry
from hourbell.usecases.jobs import cancel_job, resume_job
from hourbell.usecases.occurrences import replay_occurrence
from hourbell.usecases.replay_letter import replay_letter
from hourbell.usecases.run_job import Workshop
from hourbell.usecases.start_replay import WantedLetters, list_letters, start_replay

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.jobs import MOST_CALLS, run, stored
from tests.unit.usecases.poison import Damaged
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, SECOND, World

ONCE = Retry(max_attempts=1)
HALF_PAST_ONE = datetime.fromisoformat("2026-03-09T13:30:00+00:00")
PORTS = ("jobs", "job_queue", "timeline", "ledger", "directory", "schedules")


def graveyard(count: int = 3) -> tuple[World, list[str]]:
    """Return a world in which so many occurrences are dead, and their ids."""
    world = World()
    world.store.principals["1:user/ann"] = "acme"
    shops = [Shop("30 13 * * *", retry=ONCE, world=world) for _ in range(count)]
    shops[0].due()
    names = [shop.first.occurrence_id for shop in shops]
    for shop, name in zip(shops, names, strict=True):
        shop.fail(name, shop.run(name))
    world.relay_stream()
    world.clock.advance(10 * MINUTE)
    return world, names


def start(
    world: World,
    wanted: WantedLetters | None = None,
    *,
    per_minute: int | None = None,
    dry_run: bool = False,
    key: str = "key",
) -> Job:
    accepted = start_replay(
        world.office,
        caller(world),
        wanted or WantedLetters(),
        per_minute,
        key,
        world.clock.now(),
        dry_run=dry_run,
    )
    return accepted.job


def results(world: World, job: Job) -> list[Result]:
    return world.store.job_results[job.job_id]


def outcomes(world: World, job: Job) -> dict[str | None, str]:
    return {each.occurrence_id: each.outcome for each in results(world, job)}


def states(world: World, names: list[str]) -> dict[str, str]:
    rows = {row.occurrence_id: row for row in world.rows()}
    return {name: rows[name].state for name in names}


def watched(world: World, moment: Moment) -> Workshop:
    """Return a workshop whose calls a moment counts."""
    plain = world.workshop
    ports = {name: moment.wrap(getattr(world, name)) for name in PORTS}
    place = replace(
        plain.bench.workplace,
        **{
            name: ports[name]
            for name in ("timeline", "ledger", "directory", "schedules")
        },
    )
    return replace(
        plain,
        jobs=ports["jobs"],
        queue=ports["job_queue"],
        directory=ports["directory"],
        bench=replace(plain.bench, workplace=place),
    )


def test_every_dead_letter_is_replayed_under_the_same_id_and_forgotten() -> None:
    world, names = graveyard(30)
    job = start(world)
    run(world, job)
    done = stored(world, job)
    assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(30, 30))
    assert outcomes(world, job) == dict.fromkeys(names, "CHANGED")
    assert set(states(world, names).values()) == {State.SCHEDULED}
    assert world.store.letters == {}

    sent = len(world.queues.accepted)
    world.relay_stream()

    again = [each.entry.body for each in world.queues.accepted[sent:]]
    assert sorted(name for name in names for body in again if name in body) == sorted(
        names
    )


def test_each_may_be_received_at_the_pace_one_after_the_other() -> None:
    world, _ = graveyard(30)
    job = start(world, per_minute=20)
    begun = world.clock.now()
    run(world, job)
    times = [each.available_at for each in results(world, job)]
    assert times == [begun + 3 * place * SECOND for place in range(30)]
    rows = {row.occurrence_id: row for row in world.rows()}
    for each in results(world, job):
        assert rows[each.occurrence_id or ""].available_at == each.available_at


def test_by_default_the_pace_is_the_tenants_catch_up_rate() -> None:
    world, _ = graveyard(2)
    world.store.tenants["acme"] = replace(
        world.store.tenants["acme"], quotas=Quotas(catch_up_per_minute=6)
    )
    job = start(world)
    run(world, job)
    first, second = (each.available_at for each in results(world, job))
    assert first is not None
    assert second == first + 10 * SECOND


@pytest.mark.parametrize("per_minute", [0, 601])
def test_a_pace_over_the_tenants_rate_is_refused(per_minute: int) -> None:
    world, _ = graveyard(1)
    with pytest.raises(InvalidInput) as refused:
        start(world, per_minute=per_minute)
    (finding,) = refused.value.findings
    assert (finding.field, finding.code) == ("per_minute", "out_of_range")
    assert "1 to 600" in finding.message


def test_a_slow_pace_reaches_beyond_the_queues_longest_delay() -> None:
    world, names = graveyard(3)
    job = start(world, per_minute=1)
    begun = world.clock.now()
    run(world, job)
    times = {each.occurrence_id: each.available_at for each in results(world, job)}
    assert sorted(filter(None, times.values())) == [
        begun,
        begun + MINUTE,
        begun + 2 * MINUTE,
    ]
    world.clock.advance(30 * MINUTE)
    assert set(states(world, names).values()) <= {State.SCHEDULED, State.DEFERRED}


def test_a_dry_run_tells_and_changes_nothing() -> None:
    world, names = graveyard(2)
    kept = dict(world.store.letters)
    replay_occurrence(world.workplace, "acme", names[0])
    world.store.letters |= kept
    job = start(world, dry_run=True)
    run(world, job)
    assert outcomes(world, job) == {
        names[0]: "WOULD_NOT_CHANGE",
        names[1]: "WOULD_CHANGE",
    }
    assert world.store.letters == kept
    assert states(world, names)[names[1]] == State.DEAD


FILTERS: dict[str, tuple[Callable[[list[str]], WantedLetters], set[int]]] = {
    "all": (lambda _: WantedLetters(), {0, 1, 2}),
    "of a schedule": (
        lambda names: WantedLetters(names[1].partition(".")[0]),
        {1},
    ),
    "of another schedule": (lambda _: WantedLetters(f"sch{'0' * 26}"), set()),
    "from then on": (lambda _: WantedLetters(since=HALF_PAST_ONE), {0, 1, 2}),
    "from later on": (lambda _: WantedLetters(since=HALF_PAST_ONE + SECOND), set()),
    "before": (lambda _: WantedLetters(until=HALF_PAST_ONE), set()),
    "before later": (
        lambda _: WantedLetters(until=HALF_PAST_ONE + timedelta(days=9)),
        {0, 1, 2},
    ),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_a_job_replays_what_is_wanted_and_a_list_shows_it(kind: str) -> None:
    wanted, expected = FILTERS[kind]
    world, names = graveyard()
    page, after = list_letters(
        world.ledger, "acme", wanted(names), after=None, limit=50
    )
    ids = {names[place] for place in expected}
    assert {each.occurrence_id for each in page} == ids
    assert after is None

    job = start(world, wanted(names))
    run(world, job)

    assert set(outcomes(world, job)) == ids
    assert stored(world, job).progress.total == len(expected)


def test_nothing_of_another_tenant_is_listed() -> None:
    world, _ = graveyard()
    page, _ = list_letters(world.ledger, "zen", WantedLetters(), after=None, limit=50)
    assert list(page) == []


@pytest.mark.parametrize("late", [timedelta(0), SECOND])
def test_a_range_without_an_instant_is_refused(late: timedelta) -> None:
    world, _ = graveyard(1)
    wanted = WantedLetters(since=HALF_PAST_ONE + late, until=HALF_PAST_ONE)
    with pytest.raises(InvalidInput) as refused:
        start(world, wanted)
    assert refused.value.code == "reversed_range"
    with pytest.raises(InvalidInput):
        list_letters(world.ledger, "acme", wanted, after=None, limit=5)


def test_what_dies_again_by_the_replay_is_not_replayed_by_the_same_job() -> None:
    world, names = graveyard(26)
    job = start(world)
    place = world.workplace
    shop = Shop("30 15 * * *", retry=ONCE, world=world)

    class Dying:
        """Lets what was replayed die at once, between two pages."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.ledger, name)

        def letters(self, *args: Any, **kwargs: Any) -> Any:
            world.clock.advance(MINUTE)
            for name in names:
                if states(world, [name])[name] == State.SCHEDULED:
                    shop.fail(name, shop.run(name))
            return world.ledger.letters(*args, **kwargs)

    bench = replace(world.workshop.bench, workplace=replace(place, ledger=Dying()))
    run(world, job, replace(world.workshop, bench=bench), seconds=600)

    assert stored(world, job).progress == Progress(26, 26)
    assert len(world.store.letters) == 25


def test_what_is_not_dead_any_more_is_unchanged_and_its_letter_forgotten() -> None:
    world, names = graveyard(2)
    kept = dict(world.store.letters)
    replay_occurrence(world.workplace, "acme", names[0])
    # As if the letter had not been forgotten.
    world.store.letters |= kept
    world.clock.advance(MINUTE)
    job = start(world)
    run(world, job)
    assert outcomes(world, job) == {names[0]: "UNCHANGED", names[1]: "CHANGED"}
    assert world.store.letters == {}
    by_name = {each.occurrence_id: each for each in results(world, job)}
    assert by_name[names[0]].available_at is None


def test_what_has_expired_is_unchanged() -> None:
    world, names = graveyard(1)
    (row,) = (each for each in world.rows() if each.occurrence_id == names[0])
    del world.store.rows[row.key.partition][row.key.sort]
    job = start(world)
    run(world, job)
    assert outcomes(world, job) == {names[0]: "UNCHANGED"}
    assert world.store.letters == {}


def test_the_letter_of_what_cannot_be_read_is_not_forgotten() -> None:
    world, names = graveyard(1)
    job = start(world)
    (letter,) = world.store.letters.values()
    (row,) = (each for each in world.rows() if each.occurrence_id == names[0])
    timeline: Any = Damaged(world.timeline, rows_lost={row.key})
    place = replace(world.workplace, timeline=timeline)
    with pytest.raises(Transient):
        replay_letter(place, job, 0, letter, world.clock.now())
    assert list(world.store.letters.values()) == [letter]


def test_what_has_no_handler_any_more_is_refused_and_stays_dead() -> None:
    world, names = graveyard(1)
    del world.store.handlers["acme", "ring"]
    job = start(world)
    run(world, job)
    (result,) = results(world, job)
    assert (result.outcome, result.occurrence_id) == ("REFUSED", names[0])
    assert result.refusal is not None
    assert result.refusal.code == "not_found"
    assert states(world, names) == {names[0]: State.DEAD}
    assert len(world.store.letters) == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_loses_nothing_and_tells_the_same(*, after: bool) -> None:
    def crash() -> None:
        raise Crash

    for nth in range(1, MOST_CALLS):
        world, names = graveyard()
        job = start(world)
        moment = Moment(nth, after, crash)
        try:
            run(world, job, watched(world, moment))
        except Crash:
            world.clock.advance(SECOND)
            run(world, job)
        done = stored(world, job)
        assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(3, 3))
        assert outcomes(world, job) == dict.fromkeys(names, "CHANGED")
        assert all(row.replayed_at for row in world.rows() if row.told_at)
        waits = [r.waits for r in world.rows() if r.occurrence_id in names]
        assert waits == [1, 1, 1], (nth, after)
        if not moment.reached:
            break
    assert 15 < nth < MOST_CALLS - 1


def test_somebody_who_replays_the_same_at_any_call_is_counted_once() -> None:
    for nth in range(1, MOST_CALLS):
        world, names = graveyard(1)
        job = start(world)

        def replay(world: World = world, name: str = names[0]) -> None:
            world.clock.advance(SECOND)
            try:
                replay_occurrence(world.workplace, "acme", name)
            except Conflict as error:
                assert error.code == "not_dead"  # noqa: PT017 - the job was first

        moment = Moment(nth, False, replay)
        run(world, job, watched(world, moment))
        progress = stored(world, job).progress
        # Before it was looked for, there is nothing to find.
        assert progress in {Progress(0), Progress(1, 1)}, nth
        (row,) = (each for each in world.rows() if each.occurrence_id == names[0])
        assert (row.waits, row.state) == (1, State.SCHEDULED)
        if not moment.reached:
            break
    assert 8 < nth < MOST_CALLS - 1


def test_a_job_that_was_stopped_goes_on_at_its_pace() -> None:
    world, _ = graveyard(26)
    job = start(world, per_minute=60)
    begun = world.clock.now()
    # Time is up after the first chunk.
    world.clock.advance(SECOND)
    run(world, job, seconds=0)
    assert stored(world, job).progress.done == 0
    run(world, job)
    assert stored(world, job).state is JobState.SUCCEEDED
    times = [each.available_at for each in results(world, job)]
    assert times == [begun + (1 + place) * SECOND for place in range(26)]


def test_a_job_that_was_canceled_and_resumed_does_the_rest() -> None:
    world, names = graveyard()
    job = start(world)
    cancel_job(world.jobs, "acme", job.job_id, world.clock.now())
    run(world, job)
    assert set(states(world, names).values()) == {State.DEAD}
    resume_job(world.office, "acme", job.job_id, world.clock.now())
    run(world, job)
    assert outcomes(world, job) == dict.fromkeys(names, "CHANGED")


def test_a_suspended_tenants_letters_stay() -> None:
    world, names = graveyard(1)
    job = start(world)
    world.store.tenants["acme"] = replace(
        world.store.tenants["acme"], state=TenantState.SUSPENDED
    )
    run(world, job)
    assert stored(world, job).failure == "tenant_suspended"
    assert states(world, names) == {names[0]: State.DEAD}


def test_a_key_makes_one_job_and_another_request_with_it_is_refused() -> None:
    world, _ = graveyard(1)
    job = start(world)
    world.clock.advance(MINUTE)
    assert start(world).job_id == job.job_id
    members: tuple[Mapping[str, Any], ...] = ({"per_minute": 5}, {"dry_run": True})
    for more in members:
        with pytest.raises(Conflict) as refused:
            start(world, **more)
        assert refused.value.code == "idempotency_key_reused"


def test_a_store_that_forgets_nothing_gets_no_answer_from_the_job() -> None:
    world, names = graveyard(1)
    kept = dict(world.store.letters)
    replay_occurrence(world.workplace, "acme", names[0])
    world.store.letters |= kept
    job = start(world)

    class Silent:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.ledger, name)

        def do(self, _: object) -> Any:
            raise Transient

    place = replace(world.workplace, ledger=Silent())
    bench = replace(world.workshop.bench, workplace=place)
    with pytest.raises(Transient):
        run(world, job, replace(world.workshop, bench=bench))
    assert stored(world, job).state is JobState.RUNNING
    run(world, job)
    assert stored(world, job).state is JobState.SUCCEEDED
