"""Every minute: order one scan of every shard group."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.usecases.reshard import establish
from hourbell.usecases.tick import tick

logger = Logger()
metrics = Metrics()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001 - Lambda's signature
    """Put one work order per shard group on the work queue.

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
    return {"groups": groups}
