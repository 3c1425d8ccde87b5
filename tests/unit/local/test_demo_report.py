import io
from datetime import UTC, datetime, timedelta

import pytest
from hourbell.local.demo_oracle import Customer, Expected, Kind, Order
from hourbell.local.demo_report import print_report
from hourbell.local.demo_verdict import Outcome, Verdict
from rich.console import Console

NOON = datetime(2026, 3, 9, 20, tzinfo=UTC)
ACME = Customer("acme", "premium", "settle")


def outcome(name: str, kind: Kind, lag: float | None, copies: int = 1) -> Outcome:
    order = Order(name, kind, ACME, NOON, {})
    occurrence_id = f"sch-{name}.v1.20260309T200000Z"
    expected = Expected(occurrence_id, order, f"sch-{name}", NOON, NOON)
    if lag is None:
        return Outcome(expected, None, 0, None)
    return Outcome(expected, NOON + timedelta(seconds=lag), copies, None)


def shown(verdict: Verdict, width: int = 140) -> str:
    stream = io.StringIO()
    print_report(verdict, "Asia/Kolkata", Console(file=stream, width=width))
    return stream.getvalue()


def test_a_good_run_shows_local_time_utc_and_lag() -> None:
    text = shown(Verdict((outcome("once", Kind.ONE_TIME, 0.25),), (), ()))

    assert "Tue 01:30:00 +05:30" in text
    assert "Mon 20:00:00 UTC" in text
    assert "20:00:00.250" in text
    assert "sch-once.v1.20260309T200000Z" in text
    assert "All arrived." in text


def test_the_burst_is_one_row_with_percentiles() -> None:
    burst = tuple(outcome(f"b{n}", Kind.BURST, n / 100) for n in range(100))
    text = shown(Verdict(burst, (), ()))

    lines = text.splitlines()
    (row,) = (line for line in lines if line.startswith("100 at once, of acme  "))
    assert row.endswith("0.490")
    assert all(line == line.rstrip() for line in lines)
    assert "sch-b7." not in text
    for lag in ("0.490", "0.980", "0.990"):
        assert lag in text


@pytest.mark.parametrize("width", [80, 140])
def test_what_is_wrong_is_named(width: int) -> None:
    outcomes = (
        outcome("gone", Kind.ONE_TIME, None),
        outcome("hasty", Kind.ONE_TIME, -1),
        outcome("slow", Kind.ONE_TIME, 7, copies=2),
    )
    verdict = Verdict(outcomes, ("stranger",), ("id: queue is wrong",))
    text = shown(verdict, width)

    assert "Not as promised." in text
    for complaint in ("Missing (1)", "Early (1)", "Late (1)", "Unexpected (1)"):
        assert complaint in text
    for word in ("gone", "hasty", "slow", "stranger", "id: queue is wrong", "2 copies"):
        assert word in text


def test_a_long_list_is_cut() -> None:
    verdict = Verdict((), tuple(f"stranger-{n}" for n in range(25)), ())
    text = shown(verdict)

    assert "stranger-9" in text
    assert "stranger-10" not in text
    assert "and 15 more" in text
