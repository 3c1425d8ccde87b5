"""An SQS event source with one invocation at a time: python event_source.py HANDLER.

What AWS does between a queue and a Lambda function: it receives, invokes, and deletes
what the answer does not name. SIGTERM ends it between two invocations.
"""

import importlib.util
import logging
import os
import signal
import sys
import time
from typing import Any

import boto3

TIMEOUT_SECONDS = 30.0


class Invocation:
    """The context of one invocation."""

    def __init__(self) -> None:
        self._end = time.monotonic() + TIMEOUT_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        return round(1_000 * (self._end - time.monotonic()))


def main(path: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    spec = importlib.util.spec_from_file_location("handler", path)
    assert spec is not None
    assert spec.loader is not None
    function = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(function)
    client = boto3.client("sqs", region_name=os.environ["AWS_REGION"])
    url = os.environ["HOURBELL_QUEUE_URL"]
    while not stopping:
        answer = client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        messages = answer.get("Messages", [])
        if messages:
            event = {"Records": [record_of(each) for each in messages]}
            failed = function.handler(event, Invocation())["batchItemFailures"]
            delete(client, url, messages, {each["itemIdentifier"] for each in failed})


def record_of(message: Any) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "eventSource": "aws:sqs",
    }


def delete(client: Any, url: str, messages: Any, failed: set[str]) -> None:
    entries = [
        {"Id": str(place), "ReceiptHandle": each["ReceiptHandle"]}
        for place, each in enumerate(messages)
        if each["MessageId"] not in failed
    ]
    if entries:
        client.delete_message_batch(QueueUrl=url, Entries=entries)


if __name__ == "__main__":
    main(sys.argv[1])
