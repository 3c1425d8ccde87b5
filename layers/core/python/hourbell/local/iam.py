"""IAM users of the engine: what a person or a test signs its requests as."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hourbell.local.engine import ACCOUNT
from hourbell.local.state import Credentials

if TYPE_CHECKING:
    import boto3

__all__ = ["Credentials", "create_user", "invoke_api_policy", "operator_policy"]

OPERATOR = "hourbell-operator"
# Administers tenants; the templates are told so.
PLATFORM = "hourbell-platform"
OPERATOR_ACTIONS = {
    "sqs": (
        "ReceiveMessage",
        "DeleteMessage",
        "DeleteMessageBatch",
        "ChangeMessageVisibility",
        "SendMessage",
        "SendMessageBatch",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListQueues",
    ),
    "execute-api": ("Invoke",),
    "dynamodb": (
        "GetItem",
        "BatchGetItem",
        "Query",
        "Scan",
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "ConditionCheckItem",
        "DescribeTable",
        "ListTables",
        "PartiQLSelect",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PartiQLDelete",
        "ExecuteStatement",
        "BatchExecuteStatement",
    ),
    "lambda": (
        "InvokeFunction",
        "InvokeFunctionUrl",
        "GetFunction",
        "ListFunctions",
    ),
    "logs": ("DescribeLogGroups", "DescribeLogStreams", "FilterLogEvents"),
    "cloudformation": ("DescribeStacks", "ListStacks", "DescribeStackResources"),
}


def platform_arn() -> str:
    """Return the ARN of the user that administers tenants."""
    return f"arn:aws:iam::{ACCOUNT}:user/{PLATFORM}"


def allow(actions: Sequence[str], resources: Sequence[str] = ("*",)) -> dict[str, Any]:
    """Return a policy document with one Allow statement."""
    statement = {
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def invoke_api_policy() -> dict[str, Any]:
    """Return the policy of a tenant's user: call the HTTP API, nothing else."""
    return allow(["execute-api:Invoke", "lambda:InvokeFunctionUrl"])


def operator_policy() -> dict[str, Any]:
    """Return what the command line and the demo need; no IAM, no root."""
    return allow(
        [
            f"{service}:{action}"
            for service, actions in OPERATOR_ACTIONS.items()
            for action in actions
        ]
    )


def create_user(
    session: "boto3.Session", name: str, policy: Mapping[str, Any]
) -> Credentials:
    """Create an IAM user with an inline policy and one access key.

    An existing user of that name gets the policy and a further key.
    """
    iam = session.client("iam")
    try:
        arn = iam.create_user(UserName=name)["User"]["Arn"]
    except iam.exceptions.EntityAlreadyExistsException:
        arn = iam.get_user(UserName=name)["User"]["Arn"]
    iam.put_user_policy(
        UserName=name, PolicyName="inline", PolicyDocument=json.dumps(policy)
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"], arn)
