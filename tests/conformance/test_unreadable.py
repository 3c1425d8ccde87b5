"""Rows and versions that this release cannot read, on DynamoDB."""

from collections.abc import Callable
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.control_items import encode_handler, encode_tenant
from hourbell.adapters.dynamodb.layout import SCHEMA
from hourbell.adapters.dynamodb.row_items import encode_dispatch, encode_occurrence
from hourbell.adapters.dynamodb.schedule_items import encode_schedule
from hourbell.domain.definition import Handler, Tenant, Tier, VersionRef
from hourbell.domain.errors import Permanent
from hourbell.usecases.directory_reads import read_handlers, read_tenants
from hourbell.usecases.version_reads import read_versions

from tests.conformance import samples
from tests.conformance.samples import BUCKET, SHARD, planned
from tests.conformance.worlds import dynamo_world

Item = dict[str, Any]


def put(database: Database, table: str, item: Item) -> None:
    database.client.put_item(TableName=table, Item=item)


def without(item: Item, name: str) -> Item:
    return {key: value for key, value in item.items() if key != name}


DAMAGES: dict[str, Callable[[Item], Item]] = {
    "another schema": lambda item: {**item, "schema": {"N": str(SCHEMA + 8)}},
    "no schema": lambda item: without(item, "schema"),
    "no tenant": lambda item: without(item, "tenant_id"),
    "no state": lambda item: without(item, "state"),
    "an unknown state": lambda item: {**item, "state": {"S": "LOST_IN_SPACE"}},
    "no time of planning": lambda item: without(item, "planned_at"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_row_is_named_and_hides_no_other(
    moto_database: Database, damage: str
) -> None:
    world = dynamo_world(moto_database)
    rows = [planned(label) for label in range(3)]
    world.seed(rows)
    damaged = DAMAGES[damage](encode_occurrence(rows[1]))
    put(moto_database, moto_database.tables.timeline, damaged)
    page = world.timeline.page(BUCKET, SHARD)
    assert page.unreadable == (rows[1].key,)
    assert {row.key for row in page.rows} == {rows[0].key, rows[2].key}
    found = world.timeline.read([row.key for row in rows])
    assert set(found) == {rows[0].key, rows[2].key}


def test_a_damaged_dispatch_row_is_named_too(moto_database: Database) -> None:
    world = dynamo_world(moto_database)
    row = samples.dispatch()
    damaged = without(encode_dispatch(row), "written_at")
    put(moto_database, moto_database.tables.timeline, damaged)
    page = world.timeline.page(BUCKET, SHARD)
    assert page.unreadable == (row.key,)
    assert page.dispatches == ()


def test_a_damaged_version_is_told_from_those_that_can_be_read(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    refs = []
    for label in range(3):
        world.schedules.create(
            samples.schedule(label),
            samples.current(label),
            samples.planned(label),
            quota=9,
        )
        refs.append(VersionRef(samples.schedule_id(label), 1))
    table = moto_database.tables.schedules
    moto_database.client.update_item(
        TableName=table,
        Key={"schedule_id": {"S": refs[1].schedule_id}, "item": {"S": "V#0000000001"}},
        UpdateExpression="SET #schema = :other",
        ExpressionAttributeNames={"#schema": "schema"},
        ExpressionAttributeValues={":other": {"N": str(SCHEMA + 8)}},
    )
    with pytest.raises(Permanent):
        world.schedules.versions(refs, consistent=True)
    found, faulty = read_versions(world.schedules, refs, consistent=True)
    assert set(found) == {refs[0], refs[2]}
    assert faulty == {refs[1]}


def test_looking_rows_up_tells_what_is_damaged_from_what_is_gone(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    row, damaged, gone = (planned(label) for label in range(3))
    dispatch = samples.dispatch()
    world.seed([row, dispatch])
    put(
        moto_database,
        moto_database.tables.timeline,
        without(encode_occurrence(damaged), "state"),
    )
    page = world.timeline.look_up([row.key, damaged.key, gone.key, dispatch.key])
    assert (page.rows, page.dispatches) == ((row,), (dispatch,))
    assert page.unreadable == (damaged.key,)


def test_a_damaged_tenant_or_handler_is_told_from_those_that_can_be_read(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    for tenant_id in ("acme", "zeta"):
        world.directory.register_tenant(Tenant(tenant_id, Tier.BASIC), [])
        world.directory.register_handler(Handler(tenant_id, "ring"))
    control = moto_database.tables.control
    tenant = encode_tenant(Tenant("zeta", Tier.BASIC)) | {"tier": {"S": "GOLD"}}
    put(moto_database, control, tenant)
    put(
        moto_database,
        control,
        without(encode_handler(Handler("zeta", "ring")), "routing"),
    )
    refs = [("acme", "ring"), ("zeta", "ring"), ("zeta", "none")]
    tenants, lost = read_tenants(world.directory, ["acme", "zeta", "none"])
    assert (list(tenants), lost) == (["acme"], frozenset({"zeta"}))
    handlers, no_handlers = read_handlers(world.directory, refs)
    assert (list(handlers), no_handlers) == ([refs[0]], frozenset({refs[1]}))


def test_a_damaged_schedule_hides_no_other_in_a_listing(
    moto_database: Database,
) -> None:
    world = dynamo_world(moto_database)
    for label in range(3):
        world.schedules.create(
            samples.schedule(label),
            samples.current(label),
            samples.planned(label),
            quota=9,
        )
    damaged = samples.schedule(1)
    item = encode_schedule(damaged) | {"state": {"S": "DRAFT"}}
    put(moto_database, moto_database.tables.schedules, item)
    found, after = [], None
    # Also where a page holds nothing else.
    for _ in range(20):
        page = world.schedules.listing(damaged.tenant_id, after=after, limit=1)
        found += [each.schedule_id for each in page.entries]
        after = page.after
        if after is None:
            break
    others = {samples.schedule_id(0), samples.schedule_id(2)}
    assert (len(found), set(found), after) == (2, others, None)
