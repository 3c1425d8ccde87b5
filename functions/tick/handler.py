"""Every minute: order one scan of every shard group, and see after jobs."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.usecases.remind import Reminded, remind
from hourbell.usecases.reshard import establish
from hourbell.usecases.tick import tick

# What the job that is begun last may take: a tick that is cut off comes once more.
MARGIN = timedelta(seconds=10)

logger = Logger()
metrics = Metrics()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001 - Lambda's signature
    """Put one work order per shard group on the work queue, and jobs on theirs.

    Orders go first, and nothing about jobs makes EventBridge repeat them.

    Args:
        event: EventBridge's; its time is not used, since it may be late.
        context: Lambda's.

    Returns:
        how many groups were ordered.

    Raises:
        Transient: a store or queue did not answer; EventBridge starts the tick again.
    """
    metrics.add_metric("Ticks", MetricUnit.Count, 1)
    ports = bootstrap.tick_ports()
    now = ports.clock.now()
    shard_map = establish(ports.book, ports.initial, now).shard_map
    is_ignored = shard_map.epochs[0] != ports.initial.last
    metrics.add_metric("ShardSettingsIgnored", MetricUnit.Count, int(is_ignored))
    if is_ignored:
        logger.warning(
            "the settings of shards hold for a new deployment only; change them with"
            " `hourbell shards change`",
            settings=ports.initial.last.shards,
            first=shard_map.epochs[0].shards,
            present=shard_map.last.shards,
        )
    groups = tick(ports.work_queue, shard_map, now)
    metrics.add_metric("GroupsOrdered", MetricUnit.Count, groups)
    logger.info("ordered", groups=groups)
    _remind(ports, context)
    return {"groups": groups}


def _remind(ports: bootstrap.TickPorts, context: LambdaContext) -> None:
    """Tell workers again of jobs that nobody may be working at."""
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    deadline = ports.clock.now() + remaining - MARGIN
    report = Reminded()
    try:
        report = remind(ports.office, ports.clock, deadline=deadline)
    except Exception as fault:  # noqa: BLE001 - whatever it is, orders are not repeated
        report.faults.append(fault)
    for each in report.faults:
        logger.error("jobs were not seen after", exc_info=each)
    if report.told:
        logger.warning("jobs were told of again", jobs=report.told)
    metrics.add_metric("JobsReminded", MetricUnit.Count, len(report.told))
