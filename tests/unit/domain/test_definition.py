"""Schedules and versions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hourbell.domain.definition import (
    Definition,
    Version,
    derived_schedule_id,
    schedule_id_from,
)
from hourbell.domain.schedule import Timing
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def test_the_same_key_of_the_same_tenant_gives_the_same_id() -> None:
    assert derived_schedule_id("acme", "k1") == derived_schedule_id("acme", "k1")


def test_the_same_key_of_two_tenants_gives_two_ids() -> None:
    assert derived_schedule_id("acme", "k1") != derived_schedule_id("bolt", "k1")


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_different_entropy_spells_different_ids(one: bytes, other: bytes) -> None:
    assert (schedule_id_from(one) == schedule_id_from(other)) is (one == other)
    assert len(schedule_id_from(one)) == 29


def test_a_version_owns_its_times_from_the_first_to_before_the_last() -> None:
    definition = Definition(Timing("@daily"), "ring")
    version = Version("sch1", 1, "acme", "b", definition, NOON, "2026f", NOON, "me")
    tick = timedelta(microseconds=1)
    assert not version.owns(NOON - tick)
    assert version.owns(NOON)
    ended = replace(version, effective_to=NOON + tick)
    assert ended.owns(NOON)
    assert not ended.owns(NOON + tick)


def test_a_flexible_window_decides_the_lane() -> None:
    definition = Definition(Timing("@daily"), "ring")
    assert definition.lane == "strict"
    assert replace(definition, flexible_window_seconds=1).lane == "flexible"
