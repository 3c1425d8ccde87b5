"""When rows are parked, and when they are tried again."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.occurrence import RowKey, bucket_of, minute_of
from hourbell.domain.parking import ParkReason, Trouble, park

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEY = RowKey("20260309T1200Z", 1, "20260309T120000Z#sch#v1")
PATIENT = {ParkReason.UNSENT, ParkReason.UNCLEAR}


@pytest.mark.parametrize("reason", ParkReason)
def test_a_trouble_lasts_when_it_was_tried_after_15_minutes_or_an_hour(
    reason: ParkReason,
) -> None:
    minutes = 60 if reason in PATIENT else 15
    trouble = Trouble(KEY, reason, NOW)
    assert not trouble.had_lasted(None)
    assert not trouble.had_lasted(NOW + minutes * MINUTE - timedelta(seconds=1))
    assert trouble.had_lasted(NOW + minutes * MINUTE)


def test_a_parked_row_is_left_alone_for_15_minutes_and_twice_as_long_each_time() -> (
    None
):
    row = park(Trouble(KEY, ParkReason.TENANT_GONE, NOW, "acme"), 3, NOW)
    assert (row.group, row.key, row.since, row.tries) == (3, KEY, NOW, 0)
    pauses = [row.next_try_at - NOW]
    for _ in range(7):
        row = row.put_off(None, NOW)
        pauses.append(row.next_try_at - NOW)
    assert [pause // MINUTE for pause in pauses] == [
        *(15, 30, 60, 120, 240),
        *(360, 360, 360),
    ]
    assert row.tries == 7


def test_what_a_queue_may_take_again_waits_an_hour_at_most() -> None:
    row = park(Trouble(KEY, ParkReason.UNSENT, NOW), 0, NOW)
    for minutes in (30, 60, 60):
        row = row.put_off(None, NOW)
        assert row.next_try_at - NOW == minutes * MINUTE


def test_the_last_reason_is_kept_and_a_tenant_once_known_is_not_forgotten() -> None:
    row = park(Trouble(KEY, ParkReason.ROW_UNREADABLE, NOW), 0, NOW)
    assert row.tenant_id is None
    row = row.put_off(Trouble(KEY, ParkReason.HANDLER_GONE, NOW, "acme"), NOW)
    assert (row.reason, row.tenant_id) == (ParkReason.HANDLER_GONE, "acme")
    row = row.put_off(Trouble(KEY, ParkReason.ROW_UNREADABLE, NOW), NOW)
    assert (row.reason, row.tenant_id) == (ParkReason.ROW_UNREADABLE, "acme")


def test_a_bucket_is_named_by_its_minute() -> None:
    assert minute_of("20260309T1200Z") == NOW
    assert minute_of(bucket_of(NOW + timedelta(seconds=59))) == NOW
