"""Who may do what: each function's role, and who may call the API."""

from typing import Any

import pytest

from tests.infrastructure.templates import Assembly, statements_of

pytestmark = pytest.mark.xdist_group("infrastructure")

LISTS = "dynamodb:ListStreams"
# Of each table, in the order schedules, timeline, control.
DYNAMODB = {
    "api": (
        {
            "BatchGetItem",
            "ConditionCheckItem",
            "DeleteItem",
            "GetItem",
            "PutItem",
            "Query",
            "UpdateItem",
        },
        {
            *("BatchGetItem", "PartiQLInsert", "PartiQLUpdate", "PutItem"),
            *("ConditionCheckItem", "Query", "UpdateItem"),
        },
        {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    ),
    "jobs": (
        {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
        {
            *("BatchGetItem", "PartiQLInsert", "PartiQLUpdate", "PutItem"),
            *("ConditionCheckItem", "DeleteItem", "Query", "Scan", "UpdateItem"),
        },
        {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    ),
    "materializer": (
        {"BatchGetItem", "DeleteItem", "GetItem", "UpdateItem"},
        {
            *("BatchGetItem", "PartiQLInsert", "PartiQLUpdate", "PutItem"),
            *("ConditionCheckItem", "Query", "UpdateItem"),
        },
        {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    ),
    "redrive": (
        {"BatchGetItem"},
        {"BatchGetItem", "PutItem", "UpdateItem"},
        {"BatchGetItem", "GetItem", "PutItem", "UpdateItem"},
    ),
    "relay": (
        {"BatchGetItem"},
        {"BatchGetItem", "PartiQLUpdate", "PutItem", "UpdateItem"},
        {"BatchGetItem", "GetItem", "PutItem"},
    ),
    "tick": (set(), set(), {"DeleteItem", "GetItem", "PutItem", "Query"}),
    "workers": (
        {"BatchGetItem", "GetItem"},
        {
            *("BatchGetItem", "PartiQLInsert", "PartiQLUpdate", "PutItem"),
            *("ConditionCheckItem", "Query", "UpdateItem"),
        },
        {"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    ),
}
TIERS = ("premium", "standard", "basic")
DEAD = {f"{tier}-dead" for tier in TIERS}
DELIVERY = {
    f"{tier}-{lane}" for tier in TIERS for lane in ("strict", "flexible", "catchup")
}
SENDS = {
    "api": {"jobs"},
    "jobs": {"jobs"},
    "materializer": {"sweep", "work"},
    "redrive": DEAD,
    "relay": {"sweep", "stream-failures", *DELIVERY, *DEAD},
    "tick": {"jobs", "work", "tick-dlq"},
    "workers": set(),
}
RECEIVES: dict[str, set[str]] = {
    "api": set(),
    "jobs": {"jobs"},
    "materializer": {"work"},
    "redrive": {f"{tier}-dlq" for tier in TIERS},
    "relay": {"sweep"},
    "tick": set(),
    "workers": set(),
}


def allowed(assembly: Assembly, name: str, action: str) -> set[str]:
    """Return the resources that a function may do something to."""
    return {
        resource
        for statement in assembly.statements(name)
        if statement["Effect"] == "Allow" and action in statement["Action"]
        for resource in statement["Resource"]
    }


def queue_arns(assembly: Assembly, names: set[str]) -> set[str]:
    return {f"{assembly.queue(name).logical_id}.Arn" for name in names}


@pytest.mark.parametrize("name", sorted(SENDS))
def test_functions_send_to_their_queues_only(assembly: Assembly, name: str) -> None:
    expected = queue_arns(assembly, SENDS[name])
    assert allowed(assembly, name, "sqs:SendMessage") == expected


@pytest.mark.parametrize("name", sorted(RECEIVES))
def test_functions_receive_from_their_queues_only(
    assembly: Assembly, name: str
) -> None:
    expected = queue_arns(assembly, RECEIVES[name])
    assert allowed(assembly, name, "sqs:ReceiveMessage") == expected
    assert allowed(assembly, name, "sqs:DeleteMessage") == expected


def test_no_policy_but_the_relays_lets_anyone_send_to_delivery_queues(
    assembly: Assembly,
) -> None:
    delivery = queue_arns(assembly, DELIVERY)
    policies = {
        policy.logical_id
        for kind in ("AWS::IAM::Policy", "AWS::SQS::QueuePolicy")
        for policy in assembly.of_type(kind)
        for statement in statements_of(policy)
        if statement["Effect"] == "Allow"
        and delivery.intersection(statement["Resource"])
    }
    assert len(policies) == 1
    assert policies.pop().startswith("RelayRole")


@pytest.mark.parametrize("name", sorted(DYNAMODB))
def test_functions_do_to_each_table_what_they_must(
    assembly: Assembly, name: str
) -> None:
    for logical, actions in zip(
        ("schedules", "timeline", "control"), DYNAMODB[name], strict=True
    ):
        table = assembly.one(
            "AWS::DynamoDB::GlobalTable", TableName=f"hourbell-{logical}"
        )
        granted = {
            action
            for statement in assembly.statements(name)
            if f"{table.logical_id}.Arn" in statement["Resource"]
            for action in statement["Action"]
        }
        assert granted == {f"dynamodb:{action}" for action in actions}


def test_only_the_api_and_jobs_read_the_list_of_schedules(assembly: Assembly) -> None:
    table = assembly.one("AWS::DynamoDB::GlobalTable", TableName="hourbell-schedules")
    readers = {
        name: {
            resource
            for resource in allowed(assembly, name, "dynamodb:Query")
            if "/index/" in resource
        }
        for name in DYNAMODB
    }
    for name in ("api", "jobs"):
        assert readers.pop(name) == {f"{table.logical_id}.Arn/index/by_tenant"}
    assert not any(readers.values())


def test_only_the_relay_reads_the_stream(assembly: Assembly) -> None:
    readers = {
        name: allowed(assembly, name, "dynamodb:GetRecords") for name in DYNAMODB
    }
    timeline = assembly.one("AWS::DynamoDB::GlobalTable", TableName="hourbell-timeline")
    assert readers.pop("relay") == {f"{timeline.logical_id}.StreamArn"}
    assert not any(readers.values())


@pytest.mark.parametrize("variant", ["assembly", "local_assembly", "large_assembly"])
def test_no_action_is_a_wildcard(variant: str, request: pytest.FixtureRequest) -> None:
    found: Assembly = request.getfixturevalue(variant)
    statements = [
        statement
        for policy in found.of_type("AWS::IAM::Policy")
        for statement in statements_of(policy)
    ]
    assert statements
    assert not [each for each in statements if "*" in "".join(each["Action"])]


def test_no_resource_is_a_wildcard_but_a_tables_streams(assembly: Assembly) -> None:
    wide = [
        statement
        for policy in assembly.of_type("AWS::IAM::Policy")
        for statement in statements_of(policy)
        if any("*" in resource for resource in statement["Resource"])
    ]
    assert [each["Action"] for each in wide] == [[LISTS]]
    assert wide[0]["Resource"][0].endswith(":table/hourbell-timeline/stream/*")


def test_with_a_customers_key_only_functions_with_tables_use_it(
    large_assembly: Assembly,
) -> None:
    key = large_assembly.one("AWS::KMS::Key")
    users = {
        name
        for name in DYNAMODB
        if f"{key.logical_id}.Arn" in allowed(large_assembly, name, "kms:Decrypt")
    }
    assert users == {
        *("api", "jobs", "materializer", "redrive", "relay", "tick", "workers")
    }


def test_roles_are_assumed_by_lambda_only(assembly: Assembly) -> None:
    roles = [
        role.properties["AssumeRolePolicyDocument"]["Statement"]
        for role in assembly.of_type("AWS::IAM::Role")
        if role.logical_id != api_log_role(assembly)
    ]
    assert len(roles) == 7
    for (statement,) in roles:
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def api_log_role(assembly: Assembly) -> str:
    account: dict[str, Any] = assembly.one("AWS::ApiGateway::Account").properties
    return str(account["CloudWatchRoleArn"]).removesuffix(".Arn")
