"""Move outbox records into queues: from the table's stream, and from the sweep."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.adapters.dynamodb.stream import (
    StreamRecord,
    read_stream,
    sequence_of,
)
from hourbell.adapters.messages import decode_keys
from hourbell.batches import work_at_messages
from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.occurrence import RowKey
from hourbell.usecases.ports import SweepQueue
from hourbell.usecases.relay import Delivery, RelayReport, relay_keys, relay_rows

logger = Logger()


@logger.inject_lambda_context
def handler(
    event: dict[str, Any], context: LambdaContext
) -> PartialItemFailureResponse:
    """Relay a batch of the stream or of the sweep queue.

    Returns:
        what is to be repeated: each message of the sweep queue that failed, or the
        first record of the stream from which on it must be read again.
    """
    records: Sequence[StreamRecord] = event["Records"]
    if records[0]["eventSource"] == "aws:dynamodb":
        failed = relay_stream(records)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
    complaint = "a sweep message has to come again"
    return work_at_messages(event, context, relay_message, logger, complaint)


def relay_message(record: SQSRecord) -> None:
    """Relay the records whose keys a message of the sweep queue holds.

    Raises:
        Transient: some of them have to be tried again; settled ones are then skipped.
    """
    report = relay_keys(bootstrap.relay_ports().outbox, decode_keys(record.body))
    _tell("sweep", report)
    if report.unsettled:
        raise Transient(f"{len(report.unsettled)} records are not settled")


def relay_stream(records: Sequence[StreamRecord]) -> list[str]:
    """Relay what the stream brought.

    What could not be settled goes to the sweep queue: the stream moves on, and
    nothing that was acknowledged is sent again. Records that fail by themselves go
    there one by one, where the queue's own redrive parks them.

    Returns:
        at most one sequence number, from which on the stream has to repeat: when
        nothing could be read, or the sweep queue did not take the keys.
    """
    ports = bootstrap.relay_ports()
    batch = read_stream(records)
    for fault in batch.faults:
        # Of one without a place, the log is all that can be done.
        logger.error(fault.message, exc_info=fault.error, **fault.place)
    apart = list(batch.unreadable)
    report = RelayReport()
    try:
        report = relay_rows(ports.outbox, batch.rows)
    except HourbellError:
        logger.exception("nothing was relayed")
        return [sequence_of(records[0])]
    except Exception:  # the batch boundary: one faulty record must not stop the rest
        logger.exception("a record breaks the relay; all go to the sweep, one by one")
        apart += [row.key for row in batch.rows]
    _tell("stream", report, unreadable=len(batch.faults))
    try:
        _hand_over(ports.sweep_queue, report.unsettled, apart)
    except HourbellError:
        logger.exception("the sweep queue does not take what is not settled")
        open_keys = [*report.unsettled, *apart]
        return [min((batch.sequences[key] for key in open_keys), key=int)]
    return []


def _hand_over(
    queue: SweepQueue, unsettled: Sequence[RowKey], apart: Sequence[RowKey]
) -> None:
    """Put keys on the sweep queue; those of `apart` in messages of their own."""
    if unsettled:
        queue.put(unsettled)
    for key in apart:
        queue.put([key])


def _tell(source: str, report: RelayReport, unreadable: int = 0) -> None:
    """Log and measure what became of a batch."""
    counts = {
        "Unsettled": len(report.unsettled),
        "Deferred": report.deferred,
        "RelayCanceled": report.canceled,
        "Refused": report.refused,
        "Repeated": report.repeated,
        "LettersSent": report.letters.sent,
        "LettersKept": report.letters.kept,
        "LettersRefused": report.letters.refused,
        "Unreadable": unreadable,
    }
    logger.info(
        "relayed", source=source, delivered=len(report.deliveries), counts=counts
    )
    _emit({"source": source}, {name: [count] for name, count in counts.items()})
    by_queue: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in report.deliveries:
        by_queue[delivery.queue].append(delivery)
    for queue, deliveries in by_queue.items():
        tier, _, lane = queue.partition("-")
        _emit(
            {"tier": tier, "lane": lane},
            {
                "Enqueued": [len(deliveries)],
                "Late": [sum(each.misfire for each in deliveries)],
            },
            {
                "EnqueueLag": [d.enqueue_lag.total_seconds() for d in deliveries],
                "VisibleLag": [d.visible_lag.total_seconds() for d in deliveries],
            },
        )


def _emit(
    dimensions: Mapping[str, str],
    counts: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Write metrics of one set of dimensions, values one by one for percentiles."""
    metrics = EphemeralMetrics()
    units = [(MetricUnit.Count, counts), (MetricUnit.Seconds, seconds or {})]
    for dimension, member in dimensions.items():
        metrics.add_dimension(dimension, member)
    for unit, series in units:
        for name, values in series.items():
            for value in values:
                metrics.add_metric(name, unit, value)
    metrics.flush_metrics()
