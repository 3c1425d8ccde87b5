from datetime import UTC, datetime, timedelta

from hourbell.local.demo_oracle import (
    Created,
    Customer,
    Expected,
    Kind,
    Order,
    closing_instant,
    forecast,
)

ACME = Customer("acme", "premium", "settle")
NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def made(order: Order, asked: datetime, answered: datetime) -> Created:
    return Created(order, f"sch-{order.name}", asked, answered)


def single(name: str, at: datetime, window: int = 0) -> Created:
    kind = Kind.FLEXIBLE if window else Kind.ONE_TIME
    return made(Order(name, kind, ACME, at, {}, window), at - SECOND, at - SECOND)


def minutely(asked: datetime, answered: datetime) -> Created:
    return made(Order("tick", Kind.EVERY_MINUTE, ACME, None, {}), asked, answered)


def test_a_single_time_is_expected_once_under_its_id() -> None:
    due = forecast([single("once", NOON)], closing=NOON)

    [expected] = due.expected.values()
    assert expected.occurrence_id == "sch-once.v1.20260309T120000Z"
    assert expected.available_at == NOON
    assert due.tolerated == frozenset()


def test_whole_minutes_after_the_answer_and_up_to_the_closing_are_expected() -> None:
    start = NOON + 30 * SECOND
    due = forecast([minutely(start, start)], closing=NOON + timedelta(minutes=2))

    assert list(due.expected) == [
        "sch-tick.v1.20260309T120100Z",
        "sch-tick.v1.20260309T120200Z",
    ]
    assert "sch-tick.v1.20260309T120300Z" in due.tolerated


def test_a_minute_that_began_while_creating_may_arrive_but_need_not() -> None:
    created = minutely(NOON - SECOND, NOON + SECOND)
    due = forecast([created], closing=NOON + timedelta(minutes=1))

    assert "sch-tick.v1.20260309T120000Z" in due.tolerated
    assert list(due.expected) == ["sch-tick.v1.20260309T120100Z"]


def test_a_schedule_made_on_the_minute_is_first_due_a_minute_later() -> None:
    due = forecast([minutely(NOON, NOON)], closing=NOON + timedelta(minutes=1))

    assert list(due.expected) == ["sch-tick.v1.20260309T120100Z"]
    assert "sch-tick.v1.20260309T120000Z" not in due.tolerated


def test_jitter_is_the_first_eight_bytes_of_the_ids_sha256_modulo_the_window() -> None:
    [expected] = forecast([single("flex", NOON, 600)], NOON).expected.values()

    # sha256("sch-flex.v1.20260309T120000Z") begins so, by sha256sum.
    first_bytes = 0x9680A1E5EB3114D9
    assert expected.available_at == NOON + (first_bytes % 600) * SECOND


def test_the_closing_waits_for_the_window_and_for_one_whole_minute() -> None:
    start = NOON + 50 * SECOND
    flexible = single("flex", start, 30)

    assert closing_instant([flexible, minutely(start, start)]) == start + 30 * SECOND
    assert closing_instant([minutely(start, start)]) == NOON + timedelta(minutes=1)


def test_the_queue_is_named_by_tier_and_lane() -> None:
    assert single("once", NOON).order.queue == "premium-strict"
    assert single("flex", NOON, 5).order.queue == "premium-flexible"


def test_times_are_kept_apart_by_schedule() -> None:
    due = forecast([single("a", NOON), single("b", NOON)], NOON)

    values: list[Expected] = list(due.expected.values())
    assert [each.schedule_id for each in values] == ["sch-a", "sch-b"]
