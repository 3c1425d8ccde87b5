"""Attempts of a call, and of all calls of one request."""

from dataclasses import dataclass

from hourbell.adapters.backoff import Allowance, Backoff


@dataclass
class Time:
    """A clock that only sleeping moves."""

    now: float = 100.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def backoff(time: Time, allowance: Allowance | None = None) -> Backoff:
    """Return attempts with pauses of a second each."""
    return Backoff(
        attempts=50,
        base_seconds=1.0,
        cap_seconds=1.0,
        deadline_seconds=8.0,
        sleep=time.sleep,
        uniform=lambda _, most: most,
        monotonic=time.read,
        allowance=allowance,
    )


def test_a_call_tries_until_its_own_deadline() -> None:
    time = Time()
    assert list(backoff(time).rounds()) == list(range(9))
    assert time.now == 108.0


def test_the_calls_of_a_request_share_its_time() -> None:
    time = Time()
    allowance = Allowance(9.0, time.read)
    calls = backoff(time, allowance)
    allowance.begin()
    assert len(list(calls.rounds())) == 9
    # Each further one is made once more, and then not again.
    assert len(list(calls.rounds())) == 2
    assert len(list(calls.rounds())) == 1
    assert time.now == 109.0


def test_the_next_request_has_its_time_anew() -> None:
    time = Time()
    allowance = Allowance(9.0, time.read)
    allowance.begin()
    time.sleep(60.0)
    assert len(list(backoff(time, allowance).rounds())) == 1
    allowance.begin()
    assert len(list(backoff(time, allowance).rounds())) == 9


def test_what_is_no_request_is_bounded_by_its_calls_alone() -> None:
    time = Time()
    assert len(list(backoff(time, Allowance(1.0, time.read)).rounds())) == 9
