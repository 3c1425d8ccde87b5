"""Buckets, shards and groups."""

from datetime import UTC, datetime, timedelta

from hourbell.domain.shards import Epoch, ShardMap, minutes_between, stable_hash

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


def test_the_hash_is_the_same_on_every_machine() -> None:
    assert stable_hash("sch0000") == 0xBC8FD62AC787EABA


def test_every_shard_belongs_to_exactly_one_group() -> None:
    shard_map = ShardMap.constant(16, 5)
    scanned = [
        shard for group in range(5) for shard in shard_map.shards_of(group, NOON)
    ]
    assert sorted(scanned) == list(range(16))
    for group in range(5):
        for shard in shard_map.shards_of(group, NOON):
            assert shard_map.group_of(shard) == group


def test_schedules_spread_over_all_shards() -> None:
    shard_map = ShardMap.constant(16, 4)
    counts = [0] * 16
    for number in range(16_000):
        counts[shard_map.shard_of(f"sch{number}", NOON)] += 1
    assert min(counts) > 800
    assert max(counts) < 1_200


def test_the_shard_count_is_that_of_the_buckets_epoch() -> None:
    shard_map = ShardMap((Epoch(None, 16), Epoch(NOON, 64)), groups=4)
    assert shard_map.shards_at(NOON - timedelta(seconds=1)) == 16
    assert shard_map.shards_at(NOON) == 64
    assert shard_map.shards_at(NOON + timedelta(days=1)) == 64


def test_minutes_are_floored_and_both_ends_count() -> None:
    first, last = NOON + timedelta(seconds=59), NOON + timedelta(minutes=2)
    assert list(minutes_between(first, last)) == [
        NOON,
        NOON + timedelta(minutes=1),
        NOON + timedelta(minutes=2),
    ]
