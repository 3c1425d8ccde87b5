"""A queue that tenants share: each call is signed as the tenant of its messages."""

import logging
import threading
from typing import Any

import pytest
from hourbell.consumer.api import WorkerApi
from hourbell.consumer.endings import Endings
from hourbell.consumer.errors import HeldOff
from hourbell.consumer.http import NoCredentials, Reply
from hourbell.consumer.leases import Leases
from hourbell.consumer.tenants import TenantTransports

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import Rig, RunningClock, StandingClock, Tenants, work_of
from tests.consumers.worker_plane import (
    CLAIM,
    COMPLETE,
    FAIL,
    HEARTBEAT,
    NO_CONNECTION,
    Fault,
    WorkerPlane,
)
from tests.unit.consumer.test_consumer_lambda import Invocation, failures

THREE = ("north", "south", "west")
DENIED = PermissionError("AccessDenied: not authorized to perform sts:AssumeRole")
SUSPENDED = Fault(status=403, code="tenant_suspended")


def named(plane: WorkerPlane, route: str) -> list[list[str]]:
    """Return what each call of a route named."""
    return [
        sorted(each["occurrence_id"] for each in call["items"])
        for call in plane.called(route)
    ]


def test_each_tenants_work_is_claimed_and_ended_as_that_tenant() -> None:
    rig = Rig(tenants=THREE)
    rows = [rig.enqueue_of(name, n, n + 3) for n, name in enumerate(THREE)]

    def act(message: Any, _: Any) -> None:
        if message.tenant == "west":
            raise ValueError("no")

    rig.does(act)
    assert rig.run() == 0
    states = [{row.state for row in each} for each in rows]
    assert states == [{"SUCCEEDED"}, {"SUCCEEDED"}, {"RETRY_WAIT"}]
    assert rig.queue.bodies() == []
    for number, name in enumerate(THREE):
        plane = rig.tenants.planes[name]
        own = [occurrence_id(number), occurrence_id(number + 3)]
        assert named(plane, CLAIM) == [own]
        ends = sorted(named(plane, FAIL if name == "west" else COMPLETE))
        assert ends == [[each] for each in own]
    assert dict(rig.tenants.made) == dict.fromkeys(THREE, 1)


def test_a_call_names_ten_of_one_tenant_at_most() -> None:
    rig = Rig(tenants=THREE[:2], concurrency=20)
    rig.enqueue_of("north", *range(6))
    rig.enqueue_of("south", *range(20, 23))
    rig.enqueue_of("north", *range(6, 12))
    rig.does()
    assert failures(rig.consumer.handle(rig.lambda_event(), Invocation(30))) == []
    north, south = (rig.tenants.planes[name] for name in THREE[:2])
    assert sorted(len(each) for each in named(north, CLAIM)) == [2, 10]
    assert [len(each) for each in named(south, CLAIM)] == [3]
    assert len(rig.done) == 15


def test_heartbeats_are_each_tenants_own() -> None:
    clock = StandingClock()
    tenants = Tenants(clock.now, *THREE[:2])
    transports = TenantTransports(tenants.transport, clock)
    api = WorkerApi(transports, clock, worker="rig:1", lease_seconds=60)
    leases = Leases(api, None, clock)
    for number in range(4):
        tenant = THREE[number % 2]
        work = work_of(number, tenant=tenant)
        row = tenants.planes[tenant].add(work.message.occurrence_id)
        row.state, row.tokens = "RUNNING", [work.token]
        leases.hold(work, clock.now())
    clock.time += 20
    leases.beat()
    north, south = (tenants.planes[name] for name in THREE[:2])
    assert named(north, HEARTBEAT) == [[occurrence_id(0), occurrence_id(2)]]
    assert named(south, HEARTBEAT) == [[occurrence_id(1), occurrence_id(3)]]


def test_one_identity_claims_for_all_tenants_in_one_call_as_ever() -> None:
    rig = Rig()
    rig.enqueue_of("north", 1)
    rig.enqueue_of("south", 2)
    rig.does()
    rig.run()
    assert named(rig.plane, CLAIM) == [[occurrence_id(1), occurrence_id(2)]]
    assert rig.consumer.held_off() == {}


def refuse(rig: Rig, how: str) -> None:
    """Let nothing of south be claimed."""
    if how == "credentials":
        rig.tenants.denied["south"] = DENIED
    else:
        rig.tenants.planes["south"].go_wrong(CLAIM, *[SUSPENDED] * 99)


def allow(rig: Rig) -> None:
    rig.tenants.denied.clear()
    rig.tenants.planes["south"].faults.clear()


@pytest.mark.parametrize("how", ["credentials", "api"])
def test_who_cannot_be_signed_for_waits_and_stops_nobody(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tenants=THREE)
    refuse(rig, how)
    kept = rig.enqueue_of("south", 1, 2)
    others = rig.enqueue_of("north", 3) + rig.enqueue_of("west", 4)
    rig.does()
    with caplog.at_level(logging.ERROR, "hourbell.consumer"):
        rig.run()
    assert {row.state for row in others} == {"SUCCEEDED"}
    assert {row.state for row in kept} == {"ENQUEUED"}
    assert len(rig.queue.bodies()) == 2
    # For longer than it is left alone, since each receive counts.
    ((receipts, seconds),) = rig.queue.hidden
    assert (sorted(receipts), seconds) == (["m1-0", "m2-0"], 60)
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("tenant south ")
    assert line.endswith("; again in 4 s")
    assert ("AccessDenied" in line) == (how == "credentials")
    # Full pauses of the queue are for when Hourbell answers nobody.
    assert 1.5 not in rig.clock.pauses


@pytest.mark.parametrize("how", ["credentials", "api"])
def test_a_tenant_is_left_alone_for_longer_each_time_and_then_served(how: str) -> None:
    rig = Rig(tenants=THREE)
    refuse(rig, how)
    (row,) = rig.enqueue_of("south", 1)
    rig.does()
    event = rig.lambda_event()
    tries, waits = [], []
    for _ in range(11):
        for _again in range(2):
            # While it is left alone nobody is asked, whatever comes.
            assert failures(rig.consumer.handle(event)) == ["m1"]
        waits.append(rig.consumer.held_off()["south"])
        calls = len(rig.tenants.planes["south"].calls)
        tries.append(calls or rig.tenants.made["south"])
        rig.clock.time += waits[-1]
    assert tries == list(range(1, 12))
    # Seven eighths of 5 s, doubled each time up to a quarter of an hour.
    doubled = [5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900]
    assert waits == pytest.approx([each * 7 / 8 for each in doubled])
    rig.consumer.handle(event)
    rig.clock.time += 120
    rig.run()
    # All that is left of 787.5 s, for each receive counts.
    assert rig.queue.hidden == [(["m1-1"], 668)]
    allow(rig)
    rig.clock.time += 668
    assert failures(rig.consumer.handle(event)) == []
    assert row.state == "SUCCEEDED"
    assert rig.consumer.held_off() == {}
    # What goes wrong after that begins anew.
    rig.enqueue_of("south", 2)
    rig.tenants.planes["south"].go_wrong(CLAIM, SUSPENDED)
    rig.consumer.handle(rig.lambda_event())
    assert rig.consumer.held_off() == {"south": pytest.approx(5 * 7 / 8)}


def test_receives_of_nothing_but_who_is_left_alone_are_no_tight_loop() -> None:
    rig = Rig(tenants=THREE, concurrency=1)
    refuse(rig, "credentials")
    rig.enqueue_of("south", 1, 2, 3)
    (served,) = rig.enqueue_of("north", 4)
    rig.does()
    rig.run()
    assert rig.clock.pauses.count(1.0) >= 3
    assert rig.tenants.made["south"] == 1
    assert served.state == "SUCCEEDED"


def test_an_outage_of_one_tenant_pauses_as_any_does() -> None:
    rig = Rig(tenants=THREE, concurrency=1)
    rig.tenants.planes["south"].go_wrong(CLAIM, *[NO_CONNECTION] * 8)
    rig.enqueue_of("south", 1, 2)
    rig.does()
    rig.run()
    assert 1.5 in rig.clock.pauses
    assert rig.consumer.held_off() == {}


def test_the_api_says_whose_an_occurrence_is_and_not_the_message() -> None:
    rig = Rig(tenants=THREE)
    rig.tenants.planes["north"].add(occurrence_id(1))
    forged = body_of(occurrence_id(1), tenant="south")
    rig.queue.put(forged)
    rig.does()
    rig.run()
    assert rig.done == []
    assert rig.queue.bodies() == [forged]
    assert rig.tenants.planes["north"].calls == []


@pytest.mark.parametrize("name", ["x", "North", "a/../../admin", "north\n", "n" * 64])
def test_what_is_no_tenants_name_picks_no_credentials(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tenants=THREE)
    rig.enqueue_of(name, 1)
    (row,) = rig.enqueue_of("north", 2)
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(2)]
    assert row.state == "SUCCEEDED"
    assert dict(rig.tenants.made) == {"north": 1}
    assert rig.queue.hidden == [(["m1-0"], 900)]
    # Nothing else tells of it: it is not among those that are held off.
    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= 40]
    assert line == f"{name!r} is no tenant's name: its messages are left"


def test_in_a_lambda_only_who_cannot_be_signed_for_comes_again() -> None:
    rig = Rig(tenants=THREE)
    refuse(rig, "credentials")
    rig.enqueue_of("south", 1)
    (row,) = rig.enqueue_of("north", 2)
    rig.does()
    assert failures(rig.consumer.handle(rig.lambda_event(), Invocation(30))) == ["m1"]
    assert row.state == "SUCCEEDED"


def test_a_tenant_that_is_slow_to_sign_for_keeps_no_other_from_beginning() -> None:
    rig = Rig(tenants=THREE)
    begun = threading.Event()
    slow: list[bool] = []

    def after(_: str) -> None:
        slow.append(begun.wait(10))

    rig.tenants.planes["south"].after = after
    rows = [*rig.enqueue_of("south", 1), *rig.enqueue_of("north", 2)]
    rig.does(lambda message, _: begun.set() if message.tenant == "north" else None)
    rig.run()
    # Its claim, and its complete.
    assert slow == [True, True]
    assert {row.state for row in rows} == {"SUCCEEDED"}


def test_a_lambda_works_for_the_others_while_one_is_never_signed_for() -> None:
    rig = Rig(tenants=THREE)
    over = threading.Event()
    (late,), (row,) = rig.enqueue_of("south", 1), rig.enqueue_of("north", 2)

    def is_at_work() -> bool:
        threads = [each.name for each in threading.enumerate()]
        return any(name.startswith("hourbell-token") for name in threads)

    def hang(_: str) -> None:
        while row.state != "SUCCEEDED" or is_at_work():
            rig.clock.wait(over, 0)
        # Two seconds are left then, in which nothing is waited for.
        rig.clock.time += 28
        over.wait(10)

    rig.tenants.planes["south"].after = hang
    rig.does()
    event = rig.lambda_event()
    assert failures(rig.consumer.handle(event, Invocation(30))) == ["m1"]
    assert row.state == "SUCCEEDED"
    over.set()
    assert rig.done == [occurrence_id(2)]
    assert late.state == "RUNNING"


def test_untracked_work_needs_nobody_to_sign() -> None:
    rig = Rig(tenants=THREE)
    refuse(rig, "credentials")
    rig.enqueue_of("south", 1, tracking="UNTRACKED")
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert rig.queue.bodies() == []


def test_credentials_are_kept_for_those_that_were_used_last() -> None:
    clock = StandingClock()
    tenants = Tenants(clock.now, *THREE)
    transports = TenantTransports(tenants.transport, clock, most=2)
    body = b'{"items": []}'
    for name in ("north", "south", "north", "west", "north", "south"):
        transports.of(name).post("/v1/occurrences/complete", body)
    # West took south's place, for north had been used since.
    assert dict(tenants.made) == {"north": 1, "south": 2, "west": 1}


def test_who_is_left_alone_is_so_however_many_others_there_are() -> None:
    clock = StandingClock()
    tenants = Tenants(clock.now, *THREE, "east")
    tenants.denied["south"] = DENIED
    transports = TenantTransports(tenants.transport, clock, most=2)
    body = b'{"items": []}'

    def fail() -> float:
        with pytest.raises(HeldOff):
            transports.of("south").post("/v1/occurrences/complete", body)
        return transports.held_off("south")

    waits = [fail()]
    for name in ("north", "west", "east", "east"):
        transports.of(name).post("/v1/occurrences/complete", body)
    clock.time += 60
    waits.append(fail())
    assert waits == pytest.approx([5 * 7 / 8, 10 * 7 / 8])
    assert dict(tenants.made) == {"south": 2, "north": 1, "west": 1, "east": 1}
    # Nobody has asked for it for long: its place is another's.
    clock.time += 2_000
    for name in ("north", "west"):
        transports.of(name).post("/v1/occurrences/complete", body)
    assert transports.held_off("south") == 0
    transports.of("north").post("/v1/occurrences/complete", body)
    assert tenants.made["north"] == 2


class Fickle:
    """A transport whose credentials cannot be had a few times."""

    def __init__(self, plane: WorkerPlane, failures: int) -> None:
        self._plane = plane
        self._failures = failures

    def post(self, path: str, body: bytes) -> Reply:
        if self._failures:
            self._failures -= 1
            raise NoCredentials("not now")
        return self._plane.post(path, body)


@pytest.mark.parametrize(("times", "state"), [(2, "SUCCEEDED"), (9, "RUNNING")])
def test_an_end_is_said_when_it_can_be_signed_again_while_the_lease_lives(
    times: int, state: str
) -> None:
    clock = RunningClock()
    plane = WorkerPlane(clock.now)
    fickle = Fickle(plane, times)
    transports = TenantTransports(lambda _: fickle, clock)
    api = WorkerApi(transports, clock, worker="rig:1", lease_seconds=60)
    work = work_of(1)
    row = plane.add(work.message.occurrence_id)
    row.state, row.tokens = "RUNNING", [work.token]
    work.lease_ends = clock.now() + 60
    assert Endings(api, None, clock).settle(work, None) == (state == "SUCCEEDED")
    assert row.state == state
    # It waited as long as the tenant was left alone, and not once for each word.
    assert clock.pauses[:2] == pytest.approx([5 * 7 / 8, 10 * 7 / 8])


def test_a_claim_that_cannot_be_signed_is_not_repeated_in_its_receive() -> None:
    clock = RunningClock()
    plane = WorkerPlane(clock.now)
    transports = TenantTransports(lambda _: Fickle(plane, 1), clock)
    api = WorkerApi(transports, clock, worker="rig:1", lease_seconds=60)
    with pytest.raises(HeldOff, match="tenant 'north': not now"):
        api.claim([work_of(1).held], threading.Event())
    assert clock.pauses == []


def test_failures_at_the_same_time_count_as_one() -> None:
    clock = StandingClock()
    both = threading.Barrier(2)

    class Meeting:
        def post(self, path: str, body: bytes) -> Reply:
            both.wait(10)
            raise NoCredentials("not now")

    transports = TenantTransports(lambda _: Meeting(), clock)
    caller = transports.of("north")

    def call() -> None:
        with pytest.raises(Exception, match="not now"):
            caller.post("/v1/occurrences/complete", b"{}")

    other = threading.Thread(target=call)
    other.start()
    call()
    other.join(10)
    assert transports.held_off("north") == pytest.approx(5 * 7 / 8)
