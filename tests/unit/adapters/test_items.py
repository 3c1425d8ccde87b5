"""The items of the tables: keys, sizes, schema versions."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import encode
from hourbell.adapters.dynamodb.control_items import (
    decode_handler,
    decode_tenant,
    encode_group,
    encode_handler,
    encode_listed,
    encode_own_principal,
    encode_principal,
    encode_tenant,
)
from hourbell.adapters.dynamodb.count_items import count_item_key, slot_item_key
from hourbell.adapters.dynamodb.loads import load_item_key
from hourbell.adapters.dynamodb.models import GroupItem, OccurrenceItem
from hourbell.adapters.dynamodb.packed import insertion, transition
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    decode_row_key,
    encode_dispatch,
    encode_occurrence,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    encode_name,
    encode_schedule,
    encode_version,
)
from hourbell.domain.definition import Handler, Tenant, Tier
from hourbell.domain.errors import Permanent
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, Transition, partition_of
from hourbell.usecases.ports import Change

from tests.conformance import samples
from tests.conformance.samples import DUE, MINUTE, acknowledging, planned, scheduling
from tests.conformance.work_samples import full

TABLES = layout.DOCUMENT["tables"]
UNIT_BYTES = 1024
DATA_MODEL = Path(__file__).parents[3] / "docs" / "data-model.md"


def item_size(item: dict[str, Any]) -> int:
    """Return an item's size by DynamoDB's rules, in bytes."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: dict[str, Any]) -> int:
    ((letter, content),) = value.items()
    if letter == "S":
        return len(content.encode())
    if letter == "N":
        return (len(content.lstrip("-")) + 1) // 2 + 1
    if letter == "M":
        members = sum(
            len(name.encode()) + value_size(member) + 1
            for name, member in content.items()
        )
        return 3 + members
    return 1


def largest_row() -> Occurrence:
    """Return an untracked row at the end of its life with the longest legal ids.

    It is a manual run, on an external queue.
    """
    row = replace(planned(), tenant_id="t" * 64, shard=1023, sequence=10**9)
    row = replace(row, version=10**9, planned_at=samples.NOW)
    row = replace(row, run="f" * 16)
    queue = f"arn:aws:sqs:ap-southeast-1:111122223333:{'q' * 80}"
    outbox = replace(scheduling(row).row, available_at=samples.NOW, queue=queue)
    return replace(acknowledging(outbox).row, visible_at=samples.NOW)


def test_an_untracked_row_stays_well_below_one_write_unit() -> None:
    row = largest_row()
    assert len(row.schedule_id) == 29

    canceled = samples.canceling(row, "SUPERSEDED").row
    assert item_size(encode_occurrence(canceled)) < 0.7 * UNIT_BYTES


def test_the_documented_sizes_of_rows_are_those_measured() -> None:
    scheduled = scheduling(planned()).row
    largest = samples.canceling(largest_row(), "SUPERSEDED").row
    rows = (planned(), scheduled, acknowledging(scheduled).row, largest)

    first, second, third, most = (item_size(encode_occurrence(row)) for row in rows)

    told = " ".join(DATA_MODEL.read_text(encoding="utf-8").split())
    sentence = f"{first} bytes planned, {second} scheduled, {third} enqueued; {most} at"
    assert sentence in told


def test_a_group_of_64_shards_stays_below_one_write_unit() -> None:
    marks = {shard: DUE + shard * MINUTE for shard in range(960, 1024)}
    values = {
        "holder": "materializer/" + "r" * 36,
        "lease_until": DUE,
        "watermarks": marks,
    }

    item = encode_group(1023, DUE) | encode(GroupItem, values)

    assert item_size(item) < UNIT_BYTES


def keys_of(item: dict[str, Any], keys: layout.Keys) -> tuple[str, str]:
    return item[keys.partition]["S"], item[keys.sort]["S"]


def filled(template: str, **values: object) -> str:
    """Return a key template of the document with values in its places."""
    for name, value in values.items():
        template = template.replace(f"<{name}>", str(value))
    assert "<" not in template
    return template


def test_keys_are_those_of_the_document() -> None:
    schedules = TABLES["schedules"]["items"]
    definition = keys_of(encode_schedule(samples.schedule()), layout.SCHEDULES)
    version = keys_of(encode_version(samples.version(number=42)), layout.SCHEDULES)
    owner = samples.schedule_id("one")
    assert definition == (owner, schedules["definition"]["sort"])
    sort = schedules["version"]["sort"].replace("<10-digit version>", "0000000042")
    assert version == (owner, sort)

    row = planned()
    occurrence = TABLES["timeline"]["items"]["occurrence"]
    parts = {"scheduled_for": "20260309T063000Z", "schedule_id": owner, "version": 1}
    assert keys_of(encode_occurrence(row), layout.TIMELINE) == (
        partition_of("20260309T0630Z", 3),
        filled(occurrence["sort"], **parts),
    )
    dispatch = TABLES["timeline"]["items"]["dispatch"]
    parts = {"due": "20260309T063000Z", "schedule_id": owner, "kind": "handover"}
    assert keys_of(encode_dispatch(samples.dispatch()), layout.TIMELINE) == (
        partition_of("20260309T0630Z", 3),
        filled(dispatch["sort"], version=2, **parts),
    )
    name = schedules["name"]
    assert keys_of(encode_name(samples.schedule()), layout.SCHEDULES) == (
        filled(name["partition"], tenant_id="acme", name=samples.schedule().name),
        name["sort"],
    )


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("tenant", encode_tenant(Tenant("acme", Tier.BASIC))),
        ("handler", encode_handler(Handler("acme", "reports"))),
        ("principal", encode_principal("1:role/x", "acme")),
        ("own_principal", encode_own_principal("1:role/x", "acme")),
        ("listed", encode_listed("acme")),
        ("count", count_item_key("acme")),
        ("slot", slot_item_key("acme", 5)),
        ("group", encode_group(3, DUE)),
        ("load", load_item_key(DUE)),
    ],
)
def test_control_keys_are_those_of_the_document(
    kind: str, item: dict[str, Any]
) -> None:
    templates = TABLES["control"]["items"][kind]
    values = {
        "tenant_id": "acme",
        "name": "reports",
        "principal": "1:role/x",
        "group": 3,
        "slot": 5,
        "hour yyyymmddThhZ": "20260309T06Z",
    }

    assert keys_of(item, layout.CONTROL) == (
        filled(templates["partition"], **values),
        filled(templates["sort"], **values),
    )


def test_the_index_gets_its_keys_and_attributes() -> None:
    item = encode_schedule(samples.schedule())
    index = TABLES["schedules"]["indexes"]["by_tenant"]
    tenant, _, shard = item[layout.BY_TENANT.partition]["S"].partition("#")

    assert tenant == "acme"
    assert 0 <= int(shard) < index["shards"]
    assert item[layout.BY_TENANT.sort]["S"].startswith(samples.schedule().name)
    assert set(index["include"]) <= set(item)


def test_ttl_is_epoch_seconds_rounded_up() -> None:
    late = replace(planned(), expires_at=samples.NOW)

    item = encode_occurrence(late)

    seconds = int(item[TABLES["timeline"]["ttl"]]["N"])
    assert seconds == int(samples.NOW.timestamp()) + 1


def test_the_stream_filter_finds_outbox_records() -> None:
    item = encode_occurrence(scheduling(planned()).row)

    assert item["state"]["S"] in TABLES["timeline"]["outbox_states"]


def with_schema(item: dict[str, Any], number: int) -> dict[str, Any]:
    return {**item, "schema": {"N": str(number)}}


@pytest.mark.parametrize("schema", [layout.SCHEMA, layout.SCHEMA - 1])
def test_this_and_the_previous_schema_are_read(schema: int) -> None:
    item = with_schema(encode_occurrence(planned()), schema)

    assert decode_occurrence(item) == planned()


@pytest.mark.parametrize("schema", [layout.SCHEMA + 1, layout.SCHEMA - 2])
def test_other_schemas_are_refused(schema: int) -> None:
    with pytest.raises(Permanent) as raised:
        decode_schedule(with_schema(encode_schedule(samples.schedule()), schema))
    assert raised.value.code == "unreadable_item"


def test_an_item_without_schema_is_refused() -> None:
    item = encode_occurrence(planned())
    del item["schema"]
    with pytest.raises(Permanent):
        decode_occurrence(item)


def test_unknown_attributes_are_ignored() -> None:
    item = {**encode_occurrence(planned()), "invented": {"L": [{"S": "later"}]}}

    assert decode_occurrence(item) == planned()


@pytest.mark.parametrize(
    "key",
    ["20260309T063000Z#sch", "not a time#sch#v1", "20260309T063000Z#sch#vx", "", "###"],
)
def test_a_row_with_a_strange_key_is_refused(key: str) -> None:
    item = {**encode_occurrence(planned()), layout.TIMELINE.sort: {"S": key}}
    with pytest.raises(Permanent, match="timeline") as raised:
        decode_occurrence(item)
    assert raised.value.code == "unreadable_item"


@pytest.mark.parametrize(
    "key",
    ["20260309T063000Z#sch#v2", "20260309T063000Z#sch#v2#dance", "x#sch#v2#handover"],
)
def test_a_dispatch_row_with_a_strange_key_is_refused(key: str) -> None:
    item = {**encode_dispatch(samples.dispatch()), layout.TIMELINE.sort: {"S": key}}
    with pytest.raises(Permanent, match="timeline") as raised:
        decode_dispatch(item)
    assert raised.value.code == "unreadable_item"


def test_an_occurrence_is_no_larger_for_there_being_dispatch_rows() -> None:
    assert "kind" not in encode_occurrence(largest_row())


OLDER = {"weight", "revision", "quota_schedules", "quota_payload_bytes"} | {
    *("quota_min_interval_seconds", "quota_retry_attempts")
}


def without(item: dict[str, Any], names: set[str]) -> dict[str, Any]:
    assert names <= set(item)
    return {name: value for name, value in item.items() if name not in names}


def test_items_from_before_there_were_quotas_and_revisions_are_read() -> None:
    tenant, handler = Tenant("acme", Tier.BASIC), Handler("acme", "reports")

    assert decode_tenant(without(encode_tenant(tenant), OLDER)) == tenant
    item = without(encode_handler(handler), {"state", "revision"})
    assert decode_handler(item) == handler


def test_a_version_without_state_is_active() -> None:
    item = encode_version(samples.version())

    assert not {"state", "base_sequence", "ends_at", "ends_as"} & set(item)
    assert decode_version(item) == samples.version()


def test_a_definition_names_the_version_that_takes_over() -> None:
    assert "handover" not in encode_schedule(samples.schedule())
    changed = samples.succession(to=7).schedule
    assert encode_schedule(changed)["handover"] == {"N": "7"}


def test_a_row_key_is_read_from_keys_alone() -> None:
    item = encode_occurrence(planned())
    keys = {name: item[name] for name in ("bucket_shard", "row_key")}

    assert decode_row_key(keys) == planned().key


CHANGES: dict[Transition, Callable[[Occurrence], Change]] = {
    Transition.SCHEDULE: scheduling,
    Transition.ACKNOWLEDGE: acknowledging,
    Transition.CANCEL: samples.canceling,
    Transition.WITHDRAW: samples.withdrawing,
    Transition.RECALL: samples.recalling,
    Transition.REFUSE: lambda row: Change(
        samples.canceling(row).row, Transition.REFUSE
    ),
    Transition.DEFER: lambda row: Change(scheduling(row).row, Transition.DEFER),
    Transition.MISS: lambda row: Change(
        replace(samples.canceling(row).row, misfire=True), Transition.MISS
    ),
    Transition.RELEASE: lambda row: Change(scheduling(row).row, Transition.RELEASE),
    Transition.BACKFILL: lambda row: Change(scheduling(row).row, Transition.BACKFILL),
}

# A row that has every field of work may make any move of work.
CHANGES |= {
    name: partial(lambda name, _: Change(full(), name), name)
    for name in set(Transition) - set(CHANGES)
}


@pytest.mark.parametrize("name", Transition)
def test_a_transition_writes_state_and_declared_fields_only(name: Transition) -> None:
    statement = transition("a-table", CHANGES[name](planned()))

    move = TRANSITIONS[name]
    targets, condition = statement.text.removeprefix('UPDATE "a-table" SET ').split(
        " WHERE "
    )
    names = [each.split(" = ")[0].strip('"') for each in targets.split(", ")]
    assert names == ["state", *move.writes]
    assert f"\"state\" = '{move.target.value}'" in targets
    quoted = {f"'{source.value}'" for source in move.sources}
    assert set(condition.partition(" IN [")[2].rstrip("]").split(", ")) == quoted
    assert statement.text.count("?") == len(statement.parameters)
    assert statement.parameters[-2:] == [
        {"S": planned().key.partition},
        {"S": planned().key.sort},
    ]


def test_the_text_of_a_transition_does_not_depend_on_the_row() -> None:
    texts = {
        transition("t", scheduling(row)).text
        for row in (planned("a"), replace(planned("b"), tenant_id="x'; --"))
    }

    assert len(texts) == 1
    assert len(texts.pop()) < 300


def test_the_text_depends_on_what_is_expected_but_not_on_its_value() -> None:
    def text(*expects: tuple[str, object]) -> str:
        return transition("t", Change(full(), Transition.EXTEND, expects)).text

    one, other = text(("attempt", 1)), text(("attempt", 2))

    assert one == other
    assert one.endswith(' AND "attempt" = ?')
    none = " AND NOT attribute_type(\"attempt\", 'N')"
    assert text(("attempt", 0)).endswith(none)
    assert text(("attempt", None)).endswith(none)
    assert len({one, text(), text(("attempt", None)), text(("waits", 1))}) == 4


def test_values_that_are_expected_come_last_and_nones_have_none() -> None:
    expects = (("waits", 0), ("attempt", 3), ("told_at", None), ("worker", "w"))

    plain = transition("t", Change(full(), Transition.EXTEND))
    statement = transition("t", Change(full(), Transition.EXTEND, expects))

    assert statement.parameters == [*plain.parameters, {"N": "3"}, {"S": "w"}]
    assert statement.text.count("?") == len(statement.parameters)


def test_an_insertion_names_each_attribute_once() -> None:
    item = encode_occurrence(planned())

    statement = insertion("a-table", item)

    assert statement.text.count("?") == len(statement.parameters) == len(item)
    assert all(f"'{name}': ?" in statement.text for name in item)


def test_models_know_the_keys_of_the_document() -> None:
    attributes = OccurrenceItem.get_attributes()

    assert attributes["bucket_shard"].is_hash_key
    assert attributes["row_key"].is_range_key
    assert attributes["bucket_shard"].attr_name == layout.TIMELINE.partition
    assert attributes["row_key"].attr_name == layout.TIMELINE.sort
