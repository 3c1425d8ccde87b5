"""Take in what delivery queues give up: messages that were received too often."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.adapters.messages import decode_given_up
from hourbell.batches import work_at_messages
from hourbell.domain.routing import dead_letters_beside
from hourbell.usecases.redrive import Redriven, take_in

METRICS = {
    Redriven.DEAD: "RedrivesDead",
    Redriven.UNTRACKED: "RedrivesUntracked",
    Redriven.PAST: "RedrivesPast",
    Redriven.UNREADABLE: "RedrivesUnreadable",
}

logger = Logger()
metrics = Metrics()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(
    event: dict[str, Any], context: LambdaContext
) -> PartialItemFailureResponse:
    """Take in a batch of messages; report those that are to come again."""
    complaint = "a message that a queue gave up is not taken in"
    answer = work_at_messages(event, context, take_in_message, logger, complaint)
    failed = len(answer["batchItemFailures"])
    metrics.add_metric("RedrivesFailed", MetricUnit.Count, failed)
    return answer


def take_in_message(record: SQSRecord) -> None:
    """Take in one message.

    Raises:
        Transient: a store or queue did not answer; SQS brings it again.
        Permanent: the dead-letter queue refuses it; it stays in the DLQ.
    """
    message = decode_given_up(record.body)
    beside = dead_letters_beside(record.event_source_arn)
    done = take_in(bootstrap.redrive_ports(), message, record.body, beside)
    metrics.add_metric(METRICS[done], MetricUnit.Count, 1)
    logger.info(
        "took in a message",
        outcome=done,
        occurrence_id=message and message.occurrence_id,
        tenant_id=message and message.tenant_id,
        send=message and message.send,
    )
