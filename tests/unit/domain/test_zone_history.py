"""A past release's rules are at hand, back to 2024b, and told by IANA's own news."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.schedule import Timing, next_time, previous_time, under, upcoming
from hourbell.domain.zone_history import ZonePatch, patches
from hourbell.domain.zones import (
    TZDB_VERSION,
    has_other_rules,
    release_at_hand,
    zone,
)

from devtools.zone_history import offsets

ASUNCION = "America/Asuncion"
DAILY = Timing("0 9 * * *", ASUNCION)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def hours(name: str, release: str, when: tuple[int, int, int]) -> float:
    local = datetime(*when, tzinfo=UTC).astimezone(zone(name, release=release))
    return (local.utcoffset() or timedelta()) / timedelta(hours=1)


def test_the_chain_of_releases_leads_from_2024b_to_the_pinned_one() -> None:
    found = patches()
    assert found[0].release <= "2024b"
    links = [(each.release, each.next) for each in found]
    following = [*(each.release for each in found[1:]), TZDB_VERSION]
    hint = "the pin has moved: run `python3 dev.py tzdata` for the release before"
    assert links == [(a.release, b) for a, b in zip(found, following, strict=True)], (
        hint
    )


@pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.release)
def test_a_release_has_only_zones_whose_rules_the_next_one_changed(
    patch: ZonePatch,
) -> None:
    assert patch.zones
    for name in patch.zones:
        rules = zone(name, release=patch.release)
        assert rules.key == name
        assert offsets(rules) != offsets(zone(name, release=patch.next)), name


# What IANA announced for each release: offsets in hours before and after it.
ANNOUNCED = [
    # Paraguay keeps its summer time for good, said 2025a.
    ("2024b", ASUNCION, (2026, 7, 1), -4, -3),
    # British Columbia stays at -7 from November 2026 on, said 2026b.
    ("2026a", "America/Vancouver", (2027, 1, 1), -8, -7),
    # Morocco gives up +1 in September 2026, said 2026c.
    ("2026b", "Africa/Casablanca", (2026, 10, 1), 1, 0),
    # Links go with their zone.
    ("2026d", "Canada/Central", (2027, 1, 1), -6, -5),
]


@pytest.mark.parametrize(("release", "name", "when", "before", "after"), ANNOUNCED)
def test_an_announced_change_holds_from_its_release_on(
    release: str, name: str, when: tuple[int, int, int], before: int, after: int
) -> None:
    following = next(each.next for each in patches() if each.release == release)
    assert hours(name, release, when) == before
    assert hours(name, following, when) == after
    assert hours(name, TZDB_VERSION, when) == after
    # Nothing older is left of it: the chain goes back through every release.
    assert hours(name, patches()[0].release, when) == before


def test_a_release_before_all_known_ones_is_read_as_the_oldest_known() -> None:
    assert release_at_hand("2019c") == "2024b"
    assert zone(ASUNCION, release="2019c").utcoffset(datetime(2026, 7, 1)) == timedelta(
        hours=-4
    )


@pytest.mark.parametrize("release", ["2031a", TZDB_VERSION])
def test_a_release_that_is_not_known_yet_is_read_as_the_present(release: str) -> None:
    assert release_at_hand(release) == TZDB_VERSION
    assert zone(ASUNCION, release=release) is zone(ASUNCION)


def test_an_unchanged_zone_is_the_same_object_in_every_release() -> None:
    assert zone("Europe/Berlin", release="2024b") is zone("Europe/Berlin")
    assert not has_other_rules("Europe/Berlin", "2024b")
    berlin = Timing("0 9 * * *", "Europe/Berlin")
    assert under(berlin, "2024b") is berlin
    assert under(DAILY, "2025a") is DAILY


def test_a_changed_zone_is_kept_ready() -> None:
    assert under(DAILY, "2024b") is under(DAILY, "2024b")
    assert under(DAILY, "2024b").to_dict() == DAILY.to_dict()


def test_what_is_no_zone_is_none_in_any_release() -> None:
    with pytest.raises(InvalidInput, match="not an IANA zone"):
        zone("Mars/Olympus", release="2024b")


def test_times_come_by_the_release_that_they_are_asked_under() -> None:
    old, noon = under(DAILY, "2024b"), utc(2026, 7, 1, 12, 30)
    # 09:00 at -4 is 13:00 UTC, at -3 it is 12:00.
    assert next_time(old, noon) == utc(2026, 7, 1, 13)
    assert next_time(DAILY, noon) == utc(2026, 7, 2, 12)
    assert previous_time(old, noon) == utc(2026, 6, 30, 13)
    assert previous_time(DAILY, noon) == utc(2026, 7, 1, 12)


def test_an_at_and_excluded_dates_go_by_the_release_too() -> None:
    once = under(Timing("at(2026-07-01T00:30:00)", ASUNCION), "2024b")
    assert next_time(once, utc(2026, 1, 1)) == utc(2026, 7, 1, 4, 30)
    first_of_july = Timing.from_dict(
        {
            "expression": "rate(1 hour)",
            "zone": ASUNCION,
            "anchor": "2026-07-01T00:00:00Z",
            "exclude": ["2026-07-01"],
        }
    )
    # The day lasts from 04:00 UTC to the next 04:00 by the old rules.
    times = upcoming(under(first_of_july, "2024b"), utc(2026, 7, 1, 2))
    assert [next(times), next(times)] == [utc(2026, 7, 1, 3), utc(2026, 7, 2, 4)]
