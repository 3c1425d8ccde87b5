"""Scan shard groups: each SQS message orders one scan of one group."""

from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.adapters.messages import decode_work
from hourbell.batches import work_at_messages
from hourbell.usecases.scan import PassReport, run_pass

# What it takes to write watermarks and give the lease back.
MARGIN = timedelta(seconds=5)

logger = Logger()
metrics = Metrics()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(
    event: dict[str, Any], context: LambdaContext
) -> PartialItemFailureResponse:
    """Scan the groups that the batch names; report the messages to be repeated."""
    answer = work_at_messages(event, context, scan_group, logger, "a scan failed")
    failed = len(answer["batchItemFailures"])
    metrics.add_metric("ScansFailed", MetricUnit.Count, failed)
    return answer


def scan_group(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Scan one group until it is done or the function's time is nearly over.

    What a pass does not reach, the next one takes up: the watermarks say from where.
    If this one got something done, it has ordered the next one itself.

    Raises:
        Transient: a store or queue did not answer; SQS brings the order again.
    """
    scanner = bootstrap.materializer_ports()
    work = decode_work(record.body)
    started = scanner.clock.now()
    remaining = timedelta(milliseconds=lambda_context.get_remaining_time_in_millis())
    report = run_pass(
        scanner,
        work,
        holder=lambda_context.aws_request_id,
        deadline=started + remaining - MARGIN,
    )
    finished = scanner.clock.now()
    _measure(report, finished - started)
    _measure_backlog(report, finished)
    logger.info(
        "scanned" if report.leased else "left to the lease's holder",
        group=work.group,
        tally=report.tally.counts,
        rows=report.rows,
        swept=report.swept,
        released=report.released,
        handovers=report.handovers,
        completed=report.completed,
        unclaimed=report.unclaimed,
        unreadable=report.unreadable,
        late=report.late,
        parked=report.parked_rows,
        finished=report.finished,
        continued=report.continued,
        lease_kept=report.kept,
    )


def _measure(report: PassReport, took: timedelta) -> None:
    if not report.leased:
        metrics.add_metric("PassesWithoutLease", MetricUnit.Count, 1)
        return
    tally = report.tally
    counts = {
        "RowsRead": report.rows,
        "RowsPlanned": tally.planned,
        "RowsScheduled": tally.scheduled,
        "RowsDeferred": tally.deferred,
        "RowsPaced": tally.paced,
        "RowsOverdue": tally.misfires,
        "RowsMissed": tally.missed,
        "GapsExpanded": tally.gaps,
        "RowsCanceled": tally.canceled,
        "WritesLost": tally.lost,
        "WritesUnknown": tally.unknown,
        "UniquenessConflicts": tally.existed,
        "RowsHeld": tally.held,
        "RowsFaulty": tally.faulty + report.faulty,
        "RowsUnreadable": report.unreadable,
        "RecordsReleased": report.released,
        "ReleasesInVain": report.vain,
        "RowsUnclaimed": report.unclaimed,
        "LateRowsFound": report.late,
        "RowsParked": report.parked,
        "RowsUnparked": report.unparked,
        "ParkedRows": report.parked_rows,
        "RecordsSwept": report.swept,
        "HandoversFinished": report.handovers,
        "SchedulesCompleted": report.completed,
        "PassesContinued": int(report.continued),
        "PassesUnfinished": int(not report.finished),
        "LeasesLost": int(not report.kept),
        "LoadsLost": int(not report.counted),
    }
    for name, count in counts.items():
        metrics.add_metric(name, MetricUnit.Count, count)
    metrics.add_metric("PassDuration", MetricUnit.Seconds, took.total_seconds())


def _measure_backlog(report: PassReport, now: datetime) -> None:
    """Measure how far behind the group is, in seconds."""
    ages = {}
    if report.oldest is not None:
        ages["WatermarkAge"] = now - report.oldest
    if report.leased:
        ages["OldestPendingAge"] = now - (report.pending_since or now)
    if report.drain is not None:
        ages["EstimatedDrainTime"] = report.drain
    for name, age in ages.items():
        metrics.add_metric(name, MetricUnit.Seconds, age.total_seconds())
