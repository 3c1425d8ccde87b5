"""Writes down what it gets, and misbehaves when a record asks for it."""

import json
import os
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SEEN = Path(os.environ["PROBE_SEEN"])
FAIL, SLOW, FAIL_ONCE = "fail", "slow", "fail-once"
SLOW_SECONDS = 2.0


def handler(event: Json, context: Any) -> Json:
    """Serve all sources: stream and queue batches, the HTTP API, the rule."""
    print("probe", context.function_name, flush=True)
    if "requestContext" in event:
        return {"statusCode": 200, "body": json.dumps({"path": event["path"]})}
    failures = []
    for record in event.get("Records", ()):
        identifier, key, wish = describe(record)
        if wish == SLOW:
            time.sleep(SLOW_SECONDS)
        failed = wish == FAIL or (wish == FAIL_ONCE and not was_seen(key))
        write({"key": key, "failed": failed, "at": time.time(), **source(record)})
        if failed:
            failures.append({"itemIdentifier": identifier})
    if os.environ.get("PROBE_RAISES") and failures:
        raise RuntimeError("a record asked for it")
    return {"batchItemFailures": failures}


def describe(record: Json) -> tuple[str, str, str]:
    """Return the identifier for a partial failure, the key, and the wish."""
    if record["eventSource"] == "aws:sqs":
        body = json.loads(record["body"])
        return record["messageId"], body["pk"], body.get("wish", "")
    change = record["dynamodb"]
    image = change.get("NewImage", {})
    key = change["Keys"]["pk"]["S"]
    return change["SequenceNumber"], key, image.get("wish", {}).get("S", "")


def source(record: Json) -> Json:
    """Return where a record came from."""
    return {"source": record["eventSource"], "arn": record.get("eventSourceARN", "")}


def was_seen(key: str) -> bool:
    """Return whether an earlier call wrote this key down."""
    return SEEN.is_file() and any(
        json.loads(line)["key"] == key for line in SEEN.read_text().splitlines()
    )


def write(entry: Json) -> None:
    """Append a line at once: several workers may write."""
    with SEEN.open("a") as stream:
        stream.write(json.dumps(entry) + "\n")
