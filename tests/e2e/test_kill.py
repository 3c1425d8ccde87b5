"""Killing what carries the demo: later is allowed, missing is not."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hourbell.domain.policies import SWEEP_MIN_AGE
from hourbell.local.demo_run import Settings, perform
from hourbell.local.demo_verdict import Verdict
from hourbell.local.demo_watch import PlainWatch
from hourbell.local.processes import signal_process
from hourbell.local.progress import Plain
from hourbell.local.stack import StackInfo, running
from hourbell.local.supervisor import Options

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.engine,
    pytest.mark.timed,
    pytest.mark.timeout(420),
]

BURST = 30
# A sweep that is killed is made good by the next minute's, or by its own redelivery.
PATIENCE_SECONDS = 200.0
BETWEEN_KILLS_SECONDS = 0.5
API = "hourbell-api"


class Killer:
    """Kills each Lambda worker once, in turn, as long as it is entered."""

    def __init__(self, stack: StackInfo, most: int) -> None:
        """Make a killer of at most so many workers of each function."""
        self._stack = stack
        self._most = most
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.spared = {API}
        self.killed: dict[int, str] = {}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(BETWEEN_KILLS_SECONDS):
            for pid, function in self._stack.worker_pids().items():
                dead = list(self.killed.values()).count(function)
                if pid in self.killed or function in self.spared or dead >= self._most:
                    continue
                if signal_process(pid, signal.SIGKILL):
                    self.killed[pid] = function
                self._stopping.wait(BETWEEN_KILLS_SECONDS)


def assert_nothing_is_lost(verdict: Verdict) -> None:
    lost = [o.expected.occurrence_id for o in verdict.outcomes if not o.copies]
    assert lost == []
    assert verdict.early == 0
    assert verdict.unexpected == ()
    assert verdict.faults == ()


def test_killing_every_worker_in_turn_loses_nothing(tmp_path: Path) -> None:
    with running(tmp_path, reporter=Plain(), reuse=False) as stack:
        killer = Killer(stack, most=4)

        def begin_with_the_api() -> None:
            killer.spared.clear()

        settings = Settings(BURST, PATIENCE_SECONDS, on_waiting=begin_with_the_api)
        with killer.at_work():
            verdict = perform(stack, settings, Plain(), PlainWatch())

    assert_nothing_is_lost(verdict)
    assert {API, "hourbell-relay"} <= set(killer.killed.values())


@pytest.mark.long
def test_without_the_pump_the_sweep_delivers_even_if_a_relay_dies(
    tmp_path: Path,
) -> None:
    options = Options(restart_pump=False)
    with running(tmp_path, options=options, reporter=Plain(), reuse=False) as stack:

        def kill_the_pump() -> None:
            stack.kill_pump()
            stack.wait_for(lambda: stack.pump_pid is None, 5, "the pump to end")

        settings = Settings(BURST, PATIENCE_SECONDS, on_creating=kill_the_pump)
        killer = Killer(stack, most=1)
        killer.spared = {API, "hourbell-tick", "hourbell-materializer"}
        with killer.at_work():
            verdict = perform(stack, settings, Plain(), PlainWatch())
        assert stack.pump_pid is None

    assert_nothing_is_lost(verdict)
    assert list(killer.killed.values()) == ["hourbell-relay"]
    for outcome in verdict.outcomes:
        row = outcome.row
        assert row is not None
        assert row.scheduled_at is not None
        assert row.enqueued_at is not None
        # Younger records are left to the stream: the sweep it was that sent these.
        assert row.enqueued_at - row.scheduled_at > SWEEP_MIN_AGE
