"""Work at jobs, and move rows to other shards, as each SQS message says."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.adapters.messages import decode_job, decode_move
from hourbell.batches import work_at_messages
from hourbell.domain.job import JobState
from hourbell.usecases.reshard import move
from hourbell.usecases.run_job import JobReport, run_job
from hourbell.usecases.shard_ports import MoveOrder

# What the item that is begun last may take, and writing its result down.
MARGIN = timedelta(seconds=20)
# An item without answer has so many tries, each after the queue's visibility.
TRIES = 5

logger = Logger()
metrics = Metrics()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(
    event: dict[str, Any], context: LambdaContext
) -> PartialItemFailureResponse:
    """Work at the jobs that the batch names; report the messages to be repeated."""
    answer = work_at_messages(event, context, work_at, logger, "a job was interrupted")
    failed = len(answer["batchItemFailures"])
    metrics.add_metric("JobsInterrupted", MetricUnit.Count, failed)
    return answer


def work_at(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Work at one order until it is done or the function's time is nearly over.

    An item that never gets an answer is refused at last, and stops no other.

    Raises:
        Transient: a store or queue did not answer; SQS brings the job again.
    """
    shop = bootstrap.job_ports().workshop
    remaining = timedelta(milliseconds=lambda_context.get_remaining_time_in_millis())
    deadline = shop.clock.now() + remaining - MARGIN
    order = decode_move(record.body)
    if order is not None:
        _move(order, deadline)
        return
    job_id = decode_job(record.body)
    tried = int(record.attributes.approximate_receive_count)
    report = run_job(shop, job_id, deadline=deadline, gives_up=tried >= TRIES)
    _measure(report)
    for fault in report.faults:
        logger.error("an item of a job broke", job_id=job_id, exc_info=fault)
    outcomes = Counter(each.outcome.value for each in report.results)
    logger.info(
        "worked at a job",
        job_id=job_id,
        state=report.state,
        outcomes=dict(outcomes),
        requeued=report.requeued,
    )


def _move(order: MoveOrder, deadline: datetime) -> None:
    """Go on with moving rows to other shards."""
    report = move(bootstrap.job_ports().mover, order, deadline=deadline)
    metrics.add_metric("RowsMoved", MetricUnit.Count, report.moved)
    logger.info(
        "moved rows to other shards",
        since=order.since,
        round=order.round,
        segment=order.segment,
        phase=report.phase,
        moved=report.moved,
        left=report.left,
    )


def _measure(report: JobReport) -> None:
    results, begun = report.results, report.begun
    counts = {
        "JobsFinished": int(begun and report.state is JobState.SUCCEEDED),
        "JobsFailed": int(begun and report.state is JobState.FAILED),
        "JobItemsDone": len(results),
        "JobItemsRefused": sum(each.outcome.is_refusal for each in results),
        "JobItemsBroken": len(report.faults),
    }
    for name, count in counts.items():
        metrics.add_metric(name, MetricUnit.Count, count)
