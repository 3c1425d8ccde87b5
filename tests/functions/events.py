"""Events as AWS sends them, filled in from the samples beside this file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell.adapters.dynamodb.row_items import encode_occurrence, row_item_key
from hourbell.domain.occurrence import Occurrence

ANN = "arn:aws:iam::123456789012:user/ann"
BOB = "arn:aws:sts::123456789012:assumed-role/billing/session-1"
REQUEST_ID = "5f1c9e0e-6d5c-4b8e-9d5f-0d4f3c2b1a00"


class Context(LambdaContext):
    """The Lambda context that handlers look at."""

    def __init__(
        self, *, request_id: str = "8f507cfc-xmpl-4697-b07a", remaining_ms: int = 50_000
    ) -> None:
        self._function_name = "hourbell-test"
        self._memory_limit_in_mb = 1024
        self._invoked_function_arn = (
            "arn:aws:lambda:eu-central-1:123456789012:function:hourbell-test"
        )
        self._aws_request_id = request_id
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        return self._remaining_ms


def sample(name: str) -> dict[str, Any]:
    """Return a fresh copy of a sample event."""
    path = Path(__file__).parent / "events" / f"{name}.json"
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return loaded


def api_event(
    method: str,
    path: str,
    body: object = None,
    *,
    arn: str | None = ANN,
    headers: Mapping[str, str] | None = None,
    resource: str | None = None,
    query: Mapping[str, Sequence[str]] | None = None,
    path_parameters: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return API Gateway's event; a body that is no text is written as JSON."""
    event = sample("api")
    event["pathParameters"] = dict(path_parameters) if path_parameters else None
    if query:
        event["multiValueQueryStringParameters"] = dict(query)
        event["queryStringParameters"] = {name: v[-1] for name, v in query.items()}
    event |= {"httpMethod": method, "path": path, "resource": resource or path}
    text = body if isinstance(body, str | None) else json.dumps(body)
    event["body"] = text
    for name, value in (headers or {}).items():
        event["headers"][name] = value
        event["multiValueHeaders"][name] = [value]
    event["requestContext"] |= {"path": f"/prod{path}", "httpMethod": method}
    event["requestContext"]["identity"]["userArn"] = arn
    return event


def sqs_event(bodies: Sequence[str]) -> dict[str, Any]:
    """Return the event of a queue mapping; message ids are `m0`, `m1`, ..."""
    return {
        "Records": [
            sample("sqs") | {"messageId": f"m{place}", "body": body}
            for place, body in enumerate(bodies)
        ]
    }


def stream_event(rows: Sequence[Occurrence]) -> dict[str, Any]:
    """Return the event of a stream mapping; sequence numbers are 1001, 1002, ..."""
    return {"Records": [stream_record(row, 1001 + n) for n, row in enumerate(rows)]}


def stream_record(row: Occurrence, sequence: int) -> dict[str, Any]:
    record = sample("stream")
    record["dynamodb"] |= {
        "Keys": row_item_key(row.key),
        "NewImage": encode_occurrence(row),
        "SequenceNumber": str(sequence),
    }
    return record
