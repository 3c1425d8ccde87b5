"""Zones come from the pinned package; their transitions are exactly its data."""

from __future__ import annotations

import importlib.resources
import struct
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import pairwise

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.zones import (
    EPOCH,
    TICK,
    TZDB_VERSION,
    Fold,
    Gap,
    TransitionKind,
    clock,
    resolve,
    transitions,
    zone,
)

NAMES = importlib.resources.files("tzdata").joinpath("zones").read_text("utf-8").split()


def recorded_changes(name: str) -> list[tuple[int, int]]:
    """Read (time, new offset) of a zone's data file: RFC 9636, version 2 and later."""
    data = importlib.resources.files("tzdata.zoneinfo").joinpath(name).read_bytes()

    def counts(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    isut, isstd, leap, times, types, chars = counts(0)
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    _, _, _, times, types, _ = counts(second)
    start = second + 44
    at = struct.unpack(f">{times}q", data[start : start + 8 * times])
    kinds = data[start + 8 * times : start + 9 * times]
    records = data[start + 9 * times :]
    offsets = [struct.unpack(">l", records[6 * k : 6 * k + 4])[0] for k in range(types)]
    return [(moment, offsets[kind]) for moment, kind in zip(at, kinds, strict=True)]


@pytest.mark.parametrize("chunk", range(8))
def test_no_transition_since_1970_that_the_data_files_record_is_missed(
    chunk: int,
) -> None:
    for name in NAMES[chunk::8]:
        recorded = recorded_changes(name)
        since_1970 = [
            (after, at)
            for (_, before), (at, after) in pairwise([(0, 0), *recorded])
            if at >= 0 and before != after
        ]
        if not recorded or not since_1970:
            continue
        last = EPOCH + timedelta(seconds=recorded[-1][0])

        found = transitions(zone(name), EPOCH - TICK, last)

        assert [
            (int(each.after.total_seconds()), int((each.at - EPOCH).total_seconds()))
            for each in found
        ] == since_1970, name


def test_the_zone_database_is_the_pinned_package_and_not_the_systems_copy() -> None:
    year, _, release = version("tzdata").partition(".")
    assert f"{year}{'abcdefghijklmnopqrstuvwxyz'[int(release) - 1]}" == TZDB_VERSION
    assert zoneinfo.TZPATH == ()


@pytest.mark.parametrize("name", ["UTC", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_names_and_links_of_the_database_are_zones(name: str) -> None:
    assert zone(name).key == name
    assert zone(name) is zone(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "America", "America/", "/UTC", "UTC\x00", "UTC\n", "GMT+5:30"),
        *("+02:00", "zone.tab", "../../etc/passwd", "/usr/share/zoneinfo/UTC"),
        *("Europe/../UTC", "europe\\berlin", "Zürich", "tzdata", "__init__"),
        "A" * 100_000,
    ],
)
def test_what_is_no_zone_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        zone(name, field="timing.zone")

    finding = caught.value.findings[0]
    assert (finding.field, finding.code) == ("timing.zone", "unknown_zone")
    assert len(finding.message) < 200


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("America/New_Yrok", "America/New_York"),
        ("america/new_york", "America/New_York"),
        ("New York", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("Mars/Olympus", None),
    ],
)
def test_a_misspelt_zone_is_suggested(name: str, meant: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        zone(name)

    assert caught.value.findings[0].suggestion == meant


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_an_ordinary_local_time_is_one_instant() -> None:
    info = zone("Asia/Kathmandu")

    assert resolve(datetime(2026, 7, 1, 9), info) == (at("2026-07-01T03:15"),)


@pytest.mark.parametrize(
    ("name", "missing", "end"),
    [
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00"),
        ("America/New_York", "2026-03-08T02:00", "2026-03-08T07:00"),
        ("Australia/Lord_Howe", "2019-10-06T02:15", "2019-10-05T15:30"),
        ("Pacific/Apia", "2011-12-30T09:00", "2011-12-30T10:00"),
        ("Asia/Beirut", "2024-03-31T00:30", "2024-03-30T22:00"),
    ],
)
def test_a_missing_local_time_is_none_or_the_end_of_its_gap(
    name: str, missing: str, end: str
) -> None:
    local = datetime.fromisoformat(missing)

    assert resolve(local, zone(name), Gap.SKIP) == ()
    assert resolve(local, zone(name), Gap.NEXT_VALID) == (at(end),)


@pytest.mark.parametrize(
    ("fold", "instants"),
    [
        (Fold.FIRST, ("2026-11-01T05:30",)),
        (Fold.SECOND, ("2026-11-01T06:30",)),
        (Fold.BOTH, ("2026-11-01T05:30", "2026-11-01T06:30")),
    ],
)
def test_a_repeated_local_time_counts_as_the_fold_rule_says(
    fold: Fold, instants: tuple[str, ...]
) -> None:
    found = resolve(datetime(2026, 11, 1, 1, 30), zone("America/New_York"), fold=fold)

    assert found == tuple(at(instant) for instant in instants)


def test_local_times_outside_the_years_kept_are_no_instants() -> None:
    assert resolve(datetime(1969, 12, 31, 23), zone("UTC")) == ()
    assert resolve(datetime(2200, 1, 1), zone("UTC")) == ()


def test_transitions_tell_what_the_clock_shows_before_and_after() -> None:
    gap, fold = transitions(
        zone("America/New_York"), at("2026-03-08T06:59:59"), at("2026-11-01T06:00")
    )

    assert (gap.kind, gap.at) == (TransitionKind.GAP, at("2026-03-08T07:00"))
    assert gap.wall_before == datetime(2026, 3, 8, 2)
    assert gap.wall_after == datetime(2026, 3, 8, 3)
    assert (fold.kind, fold.at) == (TransitionKind.FOLD, at("2026-11-01T06:00"))
    assert fold.before - fold.after == timedelta(hours=1)


def test_the_start_of_a_stretch_is_excluded_and_its_end_included() -> None:
    info, change = zone("Europe/Berlin"), at("2026-03-29T01:00")

    assert transitions(info, change, change + timedelta(days=1)) == ()
    assert len(transitions(info, change - TICK, change)) == 1


def test_no_transition_is_looked_for_beyond_the_years_kept() -> None:
    info = zone("Europe/Berlin")
    early, late = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    found = transitions(info, early, late)

    assert found[0].at.year == 1980
    assert found[-1].at.year == 2199
    assert clock(info).at(late) is None


def test_an_offset_with_seconds_keeps_them() -> None:
    # Liberia was 44 minutes and 30 seconds behind until 7 January 1972.
    (change,) = transitions(
        zone("Africa/Monrovia"), at("1972-01-01T00:00"), at("1973-01-01T00:00")
    )

    assert change.at == at("1972-01-07T00:44:30")
    assert change.after == timedelta()
