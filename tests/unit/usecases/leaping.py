"""Days in which nothing is due, for the small world to pass over."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.instants import floor_minute
from hourbell.domain.occurrence import Occurrence, minute_of
from hourbell.domain.schedule import Timing
from hourbell.usecases.scan import PassReport

from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ONCE = Timing("at(2026-03-09T12:02:00)")
# What docs/policies.md says: four days, and an hour for who received it just before.
KEPT = 4 * DAY + HOUR
# When a bucket has its last look: four days and two hours after its minute.
LOOKED = 4 * DAY + 2 * HOUR + MINUTE


def leap(world: World, instant: datetime) -> None:
    """Let the time come; passes did meanwhile what there was to do: nothing.

    Where something is open a watermark stands, and what has yet to have its last look
    has it yet to have.
    """
    world.clock.set(instant)
    rows: list[Occurrence | Dispatch] = [
        *world.store.all_rows(),
        *world.store.all_dispatches(),
    ]
    mark = floor_minute(instant) - 3 * MINUTE
    for group, record in world.store.groups.items():
        marks = {
            shard: first([row for row in rows if row.is_open], shard, mark)
            for shard in world.shard_map.all_shards_of(group)
        }
        until = record.looked_until or record.floor
        left = [row for row in rows if minute_of(row.key.bucket) >= until]
        looked = min(first(left, shard, mark - LOOKED) for shard in marks)
        world.store.groups[group] = replace(
            record,
            watermarks=marks,
            looked_at=instant - MINUTE,
            looked_until=max(until, looked),
        )


def first(
    rows: Iterable[Occurrence | Dispatch], shard: int, last: datetime
) -> datetime:
    """Return the first minute in which rows lie in a shard, but none after the last."""
    minutes = (minute_of(row.key.bucket) for row in rows if row.key.shard == shard)
    return min([last, *minutes])


def passes(shop: Shop, count: int = 1) -> list[PassReport]:
    """Let every group be scanned in each of some minutes, and the relay work."""
    reports = []
    for _ in range(count):
        reports += shop.world.scan()
        shop.world.relay_stream()
        shop.world.relay_sweep()
        shop.world.clock.advance(MINUTE)
    return reports


def unclaimed(reports: list[PassReport]) -> int:
    return sum(report.unclaimed for report in reports)


def checks(shop: Shop) -> list[datetime]:
    """Return when what may be unclaimed is looked at again."""
    return sorted(each.due for each in pending(shop))


def pending(shop: Shop) -> list[Dispatch]:
    return shop.pending(DispatchKind.UNCLAIMED)


def one_time(**fields: object) -> Shop:
    """Return a shop with an occurrence of 12:02, and none after it."""
    return Shop("at(2026-03-09T12:02:00)", **fields)  # type: ignore[arg-type]


def sent_at(row: Occurrence) -> datetime:
    """Return from when on a row's last message could be received."""
    assert row.visible_at is not None
    return row.visible_at
