"""Choosing adapters from the environment."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.dynamodb.ledger import DynamoLedger
from hourbell.adapters.dynamodb.timeline import DynamoTimeline
from hourbell.adapters.sqs import SqsDeliveryQueues, SqsSweepQueue, SqsWorkQueue
from hourbell.bootstrap import (
    api_ports,
    job_ports,
    materializer_ports,
    relay_ports,
    tick_ports,
    worker_ports,
)
from hourbell.domain.shards import ShardMap
from hourbell.settings import (
    Environment,
    SettingsError,
    read_settings,
    read_shard_map,
)
from hourbell.usecases.twins import TwinTimeline

TABLES = {
    "HOURBELL_TABLE_SCHEDULES": "x-schedules",
    "HOURBELL_TABLE_TIMELINE": "x-timeline",
    "HOURBELL_TABLE_CONTROL": "x-control",
}
QUEUES = {
    "HOURBELL_WORK_QUEUE_URL": "http://localhost/work",
    "HOURBELL_SWEEP_QUEUE_URL": "http://localhost/sweep",
    "HOURBELL_JOBS_QUEUE_URL": "http://localhost/jobs",
    "HOURBELL_QUEUE_URLS": '{"basic-strict": "http://localhost/basic-strict"}',
    "HOURBELL_QUEUE_ARN_BASE": "arn:aws:sqs:eu-central-1:123456789012:x",
}
FACTORIES: list[Callable[[], Any]] = [
    api_ports,
    tick_ports,
    materializer_ports,
    relay_ports,
    job_ports,
    worker_ports,
]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (TABLES | QUEUES).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("environment")
def test_each_function_gets_aws_adapters() -> None:
    api, tick = api_ports.__wrapped__(), tick_ports.__wrapped__()
    materializer, relay = materializer_ports.__wrapped__(), relay_ports.__wrapped__()
    twins = api.library.timeline
    assert isinstance(twins, TwinTimeline)
    assert isinstance(twins.timeline, DynamoTimeline)
    assert twins.shards is api.library.shards
    assert api.library.timeline is api.registry.plane.timeline
    assert api.directory is api.registry.plane.directory
    assert isinstance(tick.work_queue, SqsWorkQueue)
    assert isinstance(materializer.sweep_queue, SqsSweepQueue)
    assert materializer.plane.horizon == timedelta(seconds=180)
    assert isinstance(relay.outbox.queues, SqsDeliveryQueues)
    assert isinstance(relay.sweep_queue, SqsSweepQueue)
    for clock in (api.clock, tick.clock, materializer.clock, relay.outbox.clock):
        assert clock.now().utcoffset() == timedelta(0)


@pytest.mark.usefixtures("environment")
def test_workers_and_the_api_work_on_the_same_tables() -> None:
    api, workers = api_ports.__wrapped__(), worker_ports.__wrapped__()
    for place in (api.workplace, workers.workplace):
        assert isinstance(place.ledger, DynamoLedger)
        assert isinstance(place.timeline, TwinTimeline)
    assert api.workplace.directory is api.directory
    assert workers.directory is workers.workplace.directory
    assert workers.clock.now().utcoffset() == timedelta(0)
    assert workers.operators == frozenset()


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("factory", FACTORIES)
def test_a_process_makes_its_ports_once(factory: Any) -> None:
    factory.cache_clear()
    try:
        assert factory() is factory()
    finally:
        factory.cache_clear()


@pytest.mark.parametrize("factory", FACTORIES)
def test_all_that_is_missing_is_told_at_once(
    factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in TABLES | QUEUES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        factory.__wrapped__()
    wanted = {
        api_ports: {*TABLES, "HOURBELL_QUEUE_ARN_BASE", "HOURBELL_JOBS_QUEUE_URL"},
        job_ports: {*TABLES, "HOURBELL_JOBS_QUEUE_URL"},
        worker_ports: set(TABLES),
        tick_ports: {
            *TABLES,
            "HOURBELL_JOBS_QUEUE_URL",
            "HOURBELL_WORK_QUEUE_URL",
        },
        materializer_ports: {
            *TABLES,
            "HOURBELL_SWEEP_QUEUE_URL",
            "HOURBELL_WORK_QUEUE_URL",
        },
        relay_ports: {*TABLES, "HOURBELL_SWEEP_QUEUE_URL", "HOURBELL_QUEUE_URLS"},
    }[factory]
    assert set(caught.value.faults) == {f"{name} is not set" for name in wanted}
    assert "HOURBELL_" in str(caught.value)


@pytest.mark.usefixtures("environment")
def test_the_api_is_told_who_administers_and_what_it_may_offer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {
        "PLATFORM_PRINCIPALS": '["arn:aws:iam::123456789012:role/ops/platform"]',
        "DEDICATED_TENANTS": '["acme"]',
        "EXTERNAL_QUEUE_ARNS": '["arn:aws:sqs:*:222222222222:*"]',
    }
    for name, text in told.items():
        monkeypatch.setenv(f"HOURBELL_{name}", text)
    ports = api_ports.__wrapped__()
    assert ports.operators == {"123456789012:role/platform"}
    offer = ports.switchboard.offer
    base = "arn:aws:sqs:eu-central-1:123456789012:x-tenant-acme"
    assert offer.dedicated_base("acme") == base
    assert offer.dedicated_base("zenith") is None
    assert offer.external == ("arn:aws:sqs:*:222222222222:*",)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("PLATFORM_PRINCIPALS", '["*"]', "no wildcard"),
        ("PLATFORM_PRINCIPALS", "ops", "must be a JSON array of strings"),
        ("DEDICATED_TENANTS", "[1]", "must be a JSON array of strings"),
        ("QUEUE_ARN_BASE", "hourbell", "arn:aws:sqs:"),
    ],
)
@pytest.mark.usefixtures("environment")
def test_a_variable_that_makes_no_sense_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str
) -> None:
    monkeypatch.setenv(f"HOURBELL_{name}", text)
    with pytest.raises(SettingsError) as caught:
        api_ports.__wrapped__()
    (fault,) = caught.value.faults
    assert fault.startswith(f"HOURBELL_{name}")
    assert told in fault


def test_shards_and_horizon_have_defaults() -> None:
    environment = Environment(TABLES)
    settings = read_settings(environment)
    environment.finish()
    assert settings.shard_map == ShardMap.constant(16, 4)
    assert settings.horizon == timedelta(seconds=180)


def test_shards_and_horizon_are_read() -> None:
    sizes = {
        "HOURBELL_SHARDS": "256",
        "HOURBELL_SHARD_GROUPS": "16",
        "HOURBELL_HORIZON_SECONDS": "300",
    }
    environment = Environment(TABLES | sizes)
    settings = read_settings(environment)
    environment.finish()
    assert settings.shard_map == ShardMap.constant(256, 16)
    assert settings.horizon == timedelta(seconds=300)


def test_few_shards_have_fewer_groups() -> None:
    shard_map = read_shard_map(Environment({"HOURBELL_SHARDS": "2"}))
    assert shard_map == ShardMap.constant(2, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOURBELL_SHARDS", "0"),
        ("HOURBELL_SHARDS", "5000"),
        ("HOURBELL_SHARDS", "many"),
        ("HOURBELL_SHARDS", "-4"),
        ("HOURBELL_SHARDS", "\u0664"),
        ("HOURBELL_SHARD_GROUPS", "17"),
        ("HOURBELL_HORIZON_SECONDS", "901"),
        ("HOURBELL_HORIZON_SECONDS", "5"),
    ],
)
def test_a_number_out_of_bounds_is_refused(name: str, value: str) -> None:
    environment = Environment(TABLES | {name: value})
    read_settings(environment)
    with pytest.raises(SettingsError, match=name):
        environment.finish()


@pytest.mark.parametrize("value", ["{", "[]", "1", '{"a": 1}'])
def test_queue_urls_must_be_an_object_of_texts(value: str) -> None:
    environment = Environment({"HOURBELL_QUEUE_URLS": value})
    assert environment.texts("HOURBELL_QUEUE_URLS") == {}
    with pytest.raises(SettingsError, match="JSON object"):
        environment.finish()
