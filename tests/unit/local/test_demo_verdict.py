import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.occurrence import Occurrence, State
from hourbell.local.demo_consumer import Receipt
from hourbell.local.demo_oracle import (
    Created,
    Customer,
    Forecast,
    Kind,
    Order,
    forecast,
)
from hourbell.local.demo_verdict import Lags, Verdict, arrived_ids, judge

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
ACME = Customer("acme", "premium", "settle")
ORDER = Order("once", Kind.ONE_TIME, ACME, NOON, {"total": 1.5})
ID = "sch1.v1.20260309T120000Z"


@pytest.fixture
def due() -> Forecast:
    before = NOON - timedelta(seconds=5)
    return forecast([Created(ORDER, "sch1", before, before)], closing=NOON)


def event(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "specversion": "1.0",
        "type": "com.hourbell.occurrence.due.v1",
        "source": "/hourbell/schedules/sch1",
        "id": ID,
        "time": "2026-03-09T12:00:00Z",
        "subject": "once",
        "datacontenttype": "application/json",
        "data": {
            "handler": "settle",
            "schedule_id": "sch1",
            "version": 1,
            "tenant": "acme",
            "available_at": "2026-03-09T12:00:00Z",
            "payload": {"total": 1.5},
        },
    }
    document |= changes
    return document


def receipt(document: object = None, lag: float = 0.25, **changes: Any) -> Receipt:
    body = json.dumps(document or event())
    arrived = NOON + timedelta(seconds=lag)
    return replace(Receipt("premium-strict", body, "acme", arrived), **changes)


def row(enqueued: float, visible: float) -> Occurrence:
    return Occurrence(
        schedule_id="sch1",
        version=1,
        scheduled_for=NOON,
        shard=3,
        tenant_id="acme",
        sequence=1,
        tzdb="2026f",
        planned_at=NOON - timedelta(seconds=5),
        state=State.ENQUEUED,
        available_at=NOON,
        enqueued_at=NOON + timedelta(seconds=enqueued),
        visible_at=NOON + timedelta(seconds=visible),
    )


def test_one_arrival_in_time_is_good(due: Forecast) -> None:
    verdict = judge(due, [receipt()], {ID: row(-4, 0.01)})

    assert verdict.is_good
    [outcome] = verdict.outcomes
    assert (outcome.enqueue_lag, outcome.visible_lag) == (-4.0, 0.01)
    assert outcome.received_lag == 0.25


def test_nothing_received_is_missing(due: Forecast) -> None:
    verdict = judge(due, [], {})

    assert (verdict.delivered, verdict.missing) == (0, 1)
    assert not verdict.is_good


def test_before_available_at_is_early(due: Forecast) -> None:
    verdict = judge(due, [receipt(lag=-0.001)], {})

    assert verdict.early == 1
    assert not verdict.is_good


@pytest.mark.parametrize(("lag", "late"), [(5.0, 0), (5.001, 1)])
def test_more_than_five_seconds_is_late(due: Forecast, lag: float, late: int) -> None:
    verdict = judge(due, [receipt(lag=lag)], {})

    assert verdict.late == late
    assert verdict.is_good is not bool(late)


def test_copies_are_counted_by_id_and_the_first_one_counts(due: Forecast) -> None:
    verdict = judge(due, [receipt(lag=2), receipt(lag=1), receipt(lag=9)], {})

    assert (verdict.delivered, verdict.duplicates, verdict.late) == (1, 2, 0)
    assert verdict.outcomes[0].received_lag == 1.0


def test_an_id_that_nobody_ordered_is_unexpected(due: Forecast) -> None:
    stranger = receipt(event(id="sch9.v1.20260309T120000Z"))
    verdict = judge(due, [receipt(), stranger], {})

    assert verdict.unexpected == ("sch9.v1.20260309T120000Z",)
    assert not verdict.is_good


def test_a_tolerated_id_is_neither_expected_nor_unexpected(due: Forecast) -> None:
    tolerant = replace(due, tolerated=frozenset({"sch9.v1.20260309T120000Z"}))
    stranger = receipt(event(id="sch9.v1.20260309T120000Z"))
    verdict = judge(tolerant, [receipt(), stranger], {})

    assert verdict.is_good
    assert verdict.delivered == 1


@pytest.mark.parametrize("body", ["not JSON", "[1]", '{"no": "id"}'])
def test_a_message_that_is_no_event_is_unexpected(due: Forecast, body: str) -> None:
    verdict = judge(due, [receipt(), receipt(body=body)], {})

    assert len(verdict.unexpected) == 1


def broken_data(**changes: Any) -> Callable[[], Receipt]:
    return lambda: receipt(event(data={**event()["data"], **changes}))


@pytest.mark.parametrize(
    ("make", "member"),
    [
        (lambda: receipt(event(specversion="0.3")), "specversion"),
        (lambda: receipt(event(type="other")), "type"),
        (lambda: receipt(event(source="")), "source"),
        (lambda: receipt(event(time="2026-03-09T12:00:01Z")), "time"),
        (lambda: receipt(event(time="noon")), "time"),
        (lambda: receipt(event(subject="twice")), "subject"),
        (broken_data(handler="other"), "data.handler"),
        (broken_data(tenant="other"), "data.tenant"),
        (broken_data(version=2), "data.version"),
        (broken_data(payload={"total": 2}), "data.payload"),
        (broken_data(available_at="2026-03-09T12:00:03Z"), "data.available_at"),
        (lambda: receipt(queue="basic-strict"), "queue"),
        (lambda: receipt(group="other"), "message group"),
    ],
)
def test_a_member_that_is_not_as_promised_is_a_fault(
    due: Forecast, make: Callable[[], Receipt], member: str
) -> None:
    verdict = judge(due, [make()], {})

    assert [fault.split(" is ")[0] for fault in verdict.faults] == [f"{ID}: {member}"]
    assert not verdict.is_good


def test_the_summary_has_exactly_the_promised_members(due: Forecast) -> None:
    verdict = judge(due, [receipt()], {ID: row(-4, 0.01)})

    assert json.loads(verdict.as_json()) == {
        "scheduled": 1,
        "delivered": 1,
        "missing": 0,
        "early": 0,
        "duplicates": 0,
        "lag_seconds": {
            "visible": {"p50": 0.01, "p99": 0.01, "max": 0.01},
            "received": {"p50": 0.25, "p99": 0.25, "max": 0.25},
        },
    }
    assert "\n" not in verdict.as_json()


def test_without_any_value_a_lag_is_null() -> None:
    verdict = Verdict((), (), ())

    assert verdict.lags("visible") == Lags(None, None, None)


def test_percentiles_are_values_that_occurred() -> None:
    lags = Lags.of(number / 10 for number in range(1, 201))

    assert (lags.p50, lags.p99, lags.max) == (10.0, 19.8, 20.0)


def test_arrived_ids_are_those_of_events() -> None:
    assert ID in arrived_ids([receipt(), receipt(body="not JSON")])
