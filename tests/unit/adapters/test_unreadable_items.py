"""What another release wrote, or a hand damaged, is told from a store that fails."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hourbell.adapters.dynamodb.control_items import (
    decode_handler,
    decode_tenant,
    encode_handler,
    encode_tenant,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    encode_schedule,
    encode_version,
)
from hourbell.adapters.dynamodb.work_items import decode_lane
from hourbell.domain.definition import Handler, Tenant, Tier
from hourbell.domain.errors import Permanent

from tests.conformance import samples

VERSION = encode_version(samples.version())
SCHEDULE = encode_schedule(samples.schedule())
TENANT = encode_tenant(Tenant("acme", Tier.BASIC))
HANDLER = encode_handler(Handler("acme", "ring"))
TIMING = json.loads(VERSION["timing"]["S"])
BOLD: dict[str, object] = {
    "max_attempts": 500,
    "base_seconds": 1,
    "cap_seconds": 1,
    "deadline_seconds": None,
    "retryable": [],
}


def text(value: object) -> dict[str, str]:
    return {"S": value if isinstance(value, str) else json.dumps(value)}


@pytest.mark.parametrize(
    ("read", "item", "change"),
    [
        # Of a later release, whose items have the same form.
        (decode_version, VERSION, {"misfire": text("RUN_ALL")}),
        (decode_version, VERSION, {"overlap": text("REPLACE")}),
        (decode_version, VERSION, {"timing": text(TIMING | {"jitter": 5})}),
        (decode_version, VERSION, {"retry": text(BOLD)}),
        (decode_schedule, SCHEDULE, {"state": text("DRAFT")}),
        (decode_tenant, TENANT, {"tier": text("GOLD")}),
        (decode_handler, HANDLER, {"routing": text("BROADCAST")}),
        # Damaged.
        (decode_version, VERSION, {"tzdb": {"NULL": True}}),
        (decode_version, VERSION, {"timing": text("{")}),
        (decode_version, VERSION, {"timing": text([])}),
        (decode_schedule, SCHEDULE, {"created_at": text("yesterday")}),
        (decode_tenant, TENANT, {"state": {"NULL": True}}),
        (decode_handler, HANDLER, {"name": {"NULL": True}}),
    ],
)
def test_an_item_that_makes_no_sense_is_unreadable(
    read: Callable[[Any], object], item: dict[str, Any], change: dict[str, Any]
) -> None:
    read(item)
    with pytest.raises(Permanent) as caught:
        read(item | change)
    assert caught.value.code == "unreadable_item"


def test_a_lane_without_its_revision_is_unreadable() -> None:
    with pytest.raises(Permanent) as caught:
        decode_lane(samples.schedule_id("one"), {"schema": TENANT["schema"]})
    assert caught.value.code == "unreadable_item"
