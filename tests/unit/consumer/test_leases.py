"""Beats: when leases and visibility are extended, and what is learned from them."""

import threading

import pytest
from hourbell.consumer.api import WorkerApi
from hourbell.consumer.context import Context, Signals
from hourbell.consumer.endings import Endings
from hourbell.consumer.errors import Stopped
from hourbell.consumer.leases import Leases
from hourbell.consumer.work import Work

from tests.consumers.memory_queue import MemoryQueue
from tests.consumers.rig import START, RunningClock, StandingClock, work_of
from tests.consumers.worker_plane import (
    COMPLETE,
    HEARTBEAT,
    NO_CONNECTION,
    Fault,
    WorkerPlane,
)

LEASE = 60


class Bench:
    """Leases on fakes, without a thread."""

    def __init__(self, clock: StandingClock) -> None:
        self.clock = clock
        self.plane = WorkerPlane(clock.now)
        self.queue = MemoryQueue(clock.now)
        self.api = WorkerApi(self.plane, clock, worker="rig:1", lease_seconds=LEASE)
        self.leases = Leases(self.api, self.queue, clock)

    def hold(self, number: int, **members: object) -> Work:
        """Hold work that is claimed just now."""
        work = work_of(number, **members)
        if work.is_tracked:
            row = self.plane.add(work.message.occurrence_id)
            row.state, row.tokens = "RUNNING", [work.token]
        self.leases.hold(work, self.clock.now())
        return work

    def at(self, seconds: float) -> int:
        """Beat so long after the start; return how many heartbeats there were."""
        self.clock.time = START + seconds
        self.leases.beat()
        return len(self.plane.called(HEARTBEAT))


@pytest.fixture
def bench() -> Bench:
    return Bench(StandingClock())


def test_a_beat_comes_every_third_of_the_lease(bench: Bench) -> None:
    work = bench.hold(1)
    assert [bench.at(seconds) for seconds in (19, 20, 39, 40, 41)] == [0, 1, 1, 2, 2]
    assert work.lease_ends == START + 40 + LEASE
    assert not work.lost.is_set()


def test_a_beat_hides_the_message_for_a_lease(bench: Bench) -> None:
    bench.hold(1)
    bench.at(20)
    assert bench.queue.hidden == [(["r1"], LEASE)]


def test_a_beat_without_an_answer_is_repeated_sooner(bench: Bench) -> None:
    bench.hold(1)
    bench.plane.go_wrong(HEARTBEAT, NO_CONNECTION, Fault(item_status=503))
    beats = [bench.at(seconds) for seconds in (20, 24, 25, 29, 30, 49, 50)]
    assert beats == [1, 1, 2, 2, 3, 3, 4]


def test_more_than_ten_are_extended_in_several_calls(bench: Bench) -> None:
    for number in range(23):
        bench.hold(number)
    bench.at(20)
    sizes = [len(call["items"]) for call in bench.plane.called(HEARTBEAT)]
    assert sorted(sizes) == [3, 10, 10]


def test_a_lease_that_runs_out_is_lost_until_a_beat_is_answered(bench: Bench) -> None:
    work = bench.hold(1)
    bench.plane.go_wrong(HEARTBEAT, NO_CONNECTION)
    bench.at(60)
    assert work.lost.is_set()
    bench.at(66)
    assert not work.lost.is_set()
    assert not work.gone


@pytest.mark.parametrize("status", [404, 409])
def test_a_lease_of_another_is_gone_and_beats_end(bench: Bench, status: int) -> None:
    work = bench.hold(1)
    bench.plane.go_wrong(HEARTBEAT, Fault(item_status=status))
    bench.at(20)
    assert work.gone
    assert work.lost.is_set()
    assert bench.at(60) == 1
    assert bench.queue.hidden == []


def test_what_is_settling_is_not_extended(bench: Bench) -> None:
    work = bench.hold(1)
    work.settling = True
    assert bench.at(20) == 0


def test_a_beat_that_meets_the_end_of_its_work_is_no_loss(bench: Bench) -> None:
    work = bench.hold(1)

    def end(_: str) -> None:
        work.settling = True

    bench.plane.rows.clear()
    bench.plane.after = end
    bench.at(20)
    assert not work.gone
    assert not work.lost.is_set()


def test_untracked_work_only_hides_its_message(bench: Bench) -> None:
    work = bench.hold(1, tracking="UNTRACKED")
    assert [bench.at(seconds) for seconds in (20, 21, 40, 100)] == [0, 0, 0, 0]
    assert bench.queue.hidden == [(["r1"], LEASE)] * 3
    assert not work.lost.is_set()


def test_what_was_deleted_at_once_is_not_hidden(bench: Bench) -> None:
    bench.hold(1, receipts=[])
    bench.at(20)
    assert bench.queue.hidden == []


def test_a_queue_that_fails_ends_no_work(bench: Bench) -> None:
    work = bench.hold(1)
    bench.queue.faults = 1
    bench.at(20)
    assert work.lease_ends == START + 20 + LEASE


def test_what_is_dropped_is_not_extended(bench: Bench) -> None:
    work = bench.hold(1)
    bench.leases.drop(work)
    bench.leases.drop(work)
    assert bench.at(20) == 0


def test_an_end_is_said_for_as_long_as_the_lease_lives() -> None:
    bench = Bench(RunningClock())
    work = bench.hold(1)
    bench.plane.go_wrong(COMPLETE, *[NO_CONNECTION] * 100)
    assert not Endings(bench.api, bench.queue, bench.clock).settle(work, None)
    assert START + 50 < bench.clock.time < START + LEASE
    # 0.15 + 0.3 + 0.6 + 1.2 + 2.4 s, then 3.75 s each.
    assert bench.clock.pauses[:6] == pytest.approx([0.15, 0.3, 0.6, 1.2, 2.4, 3.75])
    assert len(bench.plane.called(COMPLETE)) == len(bench.clock.pauses) + 1


def test_nothing_is_repeated_for_what_is_abandoned() -> None:
    bench = Bench(RunningClock())
    work = bench.hold(1)
    bench.plane.go_wrong(COMPLETE, *[NO_CONNECTION] * 9)
    endings = Endings(bench.api, bench.queue, bench.clock)
    endings.abandon()
    assert not endings.settle(work, None)
    assert len(bench.plane.called(COMPLETE)) == 1


def context_of(clock: StandingClock) -> tuple[Context, Signals]:
    signals = Signals(threading.Event(), threading.Event(), threading.Event())
    return Context(work_of(1).message, 1, signals, clock), signals


def test_a_handler_sleeps_as_long_as_it_wants_if_nothing_happens() -> None:
    clock = RunningClock()
    context, _ = context_of(clock)
    context.wait(1.2)
    assert clock.pauses == pytest.approx([0.5, 0.5, 0.2])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cancel", "the occurrence was canceled"),
        ("lost", "the lease is lost"),
        ("stopping", "the consumer stops"),
    ],
)
def test_a_sleeping_handler_gives_up_with_the_reason(name: str, reason: str) -> None:
    context, signals = context_of(RunningClock())
    assert not context.should_stop
    getattr(signals, name).set()
    with pytest.raises(Stopped, match=reason):
        context.wait(60)
    assert context.should_stop


def test_a_message_of_untracked_work_that_was_not_hidden_is_hidden_sooner(
    bench: Bench,
) -> None:
    bench.hold(1, tracking="UNTRACKED")
    bench.queue.faults = 1
    hidden = []
    for seconds in (20, 24, 25, 44, 45):
        bench.at(seconds)
        hidden.append(len(bench.queue.hidden))
    # A queue hides for 30 s unless it is told another time.
    assert hidden == [0, 0, 1, 1, 2]


def test_untracked_work_does_not_wait_for_the_heartbeats_of_other_work(
    bench: Bench,
) -> None:
    bench.hold(1)
    bench.hold(2, tracking="UNTRACKED")
    hidden: list[list[str]] = []

    def after(_: str) -> None:
        hidden.extend(receipts for receipts, _ in bench.queue.hidden)

    bench.plane.after = after
    bench.at(20)
    assert hidden == [["r2"]]


def test_an_answer_for_what_was_dropped_meanwhile_says_nothing_of_it(
    bench: Bench,
) -> None:
    work = bench.hold(1)

    def drop(_: str) -> None:
        bench.leases.drop(work)
        work.lost.set()

    bench.plane.after = drop
    bench.at(20)
    # Nobody is going to extend it again.
    assert work.lost.is_set()


def test_a_heartbeat_that_hangs_keeps_no_other_from_being_heard(
    bench: Bench,
) -> None:
    works = [bench.hold(number) for number in range(35)]
    over = threading.Event()
    hanging = iter([True])
    names: list[str] = []

    def hang(_: str) -> None:
        if next(hanging, False):
            assert over.wait(10)

    bench.plane.after = hang
    bench.clock.time = START + 20
    beat = threading.Thread(target=bench.leases.beat)
    beat.start()
    for _turn in range(1_000):
        names = [w.token for w in works if w.lease_ends == START + 20 + LEASE]
        if len(names) == 25:
            break
        bench.clock.wait(over, 0)
    over.set()
    beat.join(10)
    assert len(names) in {25, 30}
    assert {work.lease_ends for work in works} == {START + 20 + LEASE}


def test_a_heartbeat_that_hangs_keeps_no_later_beat_from_the_others(
    bench: Bench,
) -> None:
    bench.leases.patience = 0.0
    works = [bench.hold(number) for number in range(20)]
    over = threading.Event()
    hanging = iter([True])

    def hang(_: str) -> None:
        if next(hanging, False):
            assert over.wait(10)

    def heard(seconds: float) -> int:
        bench.clock.time = START + seconds
        beat = threading.Thread(target=bench.leases.beat)
        beat.start()
        beat.join(10)
        assert not beat.is_alive()
        for _turn in range(1_000):
            ends = [w.lease_ends for w in works if not w.beating]
            if ends and min(ends) == START + seconds + LEASE:
                break
            bench.clock.wait(over, 0)
        return sum(w.lease_ends == START + seconds + LEASE for w in works)

    bench.plane.after = hang
    try:
        # No second heartbeat for what has one under way.
        assert [heard(20), heard(40), heard(60)] == [10, 10, 10]
        assert len(bench.plane.called(HEARTBEAT)) == 4
        # Nobody knows whether it was heard.
        assert sum(work.lost.is_set() for work in works) == 10
    finally:
        over.set()


def test_what_is_claimed_long_ago_and_answered_now_is_not_lost_before_its_beat(
    bench: Bench,
) -> None:
    work = bench.hold(1)
    lost: list[bool] = []
    bench.plane.after = lambda _: lost.append(work.lost.is_set())
    # All answers but the last one took so long.
    bench.at(70)
    assert lost == [False]
    assert not work.lost.is_set()
    assert work.lease_ends == START + 70 + LEASE
