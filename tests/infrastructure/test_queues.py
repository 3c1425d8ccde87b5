"""Each tier has each lane, every queue a DLQ, and nothing travels unencrypted."""

from itertools import product

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.occurrence import Lane
from hourbell.domain.retention import QUEUE_RETENTION

from tests.infrastructure.templates import Assembly, Resource, statements_of

pytestmark = pytest.mark.xdist_group("infrastructure")

QUEUE = "AWS::SQS::Queue"
DELIVERY = [f"{tier}-{lane}" for tier, lane in product(Tier, Lane)]
INTERNAL = ["work", "sweep", "jobs"]
# By DLQ: a tier's lanes have one in common.
DLQS = {f"{tier}-{lane}": f"{tier}-dlq" for tier, lane in product(Tier, Lane)} | {
    name: f"{name}-dlq" for name in INTERNAL
}
DEAD = [f"{tier}-dead" for tier in Tier]
# Where failures end that no queue of ours redrives.
ENDS = ["stream-failures", "tick-dlq"]
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600


def test_there_is_a_queue_for_every_tier_and_lane_and_no_other(
    assembly: Assembly,
) -> None:
    names = {each.properties["QueueName"] for each in assembly.of_type(QUEUE)}
    expected = [*DLQS, *DLQS.values(), *DEAD, *ENDS]
    assert names == {f"hourbell-{name}" for name in expected}


@pytest.mark.parametrize("name", [*DELIVERY, *INTERNAL])
def test_every_queue_redrives_to_a_dlq_that_keeps_longer(
    assembly: Assembly, name: str
) -> None:
    queue, dlq = assembly.queue(name), assembly.queue(DLQS[name])
    redrive = queue.properties["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == f"{dlq.logical_id}.Arn"
    assert dlq.properties["MessageRetentionPeriod"] == 14 * DAY_SECONDS
    # Else messages would expire, which no DLQ ever sees, before they are redriven.
    tries = redrive["maxReceiveCount"] * queue.properties["VisibilityTimeout"]
    assert tries <= queue.properties["MessageRetentionPeriod"]


@pytest.mark.parametrize("name", DELIVERY)
def test_an_hour_without_consumers_redrives_nothing(
    assembly: Assembly, name: str
) -> None:
    queue = assembly.queue(name).properties
    tries = queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"]
    assert tries >= HOUR_SECONDS
    assert queue["MessageRetentionPeriod"] == 4 * DAY_SECONDS
    assert queue["MessageRetentionPeriod"] == QUEUE_RETENTION.total_seconds()
    assert queue["MaximumMessageSize"] == 1_048_576


@pytest.mark.parametrize("name", DELIVERY)
def test_delivery_queues_are_standard(assembly: Assembly, name: str) -> None:
    # A delay per message and fair queueing exist on standard queues only.
    assert "FifoQueue" not in assembly.queue(name).properties


@pytest.mark.parametrize(
    ("name", "function"),
    [
        *(("work", "materializer"), ("sweep", "relay"), ("jobs", "jobs")),
        *((f"{tier}-dlq", "redrive") for tier in Tier),
    ],
)
def test_visibility_is_six_times_the_functions_timeout(
    assembly: Assembly, name: str, function: str
) -> None:
    visibility = assembly.queue(name).properties["VisibilityTimeout"]
    timeout = assembly.function(function).properties["Timeout"]
    assert visibility == 6 * timeout


@pytest.mark.parametrize("name", DEAD)
def test_dead_letters_are_kept_as_long_as_queues_can(
    assembly: Assembly, name: str
) -> None:
    queue = assembly.queue(name).properties
    assert queue["MessageRetentionPeriod"] == 14 * DAY_SECONDS
    assert queue["MaximumMessageSize"] == 1_048_576
    assert "RedrivePolicy" not in queue


def test_queues_are_encrypted_at_rest_and_on_the_way(assembly: Assembly) -> None:
    refusing = {
        queue
        for policy in assembly.of_type("AWS::SQS::QueuePolicy")
        for statement in statements_of(policy)
        for queue in policy.properties["Queues"]
        if statement["Effect"] == "Deny"
        and statement["Principal"] == {"AWS": "*"}
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    queues = assembly.of_type(QUEUE)
    assert refusing == {f"{each.logical_id}.Ref" for each in queues}
    assert all(each.properties["SqsManagedSseEnabled"] for each in queues)


def test_only_the_local_stack_takes_plain_http(local_assembly: Assembly) -> None:
    def conditions(policy: Resource) -> list[str]:
        return [str(each.get("Condition")) for each in statements_of(policy)]

    policies = local_assembly.of_type("AWS::SQS::QueuePolicy")
    assert not any("SecureTransport" in str(conditions(each)) for each in policies)
