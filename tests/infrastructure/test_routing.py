"""Queues of single tenants, queues of others, and who administers tenants."""

import json

import pytest

from tests.infrastructure.templates import Assembly

pytestmark = pytest.mark.xdist_group("infrastructure")

QUEUE = "AWS::SQS::Queue"
LANES = ("strict", "flexible", "catchup")
DEDICATED = [f"tenant-{tenant}-{lane}" for tenant in ("a-1", "a1") for lane in LANES]
GIVEN_UP = [f"tenant-{tenant}-dlq" for tenant in ("a-1", "a1")]
DEAD = [f"tenant-{tenant}-dead" for tenant in ("a-1", "a1")]
PATTERN = "arn:aws:sqs:*:222222222222:*"


def environment(assembly: Assembly) -> dict[str, str]:
    function = assembly.function("api").properties
    variables: dict[str, str] = function["Environment"]["Variables"]
    return variables


def sendable(assembly: Assembly, function: str) -> set[str]:
    return {
        resource
        for statement in assembly.statements(function)
        if "sqs:SendMessage" in statement["Action"]
        for resource in statement["Resource"]
    }


@pytest.mark.parametrize("name", DEDICATED)
def test_a_tenants_own_queues_are_like_the_shared_ones(
    large_assembly: Assembly, name: str
) -> None:
    queue = dict(large_assembly.queue(name).properties)
    shared = dict(large_assembly.queue("premium-strict").properties)
    dlq = large_assembly.queue(f"{name.rpartition('-')[0]}-dlq")
    redrive = queue.pop("RedrivePolicy")
    assert redrive["deadLetterTargetArn"] == f"{dlq.logical_id}.Arn"
    assert redrive["maxReceiveCount"] == shared.pop("RedrivePolicy")["maxReceiveCount"]
    assert queue | {"QueueName": ""} == shared | {"QueueName": ""}


def test_only_tenants_that_were_named_have_queues(
    assembly: Assembly, large_assembly: Assembly
) -> None:
    def names(found: Assembly) -> set[str]:
        return {each.properties["QueueName"] for each in found.of_type(QUEUE)}

    added = names(large_assembly) - names(assembly)
    expected = [*DEDICATED, *GIVEN_UP, *DEAD]
    assert added == {f"hourbell-{name}" for name in expected}


def test_the_relay_sends_to_all_of_them(large_assembly: Assembly) -> None:
    names = [*DEDICATED, *DEAD]
    own = {f"{large_assembly.queue(name).logical_id}.Arn" for name in names}
    assert own | {PATTERN} <= sendable(large_assembly, "relay")


def test_what_a_tenants_own_queues_give_up_is_read(large_assembly: Assembly) -> None:
    mapped = {
        each.properties["EventSourceArn"]
        for each in large_assembly.of_type("AWS::Lambda::EventSourceMapping")
        if each.properties["FunctionName"].startswith("Redrive")
    }
    tiers = [f"{tier}-dlq" for tier in ("premium", "standard", "basic")]
    names = [*GIVEN_UP, *tiers]
    assert mapped == {f"{large_assembly.queue(name).logical_id}.Arn" for name in names}
    dead = {f"{large_assembly.queue(name).logical_id}.Arn" for name in DEAD}
    assert dead | {PATTERN} <= sendable(large_assembly, "redrive")


def test_the_api_sends_test_messages_to_others_queues_only(
    assembly: Assembly, large_assembly: Assembly
) -> None:
    own = {f"{assembly.queue('jobs').logical_id}.Arn"}
    assert sendable(large_assembly, "api") == {PATTERN} | own
    assert sendable(assembly, "api") == own


def test_the_api_knows_what_it_may_offer(large_assembly: Assembly) -> None:
    told = environment(large_assembly)
    platform = ["arn:aws:iam::111111111111:role/ops/platform"]
    assert json.loads(told["HOURBELL_PLATFORM_PRINCIPALS"]) == platform
    assert json.loads(told["HOURBELL_DEDICATED_TENANTS"]) == ["a-1", "a1"]
    assert json.loads(told["HOURBELL_EXTERNAL_QUEUE_ARNS"]) == [PATTERN]
    assert told["HOURBELL_QUEUE_ARN_BASE"] == (
        "arn:AWS::Partition.Ref:sqs:AWS::Region.Ref:AWS::AccountId.Ref:hourbell"
    )


def test_by_default_nobody_administers_and_nothing_is_offered(
    assembly: Assembly,
) -> None:
    told = environment(assembly)
    for name in ("PLATFORM_PRINCIPALS", "DEDICATED_TENANTS", "EXTERNAL_QUEUE_ARNS"):
        assert told[f"HOURBELL_{name}"] == "[]"
