"""Creating: stored whole, once, and materialized when it is near."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import (
    Handler,
    Quotas,
    Schedule,
    ScheduleState,
    Tenant,
    Tier,
    Tracking,
    Version,
    VersionRef,
    derived_schedule_id,
)
from hourbell.domain.errors import (
    Conflict,
    InvalidInput,
    QuotaExceeded,
    Transient,
)
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.create_schedule import (
    Created,
    NewSchedule,
    Registry,
    create_schedule,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.ports import Change, Creation, Write

from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

ANN = Caller(Tenant("acme", Tier.STANDARD), "1:user/ann", "arn:ann", "api 10.0.0.1")
BOB = Caller(Tenant("zenith", Tier.PREMIUM), "1:user/bob", "arn:bob")

IN_A_YEAR = Timing("at(2027-01-31T09:00:00)")
SOON = Timing("at(2026-03-09T12:00:05)")


@pytest.fixture
def world() -> World:
    world = World()
    world.directory.register_tenant(BOB.tenant, [BOB.principal])
    for tenant in ("acme", "zenith"):
        world.directory.register_handler(Handler(tenant, "ring"))
    return world


def registry(world: World, **ports: Any) -> Registry:
    plane = replace(world.plane, **ports)
    return Registry(plane, world.groups, world.ids)


def new(timing: Timing = IN_A_YEAR, **fields: Any) -> NewSchedule:
    members = {"name": "bell", "handler": "ring", "body_hash": "h1", **fields}
    return NewSchedule(timing=timing, **members)


def create(
    world: World, request: NewSchedule, caller: Caller = ANN, **ports: Any
) -> Created:
    return create_schedule(registry(world, **ports), caller, request, world.clock.now())


def test_definition_version_and_first_row_are_stored(world: World) -> None:
    request = new(
        payload_json='{"a":1}',
        flexible_window_seconds=30,
        description="rings",
        tags={"team": "ops"},
    )
    created = create(world, request)
    schedule = world.schedules.find(created.schedule.schedule_id)
    assert schedule == created.schedule
    assert schedule is not None
    assert schedule.state is ScheduleState.ACTIVE
    assert (schedule.version, schedule.revision, schedule.generation) == (1, 1, 1)
    assert (schedule.description, schedule.tags) == ("rings", {"team": "ops"})
    assert schedule.created_at == schedule.updated_at == START
    assert schedule.definition.payload_json == '{"a":1}'
    assert schedule.definition.lane is Lane.FLEXIBLE
    assert schedule.definition.tracking is Tracking.UNTRACKED
    version = world.schedules.versions([schedule.ref], consistent=True)[schedule.ref]
    assert version == created.version
    assert version.definition == schedule.definition
    assert (version.created_by, version.source) == ("arn:ann", "api 10.0.0.1")
    assert (version.body_hash, version.tzdb) == ("h1", TZDB_VERSION)
    assert version.effective_to is None
    assert world.rows() == [created.first]
    assert created.first.state is State.PLANNED
    assert (created.first.sequence, created.first.tenant_id) == (1, "acme")
    assert not created.replayed
    assert created.materialized


def test_the_version_owns_times_strictly_after_now(world: World) -> None:
    version = create(world, new(Timing("* * * * *"))).version
    assert not version.owns(START)
    assert version.owns(START + timedelta(microseconds=1))


def test_a_time_at_this_very_instant_is_past(world: World) -> None:
    created = create(world, new(Timing("* * * * *")))
    assert created.first.scheduled_for == START + MINUTE


def test_what_is_due_in_a_few_seconds_is_materialized_in_the_call(
    world: World,
) -> None:
    created = create(world, new(SOON))
    (row,) = world.rows()
    assert row.state is State.SCHEDULED
    assert row.scheduled_for == START + 5 * SECOND
    assert row.queue == "standard-strict"
    assert created.materialized


def test_a_recurring_one_is_materialized_up_to_the_horizon(world: World) -> None:
    create(world, new(Timing("* * * * *")))
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]
    assert times(world.rows(State.PLANNED)) == [START + 4 * MINUTE]


def test_what_is_due_later_stays_planned(world: World) -> None:
    create(world, new(Timing("0 13 * * *")))
    (row,) = world.rows()
    assert row.state is State.PLANNED


def test_the_next_pass_finds_the_first_row(world: World) -> None:
    created = create(world, new(Timing("at(2026-03-09T13:00:00)")))
    world.clock.set(START + timedelta(minutes=58))
    world.scan()
    (row,) = world.rows()
    assert (row.key, row.state) == (created.first.key, State.SCHEDULED)


def test_the_group_can_be_scanned_before_its_first_row_is_written(
    world: World,
) -> None:
    order: list[str] = []
    groups, schedules = (
        Recording(world.groups, order),
        Recording(world.schedules, order),
    )
    plane = replace(world.plane, schedules=schedules)
    request = Registry(plane, groups, world.ids)
    world.clock.set(START + 30 * SECOND)
    created = create_schedule(request, ANN, new(), world.clock.now())
    assert order[:2] == ["ensure", "create"]
    group = world.shard_map.group_of(created.first.shard)
    assert world.store.groups[group].floor == START - 2 * MINUTE


class Recording:
    """Notes the names of the methods that are called."""

    def __init__(self, port: Any, order: list[str]) -> None:
        self._port = port
        self._order = order

    def __getattr__(self, name: str) -> Any:
        self._order.append(name)
        return getattr(self._port, name)


def test_a_rate_counts_from_its_creation(world: World) -> None:
    world.clock.set(START + timedelta(seconds=7, microseconds=250))
    created = create(world, new(Timing("rate(5 minutes)")))
    anchor = START + 8 * SECOND
    assert created.version.definition.timing.anchor == anchor
    assert created.first.scheduled_for == anchor + 5 * MINUTE


def test_a_rate_counts_from_its_start(world: World) -> None:
    start = START + timedelta(days=1)
    created = create(world, new(Timing("rate(5 minutes)", start_at=start)))
    assert created.first.scheduled_for == start + 5 * MINUTE


@pytest.mark.parametrize(
    ("timing", "code"),
    [
        (Timing("at(2026-03-09T11:59:59)"), "never_fires"),
        (Timing("at(2026-03-09T12:00:00)"), "never_fires"),
        (Timing("0 9 * * *", end_at=START), "never_fires"),
        (Timing("0 9 * *"), "invalid_expression"),
        (Timing("0 9 * * *", zone="Mars/Olympus"), "unknown_zone"),
    ],
)
def test_a_timing_that_never_runs_is_refused(
    world: World, timing: Timing, code: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(world, new(timing))
    assert [finding.code for finding in caught.value.findings] == [code]
    assert not world.store.schedules
    assert not world.rows()


def test_an_unknown_handler_is_named(world: World) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(world, new(handler="bark"))
    (finding,) = caught.value.findings
    assert (finding.code, finding.field, finding.found) == (
        "unknown_handler",
        "handler",
        "bark",
    )
    assert not world.store.schedules


def test_another_tenants_handler_is_unknown(world: World) -> None:
    world.directory.register_handler(Handler("zenith", "invoice"))
    with pytest.raises(InvalidInput, match="invoice"):
        create(world, new(handler="invoice"))
    assert create(world, new(handler="invoice"), BOB).schedule.tenant_id == "zenith"


def test_all_that_is_wrong_is_told_at_once(world: World) -> None:
    request = new(Timing("0 9 * * *", zone="Mars/Olympus"), handler="bark")
    with pytest.raises(InvalidInput) as caught:
        create(world, request)
    codes = {finding.code for finding in caught.value.findings}
    assert codes == {"unknown_zone", "unknown_handler"}


def test_without_a_key_every_call_creates(world: World) -> None:
    first, second = create(world, new()), create(world, new(name="gong"))
    assert first.schedule.schedule_id != second.schedule.schedule_id
    assert len(world.store.schedules) == 2


def test_the_same_key_and_body_gets_the_original_answer(world: World) -> None:
    request = new(idempotency_key="k1", tags={"a": "b"})
    original = create(world, request)
    world.clock.advance(timedelta(days=2))
    repeated = create(world, request)
    assert repeated == replace(original, replayed=True)
    assert len(world.store.schedules) == 1
    assert world.rows() == [original.first]


def test_the_original_answer_outlives_changes_of_the_schedule(world: World) -> None:
    request = new(idempotency_key="k1")
    original = create(world, request)
    schedule_id = original.schedule.schedule_id
    world.store.schedules[schedule_id] = replace(
        original.schedule, state=ScheduleState.CANCELED, revision=9, version=4
    )
    assert create(world, request).schedule == original.schedule


def test_a_repeated_request_need_not_be_right_any_more(world: World) -> None:
    request = new(SOON, idempotency_key="k1")
    original = create(world, request)
    world.clock.advance(timedelta(hours=1))
    world.store.handlers.clear()
    repeated = create(world, request)
    assert repeated.replayed
    assert repeated.schedule == original.schedule
    assert repeated.first.scheduled_for == START + 5 * SECOND


def test_a_rate_keeps_the_anchor_of_its_first_creation(world: World) -> None:
    request = new(Timing("rate(1 hour)"), idempotency_key="k1")
    original = create(world, request)
    world.clock.advance(17 * MINUTE)
    assert create(world, request).schedule == original.schedule


@pytest.mark.parametrize("timing", [IN_A_YEAR, Timing("at(2020-01-01T00:00:00)")])
def test_the_same_key_with_another_body_is_a_conflict(
    world: World, timing: Timing
) -> None:
    original = create(world, new(idempotency_key="k1"))
    with pytest.raises(Conflict) as caught:
        create(world, new(timing, idempotency_key="k1", body_hash="h2"))
    assert caught.value.code == "idempotency_key_reused"
    assert list(world.store.schedules.values()) == [original.schedule]


def test_a_key_is_a_tenants_own(world: World) -> None:
    request = new(idempotency_key="k1")
    mine, theirs = create(world, request), create(world, request, BOB)
    assert mine.schedule.schedule_id != theirs.schedule.schedule_id
    assert not theirs.replayed


def test_the_id_follows_from_tenant_and_key(world: World) -> None:
    created = create(world, new(idempotency_key="k1"))
    assert created.schedule.schedule_id == derived_schedule_id("acme", "k1")


class Racing:
    """Schedules: somebody else's create comes between ours and its write."""

    def __init__(self, world: World, rival: Callable[[], object]) -> None:
        self._port = world.schedules
        self._rival = rival

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def create(
        self, schedule: Schedule, version: Version, first: Occurrence, *, quota: int
    ) -> Creation:
        self._rival()
        return self._port.create(schedule, version, first, quota=quota)


def test_of_two_creates_at_once_both_get_the_winners_answer(world: World) -> None:
    request = new(SOON, idempotency_key="k1")
    won: list[Created] = []
    racing = Racing(world, lambda: won.append(create(world, request)))
    world.clock.advance(SECOND)
    lost = create(world, request, schedules=racing)
    assert lost == replace(won[0], replayed=True)
    assert len(world.store.schedules) == len(world.rows()) == 1


def test_of_two_different_creates_at_once_one_is_a_conflict(world: World) -> None:
    rival = new(idempotency_key="k1", body_hash="h2")
    racing = Racing(world, lambda: create(world, rival))
    with pytest.raises(Conflict):
        create(world, new(idempotency_key="k1"), schedules=racing)
    (stored,) = world.store.versions.values()
    assert stored.body_hash == "h2"


def test_of_two_creates_of_one_name_at_once_one_is_a_conflict(world: World) -> None:
    racing = Racing(world, lambda: create(world, new()))
    with pytest.raises(Conflict) as caught:
        create(world, new(), schedules=racing)
    (stored,) = world.store.schedules
    assert caught.value.code == "name_taken"
    assert caught.value.members == {"field": "name", "schedule_id": stored}


def test_a_quota_that_is_used_up_is_told(world: World) -> None:
    caller = replace(ANN, tenant=replace(ANN.tenant, quotas=Quotas(schedules=1)))
    create(world, new(), caller)
    with pytest.raises(QuotaExceeded) as caught:
        create(world, new(name="gong"), caller)
    assert caught.value.members == {"quota": "schedules", "used": 1, "allowed": 1}
    assert len(world.store.schedules) == len(world.rows()) == 1


class Vanishing:
    """Schedules that say an id is taken, and then have no such version."""

    def create(self, *_: object, **__: object) -> Creation:
        return Creation.EXISTS

    def versions(self, *_: object, **__: object) -> dict[VersionRef, Version]:
        return {}


def test_a_store_that_contradicts_itself_is_asked_again(world: World) -> None:
    with pytest.raises(Transient):
        create(world, new(), schedules=Vanishing())


class Failing:
    """A timeline that cannot be written."""

    def __init__(self, world: World) -> None:
        self._port = world.timeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        raise Transient

    def move(self, changes: Sequence[Change]) -> list[Write]:
        raise Transient


@pytest.mark.parametrize("kind", ["fails", "unclear"])
def test_what_cannot_be_materialized_now_is_left_to_the_pass(
    world: World, kind: str
) -> None:
    failing = Failing(world)
    unclear = UnclearTimeline(world.timeline, lambda *_: True)
    created = create(world, new(SOON), timeline=failing if kind == "fails" else unclear)
    assert not created.materialized
    assert world.rows() == [created.first]
    world.scan()
    (row,) = world.rows()
    assert row.state is State.SCHEDULED


def test_repeating_a_create_that_was_cut_short_finishes_it(world: World) -> None:
    request = new(SOON, idempotency_key="k1")
    create(world, request, timeline=Failing(world))
    repeated = create(world, request)
    assert repeated.replayed
    assert repeated.materialized
    (row,) = world.rows()
    assert row.state is State.SCHEDULED


def test_repeating_a_create_does_not_revive_rows_that_are_gone(world: World) -> None:
    request = new(Timing("* * * * *"), idempotency_key="k1")
    create(world, request)
    world.store.rows.clear()
    world.clock.advance(timedelta(days=30))
    assert create(world, request).replayed
    assert world.rows() == []


def test_a_first_time_that_another_tzdb_took_away_is_not_invented(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = new(idempotency_key="k1")
    create(world, request)

    def nothing(*_: object) -> tuple[datetime, int] | None:
        return None

    monkeypatch.setattr("hourbell.usecases.create_schedule.next_planned", nothing)
    with pytest.raises(Transient, match="no first time"):
        create(world, request)
