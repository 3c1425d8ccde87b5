"""The `Jobs` port."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import NewSchedule, Tracking
from hourbell.domain.errors import Finding
from hourbell.domain.job import (
    Creator,
    Job,
    JobState,
    Letters,
    Operation,
    Outcome,
    Progress,
    Refusal,
    Result,
    Target,
    Walk,
    derived_job_id,
)
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.overlap import Overlap
from hourbell.domain.replanning import Shift
from hourbell.domain.retry import ErrorClass, Retry
from hourbell.domain.schedule import Timing
from hourbell.domain.work import DeadLetter
from hourbell.usecases.ports import Write

from tests.conformance.samples import MINUTE, NOW, schedule_id
from tests.conformance.worlds import World

REFUSAL = Refusal(
    409,
    "name_taken",
    "The name is taken.",
    (Finding("name", "name_taken", "Taken.", "bell", "bell-2"),),
    {"field": "name", "used": 3},
)


def job(label: str = "one", **fields: Any) -> Job:
    made = Job(
        job_id=derived_job_id("samples", label),
        tenant_id="acme",
        operation=Operation.PAUSE,
        dry_run=False,
        creator=Creator("1:user/ann", "arn:aws:iam::1:user/ann", "api 192.0.2.1"),
        body_hash="hash",
        created_at=NOW,
        updated_at=NOW,
        # To the second, as DynamoDB's expiry has it.
        expires_at=NOW.replace(microsecond=0) + timedelta(days=15),
        progress=Progress(2),
    )
    return replace(made, **fields)


def ids(count: int) -> list[Target]:
    return [Target(schedule_id(n)) for n in range(count)]


def results(first: int, count: int) -> list[Result]:
    return [
        Result(first + n, Outcome.CHANGED, schedule_id(first + n), f"bell-{n}")
        for n in range(count)
    ]


def stored(world: World, wanted: Job, count: int = 2) -> Job:
    assert world.jobs.create(wanted, ids(count)) is Write.APPLIED
    return wanted


FULL: dict[str, Any] = {
    "reason": "stock\ntaking",
    "state": JobState.FAILED,
    "finished_at": NOW + MINUTE,
    "failure": "tenant_suspended",
    "progress": Progress(None, 3, 2, 1),
    "walk": Walk(
        {"team": "ops", "empty": ""},
        "cursor",
        rest=(Target(schedule_id("a"), "bell/a"), Target(schedule_id("b"))),
    ),
    "step": 7,
}


REPLAY: dict[str, Any] = {
    "operation": Operation.REPLAY,
    "walk": Walk(
        {},
        '["a cursor"]',
        rest=(
            Target(
                schedule_id("a"),
                letter=DeadLetter(
                    "acme",
                    f"{schedule_id('a')}.v1.20260309T120000Z",
                    NOW + timedelta(microseconds=7),
                    3,
                    "ATTEMPTS_USED_UP",
                    NOW + timedelta(days=15, microseconds=7),
                ),
            ),
        ),
        letters=Letters(schedule_id("a"), NOW - MINUTE, NOW, 60),
        next_at=NOW + timedelta(milliseconds=100),
    ),
}


@pytest.mark.parametrize(
    "fields",
    [
        *({}, FULL, {"walk": Walk({"a": "b"})}, REPLAY),
        {"walk": Walk({}, letters=Letters(None, None, NOW, 1))},
    ],
)
def test_a_job_comes_back_as_it_was_stored(
    world: World, fields: dict[str, Any]
) -> None:
    wanted = job(**fields)
    assert world.jobs.find(wanted.job_id) is None
    assert world.jobs.create(wanted, ()) is Write.APPLIED
    assert world.jobs.find(wanted.job_id) == wanted


def test_a_taken_id_changes_nothing(world: World) -> None:
    first = stored(world, job())
    other = job(reason="another")
    assert world.jobs.create(other, ids(30)) is Write.EXISTS
    assert world.jobs.find(first.job_id) == first
    assert world.jobs.items(first.job_id, 0) == tuple(ids(2))


def test_items_come_from_an_index_to_the_end_of_its_chunk(world: World) -> None:
    wanted, all_ids = job(), tuple(ids(60))
    world.jobs.create(wanted, all_ids)
    for start, end in ((0, 25), (7, 25), (24, 25), (25, 50), (58, 60)):
        assert world.jobs.items(wanted.job_id, start) == all_ids[start:end]
    assert world.jobs.items(wanted.job_id, 60) == ()
    assert world.jobs.items(wanted.job_id, 75) == ()


def test_a_thousand_items_fit(world: World) -> None:
    wanted = stored(world, job(), 1_000)
    assert world.jobs.items(wanted.job_id, 975) == tuple(ids(1_000)[975:])


def test_schedules_to_create_come_back_as_they_were(world: World) -> None:
    plain = NewSchedule("bell", Timing("0 9 * * *"), "ring", "h1")
    timing = Timing.from_dict(
        {
            "expression": "rate(5 minutes)",
            "zone": "Europe/Berlin",
            "dst": {"gap": "NEXT_VALID", "fold": "BOTH"},
            "start_at": "2027-01-31T09:00:00Z",
            "exclude": ["2026-12-25"],
            "max_occurrences": 7,
        }
    )
    full = NewSchedule(
        "ops/grüß",
        timing,
        "ring",
        "h2",
        '{"n":1.50,"s":"\\"\\u0000"}',
        Tracking.TRACKED,
        60,
        Misfire(MisfirePolicy.CATCH_UP, 7, 3_600),
        "Böller 👋",
        {"team": "ops", "x": ""},
        overlap=Overlap.QUEUE_ONE,
        retry=Retry(3, 60, 120, None, (ErrorClass.THROTTLED,)),
    )
    wanted = job(operation=Operation.CREATE)
    world.jobs.create(wanted, [plain, full])
    assert world.jobs.items(wanted.job_id, 0) == (plain, full)


def test_the_largest_request_fits(world: World) -> None:
    # Quotes, which text within a text would double; 256 KiB is all that a body has.
    payload = '"' + '\\"' * 32_000 + '"'
    items = [
        NewSchedule(f"bell-{n}", Timing("0 9 * * *"), "ring", "h", payload)
        for n in range(4)
    ]
    wanted = job(operation=Operation.CREATE)
    assert world.jobs.create(wanted, items) is Write.APPLIED
    assert world.jobs.items(wanted.job_id, 0) == tuple(items)


def test_progress_is_written_while_state_and_step_stand(world: World) -> None:
    before = stored(world, job())
    after = replace(
        before, state=JobState.RUNNING, progress=Progress(2, 1), step=1,
        updated_at=NOW + MINUTE,
    )  # fmt: skip
    assert world.jobs.advance(after, results(0, 1), before=before) is Write.APPLIED
    assert world.jobs.find(before.job_id) == after
    for stale in (before, replace(after, step=0), replace(after, state=before.state)):
        other = replace(after, step=9)
        assert world.jobs.advance(other, results(1, 1), before=stale) is Write.LOST
    assert world.jobs.find(before.job_id) == after
    assert world.jobs.results(before.job_id, start=0, limit=9) == tuple(results(0, 1))


def test_what_a_job_no_longer_has_is_taken_off(world: World) -> None:
    before = stored(world, job(**FULL))
    after = replace(
        before, state=JobState.PENDING, finished_at=None, failure=None, step=8
    )
    assert world.jobs.advance(after, (), before=before) is Write.APPLIED
    assert world.jobs.find(before.job_id) == after


def test_a_job_that_is_not_there_is_not_advanced(world: World) -> None:
    assert world.jobs.advance(job(), (), before=job()) is Write.LOST
    assert world.jobs.find(job().job_id) is None


def test_the_results_of_a_replay_come_back_as_they_were_written(world: World) -> None:
    before = stored(world, job())
    name = f"{schedule_id('a')}.v1.20260309T120000Z"
    at = NOW + timedelta(microseconds=1)
    told = [
        Result(
            0,
            Outcome.CHANGED,
            schedule_id("a"),
            occurrence_id=name,
            available_at=at,
        ),
        Result(1, Outcome.UNCHANGED, schedule_id("a"), occurrence_id=name),
    ]
    after = replace(before, step=1)
    assert world.jobs.advance(after, told, before=before) is Write.APPLIED
    assert world.jobs.results(before.job_id, start=0, limit=9) == tuple(told)


def test_results_come_from_an_index_on_in_order(world: World) -> None:
    now = stored(world, job(), 100)
    written: list[Result] = []
    for count in (25, 3, 22, 25, 1, 24):
        more = results(len(written), count)
        written += more
        after = replace(now, step=now.step + 1)
        assert world.jobs.advance(after, more, before=now) is Write.APPLIED
        now = after
    for start in (0, 1, 24, 25, 27, 28, 51, 75, 76, 99):
        for limit in (1, 10, 100):
            found = world.jobs.results(now.job_id, start=start, limit=limit)
            assert found == tuple(written[start : start + limit])
    assert world.jobs.results(now.job_id, start=100, limit=10) == ()


def test_many_small_parts_of_results_are_read_through(world: World) -> None:
    now = stored(world, job(), 20)
    for index in range(20):
        after = replace(now, step=now.step + 1)
        world.jobs.advance(after, results(index, 1), before=now)
        now = after
    found = world.jobs.results(now.job_id, start=2, limit=100)
    assert [each.index for each in found] == list(range(2, 20))


def test_a_refusal_comes_back_as_it_was(world: World) -> None:
    now = stored(world, job())
    refused = [
        Result(0, Outcome.REFUSED, None, "bell", REFUSAL),
        Result(1, Outcome.WOULD_REFUSE, schedule_id("a"), None, Refusal(404, "x", "y")),
    ]
    world.jobs.advance(replace(now, step=1), refused, before=now)
    assert world.jobs.results(now.job_id, start=0, limit=9) == tuple(refused)


def test_moved_times_come_back_as_they_were(world: World) -> None:
    before = stored(world, job(operation=Operation.REPLAN))
    local = NOW.replace(microsecond=0, tzinfo=None)
    shifts = (
        Shift(local, NOW.replace(microsecond=0), NOW.replace(microsecond=0) + MINUTE),
        Shift(local, None, NOW.replace(microsecond=0)),
        Shift(local, NOW.replace(microsecond=0), None),
    )
    moved = Result(0, Outcome.CHANGED, schedule_id(0), "bell", shifts=shifts)
    after = replace(before, step=1)
    assert world.jobs.advance(after, [moved], before=before) is Write.APPLIED
    assert world.jobs.results(before.job_id, start=0, limit=1) == (moved,)


def test_a_walk_over_all_schedules_has_no_tags(world: World) -> None:
    wanted = job(walk=Walk({}), progress=Progress(None))
    assert world.jobs.create(wanted, ()) is Write.APPLIED
    assert world.jobs.find(wanted.job_id) == wanted


def test_a_tenants_jobs_are_listed_newest_first(world: World) -> None:
    made = [stored(world, job(str(n), created_at=NOW + n * MINUTE)) for n in range(5)]
    stored(world, job("theirs", tenant_id="bolt"))
    assert world.jobs.of_tenant("acme", before=None, limit=9) == tuple(made[::-1])
    first = world.jobs.of_tenant("acme", before=None, limit=2)
    assert first == tuple(made[:2:-1])
    rest = world.jobs.of_tenant("acme", before=first[-1].place, limit=9)
    assert rest == tuple(made[2::-1])
    assert world.jobs.of_tenant("nobody", before=None, limit=9) == ()


def test_jobs_of_one_instant_have_an_order(world: World) -> None:
    made = [stored(world, job(str(n))) for n in range(4)]
    found = []
    before = None
    for _ in made:
        (each,) = world.jobs.of_tenant("acme", before=before, limit=1)
        found.append(each)
        before = each.place
    assert sorted(found, key=lambda each: each.job_id) == found[::-1]
    assert set(map(str, found)) == set(map(str, made))
