"""What a tenant may have: its handlers, and its quotas."""

from dataclasses import replace

import pytest
from hourbell.domain.definition import (
    Definition,
    Handler,
    HandlerState,
    Quotas,
    Tenant,
    Tier,
    Tracking,
)
from hourbell.domain.retry import Retry
from hourbell.domain.schedule import Timing
from hourbell.usecases.admission import admission_findings

from tests.unit.usecases.world import START, World

TIGHT = Quotas(
    payload_bytes=4,
    min_interval_seconds=3_600,
    retry_attempts=5,
    retry_deadline_seconds=86_400,
)
ACME = Tenant("acme", Tier.STANDARD, quotas=TIGHT)
FINE = Definition(Timing("0 9 * * *"), "ring")
WORK = replace(FINE, tracking=Tracking.TRACKED)


def codes(definition: Definition, before: Definition | None = None) -> list[str]:
    world = World()
    world.directory.register_handler(Handler("acme", "old", state=HandlerState.RETIRED))
    directory = world.directory
    found = admission_findings(directory, ACME, definition, START, before=before)
    return [finding.code for finding in found]


def test_what_fits_is_admitted() -> None:
    assert codes(FINE) == codes(WORK) == []


def test_a_policy_that_comes_with_tracking_is_judged_and_one_without_is_not() -> None:
    many = Retry(max_attempts=50)
    before = replace(FINE, retry=many)
    assert codes(before) == []
    assert codes(replace(before, tracking=Tracking.TRACKED), before) == [
        "retry_over_quota"
    ]


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (replace(FINE, handler="bark"), "unknown_handler"),
        (replace(FINE, handler="old"), "handler_retired"),
        # Two characters of two bytes, and the quotes.
        (replace(FINE, payload_json='"üü"'), "payload_too_large"),
        (replace(FINE, timing=Timing("*/30 * * * *")), "interval_too_short"),
        (replace(FINE, timing=Timing("rate(59 minutes)")), "interval_too_short"),
        (replace(WORK, retry=Retry(max_attempts=6)), "retry_over_quota"),
        (replace(WORK, retry=Retry(deadline_seconds=86_401)), "retry_over_quota"),
        (replace(WORK, retry=Retry(deadline_seconds=None)), "retry_over_quota"),
    ],
)
def test_what_does_not_fit_is_refused_unless_it_was_so_before(
    definition: Definition, code: str
) -> None:
    assert codes(definition) == [code]
    assert codes(replace(definition, flexible_window_seconds=9), definition) == []


@pytest.mark.parametrize(
    ("expression", "zone", "fits"),
    [
        ("0 * * * *", "UTC", True),
        ("0,59 9 * * *", "UTC", False),
        # 23:30 and 00:15 of the day after.
        ("30 23 * * *", "UTC", True),
        ("15,30 0,23 * * *", "UTC", False),
        ("rate(1 hour)", "UTC", True),
        ("at(2027-01-31T09:00:00)", "UTC", True),
        # Once a year, two days after each other.
        ("0 0 1,2 1 *", "UTC", True),
        # The clocks go back from 03:00 to 02:00: 03:00 comes two hours after 02:00.
        ("0 2,3 * * *", "Europe/Berlin", True),
    ],
)
def test_the_least_distance_counts(expression: str, zone: str, *, fits: bool) -> None:
    definition = replace(FINE, timing=Timing(expression, zone))
    assert (codes(definition) == []) is fits


def test_the_default_bites_nobody() -> None:
    tenant = Tenant("acme", Tier.STANDARD)
    definition = replace(FINE, timing=Timing("* * * * *"))
    directory = World().directory
    assert admission_findings(directory, tenant, definition, START) == ()
