"""Have a shard group scanned from before what is about to be written to it."""

from datetime import datetime

from hourbell.domain.instants import floor_minute
from hourbell.domain.policies import WATERMARK_LAG
from hourbell.usecases.ports import ShardGroups


def have_scanned(groups: ShardGroups, group: int, now: datetime) -> None:
    """Give a group its record, unless it has one, before a row is put into it.

    Its scans begin where those of a group that is up to date would, so that no row
    written from now on lies behind them.

    Raises:
        Transient: the store did not answer.
    """
    groups.ensure(group, floor_minute(now) - WATERMARK_LAG)
