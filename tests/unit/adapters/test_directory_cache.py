"""How long the directory remembers what it read."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.adapters.cache import MAX_ENTRIES, ExpiringCache
from hourbell.adapters.dynamodb import Database, DynamoDirectory, TableNames, connect
from hourbell.adapters.dynamodb.control_items import encode_handler
from hourbell.adapters.dynamodb.tables import create_tables
from hourbell.adapters.memory import FixedClock
from hourbell.adapters.metering import CapacityMeter
from hourbell.domain.definition import (
    Handler,
    HandlerState,
    Tenant,
    TenantState,
    Tier,
)
from hourbell.usecases.ports import Write
from moto import mock_aws

from tests.conformance.samples import NOW

ACME = Tenant("acme", Tier.BASIC)
SECONDS = timedelta(seconds=1)


class Desk:
    """A directory, its clock, and a count of what it asks the table."""

    def __init__(self, database: Database, meter: CapacityMeter) -> None:
        create_tables(database.client, "desk")
        self.database = database
        self.clock = FixedClock(NOW)
        self.meter = meter
        self.meter.reset()
        self.directory = DynamoDirectory(database, self.clock)

    def reads(self) -> int:
        names = ("GetItem", "BatchGetItem")
        return sum(self.meter.calls["dynamodb", name] for name in names)


@pytest.fixture(scope="module")
def metered() -> tuple[Database, CapacityMeter]:
    """A client, made once since that is what takes time."""
    meter = CapacityMeter()
    with mock_aws():
        return connect(TableNames.with_prefix("desk"), meter=meter), meter


@pytest.fixture
def desk(metered: tuple[Database, CapacityMeter]) -> Iterator[Desk]:
    with mock_aws():
        yield Desk(*metered)


def test_what_exists_is_remembered_for_thirty_seconds(desk: Desk) -> None:
    desk.directory.register_tenant(ACME, ["role"])
    desk.directory.register_handler(Handler("acme", "h"))
    asked: list[Callable[[], object]] = [
        lambda: desk.directory.tenant_of("role"),
        lambda: desk.directory.tenants(["acme"]),
        lambda: desk.directory.named_handlers([("acme", "h")]),
    ]
    first = [ask() for ask in asked]
    assert desk.reads() == 3  # principal, tenant, handler

    desk.clock.advance(29 * SECONDS)
    assert [ask() for ask in asked] == first
    assert desk.reads() == 3

    desk.clock.advance(SECONDS)
    assert [ask() for ask in asked] == first
    assert desk.reads() == 6


def test_what_does_not_exist_is_asked_for_again(desk: Desk) -> None:
    for _ in range(2):
        assert desk.directory.tenant_of("role") is None
        assert desk.directory.tenants(["acme"]) == {}
        assert desk.directory.named_handlers([("acme", "h")]) == {}
    assert desk.reads() == 6

    desk.directory.register_tenant(ACME, ["role"])
    assert desk.directory.tenant_of("role") == ACME


def test_only_missing_tenants_are_read(desk: Desk) -> None:
    other = Tenant("other", Tier.PREMIUM)
    desk.directory.register_tenant(ACME, [])
    desk.directory.register_tenant(other, [])
    desk.directory.tenants(["acme"])

    assert desk.directory.tenants(["acme", "other"]) == {"acme": ACME, "other": other}
    assert desk.reads() == 2
    assert desk.directory.tenants(["other", "acme"]) == {"acme": ACME, "other": other}
    assert desk.reads() == 2


def test_what_is_asked_for_alone_is_never_remembered(desk: Desk) -> None:
    desk.directory.register_tenant(ACME, [])
    desk.directory.register_handler(Handler("acme", "h"))
    desk.directory.tenants(["acme"])
    desk.directory.named_handlers([("acme", "h")])
    asked = desk.reads()

    assert desk.directory.find_tenant("acme") == ACME
    assert desk.directory.handler("acme", "h") == Handler("acme", "h")
    assert desk.reads() == asked + 2


def test_ones_own_changes_are_seen_at_once(desk: Desk) -> None:
    directory = desk.directory
    directory.register_tenant(ACME, ["role"])
    directory.register_handler(Handler("acme", "h"))
    directory.tenant_of("role")
    directory.named_handlers([("acme", "h")])
    suspended = replace(ACME, state=TenantState.SUSPENDED, revision=2)
    retired = Handler("acme", "h", state=HandlerState.RETIRED, revision=2)

    directory.change_tenant(suspended, revision=1)
    directory.change_handler(retired, revision=1)

    assert directory.tenant_of("role") == suspended
    assert directory.named_handlers([("acme", "h")]) == {("acme", "h"): retired}
    directory.remove_principal("acme", "role")
    assert directory.tenant_of("role") is None


def test_what_was_written_before_there_were_revisions_has_the_first(
    desk: Desk,
) -> None:
    directory, handler = desk.directory, Handler("acme", "h")
    item = encode_handler(handler)
    del item["revision"]
    desk.database.client.put_item(TableName=desk.database.tables.control, Item=item)
    changed = replace(handler, description="new", revision=2)

    assert directory.change_handler(changed, revision=2) is Write.LOST
    assert directory.change_handler(changed, revision=1) is Write.APPLIED
    assert directory.handler("acme", "h") == changed
    assert directory.change_handler(changed, revision=1) is Write.LOST


def test_only_missing_handlers_are_read(desk: Desk) -> None:
    handlers = [Handler("acme", name) for name in ("a", "b")]
    for handler in handlers:
        desk.directory.register_handler(handler)
    desk.directory.named_handlers([("acme", "a")])

    both = desk.directory.named_handlers([("acme", "a"), ("acme", "b")])

    assert list(both.values()) == handlers
    assert desk.reads() == 2
    desk.directory.named_handlers([("acme", "b"), ("acme", "a")])
    assert desk.reads() == 2


def test_the_oldest_entry_makes_room() -> None:
    cache: ExpiringCache[int, int] = ExpiringCache(FixedClock(NOW), 30)
    for number in range(MAX_ENTRIES):
        cache.put(number, number)
    cache.put(0, 0)
    cache.put(-1, -1)

    assert cache.get(0) == 0
    assert cache.get(1) is None
    assert cache.get(2) == 2
    assert cache.get(-1) == -1
