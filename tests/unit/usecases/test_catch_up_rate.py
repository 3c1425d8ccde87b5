"""The catch-up rate holds for a tenant as a whole."""

from dataclasses import replace
from datetime import timedelta

from hourbell.domain.definition import Tier
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance

from tests.unit.usecases.deferring import available
from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.limiting import fullest, going, limit
from tests.unit.usecases.test_misfire import BACK, EVERY_MINUTE
from tests.unit.usecases.test_rates import pass_over, raise_crash, wrapped
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World


def catch_up(world: World, rate: int, tenant: str = "acme") -> None:
    found = world.store.tenants[tenant]
    quotas = replace(found.quotas, catch_up_per_minute=rate)
    world.store.tenants[tenant] = replace(found, quotas=quotas)


def overdue(world: World, tenant: str = "acme") -> list[Occurrence]:
    return [row for row in going(world, tenant) if row.lane is Lane.CATCHUP]


def test_schedules_of_a_tenant_share_its_minute() -> None:
    """At 12:11:30 each of three has ten overdue; twelve a minute may run."""
    world = World()
    catch_up(world, 12)
    for _ in range(3):
        world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.set(BACK)
    tally = pass_over(world)
    rows = overdue(world)
    assert len(rows) == tally.misfires == 30
    assert fullest(rows, MINUTE) == 12
    # Alone, each would take places 5 s apart from 12:11:30 on: six of them in 12:11,
    # four in 12:12, which is 18 and 12 together. Of the 18, six must leave, and
    # find room in 12:12 before six who wanted it from the first.
    minutes = [(available(row) - START) // MINUTE for row in rows]
    assert [minutes.count(n) for n in (11, 12, 13, 14)] == [12, 12, 6, 0]
    assert tally.paced == 12
    for schedule_id in world.store.schedules:
        own = [row for row in rows if row.schedule_id == schedule_id]
        in_order = sorted(own, key=lambda row: row.scheduled_for)
        received = [(available(row) - START) // MINUTE for row in in_order]
        assert received == sorted(received), "the oldest first"


def test_tenants_do_not_share_their_rates() -> None:
    world = World()
    world.add_tenant("other", Tier.BASIC)
    for tenant in ("acme", "other"):
        catch_up(world, 60, tenant)
        world.add(EVERY_MINUTE, tenant=tenant, misfire=EVERYTHING)
    world.clock.set(BACK)
    assert pass_over(world).paced == 0
    for tenant in ("acme", "other"):
        assert [available(row) for row in overdue(world, tenant)] == [
            BACK + n * SECOND for n in range(10)
        ]


def test_a_schedule_alone_keeps_its_places_over_many_minutes() -> None:
    world = World()
    catch_up(world, 7)
    world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.set(BACK + timedelta(hours=2))
    assert pass_over(world).paced == 0
    assert [available(row) for row in overdue(world)] == [
        BACK + timedelta(hours=2) + 60 * n // 7 * SECOND for n in range(130)
    ]


def test_overdue_ones_keep_to_the_other_rates_too() -> None:
    world = World()
    limit(world, a_second=1, a_minute=9)
    for _ in range(2):
        world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.set(BACK)
    pass_over(world)
    rows = going(world)
    # Ten overdue and four on time each.
    assert len(rows) == 28
    assert fullest(rows, SECOND) == 1
    assert fullest(rows, MINUTE) <= 9


def test_a_tenants_own_on_time_occurrences_do_not_wait_for_its_overdue_ones() -> None:
    world = World()
    catch_up(world, 1)
    world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.set(BACK)
    pass_over(world)
    strict = [row for row in going(world) if row.lane is Lane.STRICT]
    assert [available(row) for row in strict] == [r.scheduled_for for r in strict]


def test_a_crash_at_any_call_neither_loses_nor_exceeds() -> None:
    moments = 0
    for nth in range(1, 60):
        for after in (False, True):
            world = World()
            catch_up(world, 4)
            for _ in range(2):
                world.add(EVERY_MINUTE, misfire=EVERYTHING)
            world.clock.set(BACK)
            moment = Moment(nth, after, raise_crash)
            try:
                for _ in range(2):
                    world.clock.advance(SECOND)
                    pass_through(world, moment)
            except Crash:
                moments += 1
            written = {row.key: row.available_at for row in overdue(world)}
            for _ in range(3):
                world.clock.advance(SECOND)
                world.scan()
            rows = overdue(world)
            assert len(rows) == 20, (nth, after)
            assert fullest(rows, MINUTE) <= 4, (nth, after)
            now = {row.key: row.available_at for row in rows}
            assert written.items() <= now.items(), (nth, after)
    assert moments >= 20
    assert not moment.reached


def pass_through(world: World, moment: Moment) -> None:
    advance(wrapped(world, moment), world.rows(), world.clock.now())


def test_all_that_is_deferred_by_the_rate_is_sent_in_the_end() -> None:
    world = World()
    catch_up(world, 2)
    for _ in range(3):
        world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.add(Timing("30 11 * * *"))
    world.clock.set(BACK)
    for _ in range(16):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    world.scan()
    world.relay_stream()
    assert not world.rows(State.DEFERRED)
    sent = [row for row in world.rows(State.ENQUEUED) if row.lane is Lane.CATCHUP]
    assert len(sent) == 30
    assert fullest(sent, MINUTE) == 2
    assert [row.visible_at for row in sent] == [row.available_at for row in sent]
