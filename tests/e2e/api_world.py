"""The deployed stack with tenants of its own, and everybody who may call or may not."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from unittest.mock import patch
from urllib.parse import quote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningKeys
from hourbell.adapters.dynamodb.row_items import (
    decode_occurrence,
    is_attempt,
    is_dispatch,
)
from hourbell.domain.occurrence import Occurrence
from hourbell.local import iam
from hourbell.local.stack import StackInfo, running
from hourbell.local.state import Credentials

from loadtest.bench._client import SERVICE, Answer, SignedClient, signer

if TYPE_CHECKING:
    import boto3

TENANTS = "/v1/admin/tenants"
SCHEDULES = "/v1/schedules"
HANDLER = "report"
DAILY = "30 2 * * *"
YEARLY = "0 0 1 1 *"
MINUTELY = "* * * * *"


class StaleSigner(SigV4Auth):
    """Signs correctly, but with a date that is long past."""

    def add_auth(self, request: AWSRequest) -> None:
        past = datetime.now(UTC) - timedelta(hours=1)
        with patch("botocore.auth.get_current_datetime", return_value=past):
            super().add_auth(request)


@dataclass(frozen=True)
class Tenant:
    """A tenant and the caller that it is called by."""

    tenant_id: str
    client: SignedClient

    def send(self, *request: Any) -> Answer:
        return self.client.send(*request)

    def create(self, name: str, expression: str = DAILY, **fields: Any) -> Answer:
        body = {
            "name": name,
            "expression": expression,
            "handler": HANDLER,
            **fields,
        }
        return self.send("POST", SCHEDULES, body)

    def change(self, schedule_id: str, patch: Mapping[str, Any], tag: str) -> Answer:
        place = f"{SCHEDULES}/{schedule_id}"
        return self.send("PATCH", place, patch, {"If-Match": tag})


class ApiWorld:
    """A deployed stack, whose tenants are made by the platform role as anybody's."""

    def __init__(self, stack: StackInfo) -> None:
        self.stack = stack
        self.platform = self.client(stack.platform_keys)

    def client(self, keys: Credentials, token: str | None = None) -> SignedClient:
        """Return the API as somebody with these keys sees it."""
        signs = signer(
            keys.access_key_id, keys.secret_access_key, self.stack.region, token
        )
        return SignedClient(self.stack.api_url, signs)

    def stale_client(self, keys: Credentials) -> SignedClient:
        known = SigningKeys(keys.access_key_id, keys.secret_access_key)
        signs = StaleSigner(known, SERVICE, self.stack.region)
        return SignedClient(self.stack.api_url, signs)

    def unsigned_client(self) -> SignedClient:
        return SignedClient(self.stack.api_url, None)

    def user(self, name: str) -> Credentials:
        """Create an IAM user that may call the API, which knows nothing of it."""
        return self.stack.create_user(name)

    def tenant(self, tenant_id: str, **fields: Any) -> Tenant:
        """Create a tenant that an IAM user calls for, with a handler."""
        keys = self.user(tenant_id)
        return self._register(tenant_id, keys.arn, self.client(keys), fields)

    def role_tenant(self, tenant_id: str, **fields: Any) -> Tenant:
        """Create a tenant that sessions of a role call for, with a handler."""
        arn = self._make_role(tenant_id)
        assumer = self.stack.create_user(
            f"{tenant_id}-assumer", iam.allow(["sts:AssumeRole"])
        )
        session = self.stack.session_of(assumer)
        answer = session.client("sts").assume_role(
            RoleArn=arn, RoleSessionName="night-shift"
        )
        found = answer["Credentials"]
        keys = Credentials(found["AccessKeyId"], found["SecretAccessKey"], arn)
        client = self.client(keys, found["SessionToken"])
        return self._register(tenant_id, arn, client, fields)

    def suspended_client(self, tenant_id: str) -> SignedClient:
        """Create a tenant, suspend it before its first call, and return its caller."""
        keys = self.user(tenant_id)
        body = {"tenant_id": tenant_id, "principals": [keys.arn]}
        assert self.platform.send("POST", TENANTS, body).status == 201
        change = {"state": "SUSPENDED", "reason": "unpaid"}
        place = f"{TENANTS}/{tenant_id}"
        answer = self.platform.send("PATCH", place, change, {"If-Match": '"1"'})
        assert answer.status == 200
        return self.client(keys)

    def _make_role(self, name: str) -> str:
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::{'0' * 12}:root"},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
        client = self.stack.admin_session().client("iam")
        made = client.create_role(
            Path="/service/",
            RoleName=name,
            AssumeRolePolicyDocument=json.dumps(trust),
        )
        client.put_role_policy(
            RoleName=name,
            PolicyName="inline",
            PolicyDocument=json.dumps(iam.invoke_api_policy()),
        )
        return made["Role"]["Arn"]

    def _register(
        self, tenant_id: str, arn: str, client: SignedClient, fields: Mapping[str, Any]
    ) -> Tenant:
        body = {"tenant_id": tenant_id, "principals": [arn], **fields}
        answer = self.platform.send("POST", TENANTS, body)
        assert answer.status == 201, answer.text
        made = client.send("POST", "/v1/handlers", {"name": HANDLER})
        assert made.status == 201, made.text
        return Tenant(tenant_id, client)


@contextmanager
def api_world_in(folder: Path) -> Iterator[ApiWorld]:
    """Run a stack in a folder."""
    with running(folder) as stack:
        yield ApiWorld(stack)


def pages_of(caller: Tenant, path: str, member: str) -> list[Any]:
    """Return a list of the API, all its pages as one."""
    found: list[Any] = []
    cursor = ""
    while True:
        document = caller.send("GET", f"{path}?limit=100{cursor}").document
        found += document[member]
        if document["cursor"] is None:
            return found
        cursor = f"&cursor={quote(document['cursor'], safe='')}"


def rows_of(stack: StackInfo, schedule_ids: set[str]) -> list[Occurrence]:
    """Return the occurrences of some schedules, in order of time, from the table."""
    client = stack.admin_session().client("dynamodb")
    pages = client.get_paginator("scan").paginate(
        TableName=stack.tables["timeline"], ConsistentRead=True
    )
    items = [cast("dict[str, Any]", item) for page in pages for item in page["Items"]]
    # Tests share the table, and the worker plane puts its attempts there, too.
    rows = [
        decode_occurrence(item)
        for item in items
        if not (is_dispatch(item) or is_attempt(item))
    ]
    found = [row for row in rows if row.schedule_id in schedule_ids]
    return sorted(found, key=lambda row: (row.scheduled_for, row.version))


class Inbox:
    """Takes what arrives in one queue, for as long as the block lasts."""

    def __init__(self, session: "boto3.Session", url: str) -> None:
        self._client = session.client("sqs")
        self._url = url
        self._ended = threading.Event()
        self._messages: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._receive, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def of(self, schedule_id: str) -> list[dict[str, Any]]:
        """Return the events of a schedule so far, in order of arrival."""
        return [
            event
            for event in list(self._messages)
            if event["data"]["schedule_id"] == schedule_id
        ]

    def _receive(self) -> None:
        while not self._ended.is_set():
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=2
            )
            for message in answer.get("Messages", []):
                self._messages.append(json.loads(message["Body"]))
                self._client.delete_message(
                    QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"]
                )
