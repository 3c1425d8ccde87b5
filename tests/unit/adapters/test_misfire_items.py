"""Misfire policies, decisions and catch-up rates in the items of the tables."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.dynamodb.control_items import decode_tenant, encode_tenant
from hourbell.adapters.dynamodb.row_items import decode_occurrence, encode_occurrence
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    encode_schedule,
    encode_version,
)
from hourbell.domain.definition import Quotas, Tenant, Tier
from hourbell.domain.errors import Permanent
from hourbell.domain.misfire import (
    MAX_CATCH_UP,
    MAX_COVERED,
    Decision,
    Misfire,
    MisfirePolicy,
)
from hourbell.domain.occurrence import Occurrence

from tests.conformance import samples
from tests.conformance.samples import DUE, MINUTE, NOW, planned
from tests.unit.adapters.test_items import item_size, largest_row

DECISION = Decision(
    as_of=NOW,
    last=DUE + 4 * MINUTE,
    count=5,
    sequence=12,
    runs_from=DUE + 3 * MINUTE,
    runs=2,
    following=DUE + 5 * MINUTE,
    per_minute=600,
)
TEXT = (
    '{"as_of":"2026-03-09T06:28:17.250000Z","last":"2026-03-09T06:34:00Z",'
    '"count":5,"sequence":12,"runs_from":"2026-03-09T06:33:00Z","runs":2,'
    '"following":"2026-03-09T06:35:00Z","per_minute":600}'
)
POLICIES = [
    Misfire(),
    Misfire(MisfirePolicy.SKIP),
    Misfire(MisfirePolicy.CATCH_UP, 1_000),
    Misfire(MisfirePolicy.FIRE_ONCE, None, 61),
]


def gap_row(decision: Decision = DECISION) -> Occurrence:
    return replace(planned(), decision=decision)


@pytest.mark.parametrize("misfire", POLICIES, ids=str)
def test_a_policy_is_kept_with_definition_and_version(misfire: Misfire) -> None:
    definition = replace(samples.definition(), misfire=misfire)
    schedule = replace(samples.schedule(), definition=definition)
    version = replace(samples.version(), definition=definition)
    assert decode_schedule(encode_schedule(schedule)) == schedule
    assert decode_version(encode_version(version)) == version


def test_the_usual_policy_is_left_out_so_that_older_items_have_it() -> None:
    item = encode_schedule(samples.schedule())
    names = {"misfire", "catch_up_limit", "max_lateness_seconds"}
    assert item.keys() & names == set()
    assert decode_schedule(item).definition.misfire == Misfire()


def test_a_policy_has_three_attributes() -> None:
    misfire = Misfire(MisfirePolicy.CATCH_UP, 5, 3_600)
    definition = replace(samples.definition(), misfire=misfire)
    item = encode_version(replace(samples.version(), definition=definition))
    assert item["misfire"] == {"S": "CATCH_UP"}
    assert item["catch_up_limit"] == {"N": "5"}
    assert item["max_lateness_seconds"] == {"N": "3600"}


def test_a_decision_is_json_text_that_stays_as_it_is() -> None:
    item = encode_occurrence(gap_row())
    assert item["decision"] == {"S": TEXT}
    assert decode_occurrence(item) == gap_row()


@pytest.mark.parametrize("name", ["runs_from", "following"])
def test_what_a_decision_lacks_is_null(name: str) -> None:
    changes: dict[str, Any] = {name: None}
    row = gap_row(replace(DECISION, **changes))
    item = encode_occurrence(row)
    assert json.loads(item["decision"]["S"])[name] is None
    assert decode_occurrence(item) == row


def test_a_row_without_decision_has_no_such_attribute() -> None:
    item = encode_occurrence(planned())
    assert "decision" not in item
    assert decode_occurrence(item).decision is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "5",
        '"as_of"',
        "{}",
        TEXT.replace('"count"', '"counted"'),
        TEXT.replace('"per_minute":', '"per_minute":-'),
        TEXT.replace('"count":', '"count":"'),
        TEXT.replace("06:34:00Z", "06:34:00"),
        TEXT.replace('"2026-03-09T06:34:00Z"', '"soon"'),
        TEXT.replace('"2026-03-09T06:34:00Z"', "7"),
    ],
)
def test_a_decision_that_makes_no_sense_makes_its_row_unreadable(text: str) -> None:
    item = encode_occurrence(planned()) | {"decision": {"S": text}}
    with pytest.raises(Permanent) as raised:
        decode_occurrence(item)
    assert raised.value.code == "unreadable_item"


def test_a_member_of_a_later_release_is_ignored() -> None:
    text = TEXT.replace('"as_of":', '"more":1,"as_of":')
    item = encode_occurrence(planned()) | {"decision": {"S": text}}

    without = item | {"decision": {"S": TEXT}}
    assert decode_occurrence(item) == decode_occurrence(without)


def test_a_catch_up_rate_is_kept_and_600_where_there_is_none() -> None:
    tenant = Tenant("acme", Tier.BASIC, quotas=Quotas(catch_up_per_minute=7))
    item = encode_tenant(tenant)
    assert item["quota_catch_up_per_minute"] == {"N": "7"}
    assert decode_tenant(item) == tenant
    del item["quota_catch_up_per_minute"]
    assert decode_tenant(item).quotas.catch_up_per_minute == 600


@pytest.mark.parametrize("rate", [7, None])
def test_a_rate_of_triggers_is_kept_and_absent_where_there_is_none(
    rate: int | None,
) -> None:
    tenant = Tenant("acme", Tier.BASIC, quotas=Quotas(triggers_per_minute=rate))
    item = encode_tenant(tenant)
    assert ("quota_triggers_per_minute" in item) is (rate is not None)
    assert decode_tenant(item) == tenant


def test_a_gap_row_stays_below_one_write_unit() -> None:
    largest = replace(
        DECISION,
        count=MAX_COVERED + MAX_CATCH_UP,
        sequence=10**9,
        runs=MAX_CATCH_UP,
        per_minute=60_000,
    )
    missed = samples.canceling(replace(largest_row(), run=None), "x" * 22).row
    size = item_size(encode_occurrence(replace(missed, decision=largest)))
    # As docs/data-model.md says; the longest reason is MISFIRE_LATER_ONE_RUNS.
    assert size == 853
