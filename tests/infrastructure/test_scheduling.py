"""How the tick, the materializers and the relay are started, and with what."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hourbell import bootstrap
from hourbell.adapters.dynamodb.row_items import encode_occurrence
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.policies import WATERMARK_LAG
from hourbell.usecases.scan import LEASE_DURATION

from functions.tick.handler import MARGIN
from tests.infrastructure.templates import Assembly, Resource

pytestmark = pytest.mark.xdist_group("infrastructure")

MAPPING = "AWS::Lambda::EventSourceMapping"
FUNCTIONS = [
    *("api", "jobs", "materializer", "redrive", "relay", "tick", "workers"),
]
PORTS: dict[str, Callable[[], object]] = {
    "api": bootstrap.api_ports,
    "jobs": bootstrap.job_ports,
    "materializer": bootstrap.materializer_ports,
    "redrive": bootstrap.redrive_ports,
    "relay": bootstrap.relay_ports,
    "tick": bootstrap.tick_ports,
    "workers": bootstrap.worker_ports,
}
ROW = Occurrence(
    schedule_id="sch00000000000000000000000001",
    version=1,
    scheduled_for=datetime(2026, 3, 9, 6, 30, tzinfo=UTC),
    shard=7,
    tenant_id="acme",
    sequence=1,
    tzdb="2026a",
    planned_at=datetime(2026, 3, 9, 6, 27, tzinfo=UTC),
    available_at=datetime(2026, 3, 9, 6, 30, tzinfo=UTC),
    lane=Lane.STRICT,
    queue="premium-strict",
)
# Where a deployment's own parameters point.
DEPLOYED = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "111111111111",
}


def stream_mapping(assembly: Assembly) -> Resource:
    table = assembly.one("AWS::DynamoDB::GlobalTable", TableName="hourbell-timeline")
    return assembly.one(MAPPING, EventSourceArn=f"{table.logical_id}.StreamArn")


def queue_mapping(assembly: Assembly, name: str) -> Resource:
    arn = f"{assembly.queue(name).logical_id}.Arn"
    return assembly.one(MAPPING, EventSourceArn=arn)


def passes(pattern: Any, value: Any) -> bool:
    """Say what Lambda says of a filter pattern of exact values."""
    if isinstance(pattern, list):
        return value in pattern
    return isinstance(value, Mapping) and all(
        name in value and passes(below, value[name]) for name, below in pattern.items()
    )


def record(event: str, state: State) -> dict[str, Any]:
    image = encode_occurrence(replace(ROW, state=state))
    return {"eventName": event, "dynamodb": {"NewImage": image}}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_run_python_3_13_on_arm64_with_both_layers(
    assembly: Assembly, name: str
) -> None:
    function = assembly.function(name).properties
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == "handler.handler"
    assert [layer.startswith("Layers") for layer in function["Layers"]] == [True, True]


def test_the_core_layer_carries_the_tables_and_no_command_line(
    assembly: Assembly,
) -> None:
    cores = [
        folder / "python" / "hourbell"
        for folder in assembly.folder.glob("asset.*")
        if (folder / "python" / "hourbell").is_dir()
    ]
    assert len(cores) == 1
    assert "tables" in orjson.loads((cores[0] / "tables.json").read_bytes())
    assert (cores[0] / "bootstrap.py").exists()
    assert not (cores[0] / "tables.json").is_symlink()
    assert not (cores[0] / "cli").exists()
    assert not (cores[0] / "local").exists()
    assert not list(cores[0].rglob("__pycache__"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_is_what_bootstrap_needs(
    assembly: Assembly, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = assembly.function(name).properties["Environment"]["Variables"]
    for variable, value in variables.items():
        for reference, text in DEPLOYED.items():
            value = value.replace(f"{reference}.Ref", text)  # noqa: PLW2901
        monkeypatch.setenv(variable, value)
    make = getattr(PORTS[name], "__wrapped__")  # noqa: B009 (past the cache)
    assert make()


def test_the_relay_knows_every_delivery_queue(assembly: Assembly) -> None:
    variables = assembly.function("relay").properties["Environment"]["Variables"]
    urls = orjson.loads(variables["HOURBELL_QUEUE_URLS"])
    # Lane queues, and dead-letter queues.
    assert len(urls) == 9 + 3
    for key, url in urls.items():
        assert url == f"{assembly.queue(key).logical_id}.Ref"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_writers_end_well_before_the_watermark_passes(
    assembly: Assembly, name: str
) -> None:
    timeout = assembly.function(name).properties["Timeout"]
    assert timeout <= WATERMARK_LAG.total_seconds() / 2


def test_a_lease_outlives_the_materializer(assembly: Assembly) -> None:
    timeout = assembly.function("materializer").properties["Timeout"]
    assert timeout < LEASE_DURATION.total_seconds()


def test_the_tick_comes_every_minute_and_not_late(assembly: Assembly) -> None:
    rule = assembly.one("AWS::Events::Rule").properties
    (target,) = rule["Targets"]
    tick = assembly.function("tick").logical_id
    dlq = f"{assembly.queue('tick-dlq').logical_id}.Arn"
    invoke = assembly.one("AWS::Lambda::EventInvokeConfig").properties
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert rule["State"] == "ENABLED"
    assert target["Arn"] == f"{tick}.Arn"
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 60
    assert target["DeadLetterConfig"] == {"Arn": dlq}
    assert invoke["MaximumEventAgeInSeconds"] == 60
    assert invoke["DestinationConfig"] == {"OnFailure": {"Destination": dlq}}


def test_a_tick_has_time_for_jobs_besides_its_orders(assembly: Assembly) -> None:
    timeout = assembly.function("tick").properties["Timeout"]
    assert timeout - MARGIN.total_seconds() >= 5


def test_each_shard_group_has_a_materializer_and_no_more(assembly: Assembly) -> None:
    mapping = queue_mapping(assembly, "work").properties
    environment = assembly.function("tick").properties["Environment"]["Variables"]
    groups = int(environment["HOURBELL_SHARD_GROUPS"])
    assert mapping["FunctionName"].startswith("Materializer")
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": groups}


def test_one_message_is_one_job_and_jobs_take_few_functions(
    assembly: Assembly,
) -> None:
    mapping = queue_mapping(assembly, "jobs").properties
    assert mapping["FunctionName"].startswith("Jobs")
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 5}
    # A worker writes rows: it must have ended well before the watermark passes.
    timeout = assembly.function("jobs").properties["Timeout"]
    assert timeout * 2 < WATERMARK_LAG.total_seconds()


def test_every_mapping_reports_single_failures(assembly: Assembly) -> None:
    mappings = assembly.of_type(MAPPING)
    assert len(mappings) == 7
    for mapping in mappings:
        reported = mapping.properties["FunctionResponseTypes"]
        assert reported == ["ReportBatchItemFailures"]


def test_the_stream_gives_up_records_before_they_hold_others_up(
    assembly: Assembly,
) -> None:
    mapping = stream_mapping(assembly).properties
    failures = f"{assembly.queue('stream-failures').logical_id}.Arn"
    assert mapping["FunctionName"].startswith("Relay")
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] == 5
    assert mapping["MaximumRecordAgeInSeconds"] == 180
    assert mapping["MaximumBatchingWindowInSeconds"] == 0
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": failures}}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", ["INSERT", "MODIFY", "REMOVE"])
def test_the_stream_carries_what_the_relay_has_to_send_and_nothing_else(
    assembly: Assembly, event: str, state: State
) -> None:
    (chosen,) = stream_mapping(assembly).properties["FilterCriteria"]["Filters"]
    pattern = orjson.loads(chosen["Pattern"])
    expected = state in {State.SCHEDULED, State.DEAD} and event != "REMOVE"
    assert passes(pattern, record(event, state)) is expected


def test_the_stream_carries_no_deletions(assembly: Assembly) -> None:
    (chosen,) = stream_mapping(assembly).properties["FilterCriteria"]["Filters"]
    deletion = {"eventName": "REMOVE", "dynamodb": {"Keys": {}}}
    assert not passes(orjson.loads(chosen["Pattern"]), deletion)
