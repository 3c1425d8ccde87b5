"""Instants are read strictly and written in one way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import (
    ceil_second,
    compact_instant,
    floor_minute,
    format_instant,
    parse_compact,
    parse_instant,
    to_utc,
)

HALF_PAST_SIX = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-09T06:30:00Z",
        "2026-03-09t06:30:00z",
        "2026-03-09 06:30:00Z",
        "2026-03-09T06:30Z",
        "2026-03-09T02:30:00-04:00",
        "2026-03-09T12:15:00+05:45",
        "2026-03-09T06:30:00-00:00",
    ],
)
def test_one_instant_can_be_written_with_any_offset(text: str) -> None:
    instant = parse_instant(text, field="start")

    assert instant == HALF_PAST_SIX
    assert instant.tzinfo is UTC


@pytest.mark.parametrize(
    ("fraction", "microseconds"),
    [("5", 500_000), ("000001", 1), ("1234567", 123_456), ("9" * 19, 999_999)],
)
def test_a_fraction_is_cut_to_microseconds(fraction: str, microseconds: int) -> None:
    instant = parse_instant(f"2026-03-09T06:30:00.{fraction}Z", field="start")

    assert instant == HALF_PAST_SIX + timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "1767225600", "2026-01-01", "2026-01-01T00:00:00"),
        *("2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "0000-01-01T00:00:00Z"),
        *("2026-01-01T24:00:00Z", "2026-01-01T24:00:01Z", "2026-01-01T00:60:00Z"),
        *("2026-12-31T23:59:60Z", "2026-01-01 00:00:00+25:00", "20260101T000000Z"),
        *("2026-01-01T00:00:00+05:60", "2026-01-01T00:00:00+0530", "2026-1-1T0:0:0Z"),
        *("10000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "-026-01-01T00:00:00Z"),
        *(
            "0001-01-01T00:00:00+01:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Z ",
        ),
        "٢٠٢٦-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n",
        f"2026-01-01T00:00:00.{'0' * 50}Z",
        "9" * 100_000,
    ],
)
def test_what_names_no_instant_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_instant(text, field="timing.start_at")

    assert caught.value.code == "invalid_timestamp"
    assert caught.value.findings[0].field == "timing.start_at"
    assert len(caught.value.message) < 200


def test_a_missing_offset_is_suggested() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_instant("2026-01-01T00:00:00", field="start")

    assert caught.value.findings[0].suggestion == "2026-01-01T00:00:00Z"


def test_an_instant_is_written_in_utc_with_a_fraction_only_if_it_has_one() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    early = datetime(987, 1, 1, tzinfo=UTC)

    assert format_instant(HALF_PAST_SIX.astimezone(kathmandu)) == "2026-03-09T06:30:00Z"
    assert format_instant(early) == "0987-01-01T00:00:00Z"
    with_fraction = HALF_PAST_SIX + timedelta(microseconds=500_000)
    assert format_instant(with_fraction) == "2026-03-09T06:30:00.500000Z"


def test_the_compact_form_is_read_back() -> None:
    text = compact_instant(HALF_PAST_SIX)

    assert text == "20260309T063000Z"
    assert parse_compact(text) == HALF_PAST_SIX


def test_the_compact_form_has_no_room_for_a_fraction() -> None:
    with pytest.raises(ValueError, match="whole second"):
        compact_instant(HALF_PAST_SIX + timedelta(microseconds=1))


@pytest.mark.parametrize("text", ["20260309T0630Z", "20261309T063000Z", "", "x" * 99])
def test_a_malformed_compact_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_compact(text, field="cursor")

    assert caught.value.findings[0].field == "cursor"


def test_rounding_keeps_what_is_whole_already() -> None:
    late = HALF_PAST_SIX + timedelta(seconds=59, microseconds=1)

    assert floor_minute(late) == HALF_PAST_SIX
    assert floor_minute(HALF_PAST_SIX) == HALF_PAST_SIX
    assert ceil_second(late) == HALF_PAST_SIX + timedelta(minutes=1)
    assert ceil_second(HALF_PAST_SIX) == HALF_PAST_SIX


def test_a_datetime_without_zone_is_no_instant() -> None:
    with pytest.raises(ValueError, match="no zone"):
        to_utc(datetime(2026, 1, 1))


def test_the_last_second_of_all_is_cut() -> None:
    end = datetime.max.replace(tzinfo=UTC)

    assert ceil_second(end) == end.replace(microsecond=0)
