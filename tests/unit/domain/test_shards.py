"""Buckets, shards and groups."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.occurrence import RowKey, row_key
from hourbell.domain.shards import (
    NEVER,
    Epoch,
    Phase,
    ShardMap,
    minutes_between,
    stable_hash,
)

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
SCHEDULE = "sch00000000000000000000000001"


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


def epochs(phase: Phase = Phase.SETTLED) -> ShardMap:
    """4 shards in 2 groups, from noon on 16 in 4."""
    return ShardMap((Epoch(None, 4, 2), Epoch(NOON, 16, 4, phase)))


BEFORE, AFTER = NOON - timedelta(seconds=1), NOON + timedelta(days=1)


@pytest.mark.parametrize("phase", [Phase.MOVING, Phase.SETTLED])
def test_the_shard_count_is_that_of_the_buckets_epoch(phase: Phase) -> None:
    shard_map = epochs(phase)
    assert [shard_map.shards_at(at) for at in (BEFORE, NOON, AFTER)] == [4, 16, 16]


def test_rows_of_an_announced_epoch_are_put_under_the_count_before_it() -> None:
    shard_map = epochs(Phase.ANNOUNCED)
    assert [shard_map.shards_at(at) for at in (BEFORE, NOON, AFTER)] == [4, 4, 4]


def test_a_settled_epochs_buckets_are_scanned_under_its_own_count_only() -> None:
    shard_map = epochs()
    assert [shard_map.shards_of(group, BEFORE) for group in range(4)] == [
        (0, 2),
        (1, 3),
        (),
        (),
    ]
    assert shard_map.shards_of(1, NOON) == (1, 5, 9, 13)
    assert shard_map.shards_of(3, NOON) == (3, 7, 11, 15)


@pytest.mark.parametrize("phase", [Phase.ANNOUNCED, Phase.MOVING])
def test_an_unsettled_epochs_buckets_are_scanned_under_both_counts(
    phase: Phase,
) -> None:
    shard_map = epochs(phase)
    assert shard_map.shards_of(1, BEFORE) == (1, 3)
    # Shard 3 is the second group's under the old count, and the fourth's under the new.
    assert shard_map.shards_of(1, NOON) == (1, 3, 5, 9, 13)
    assert shard_map.shards_of(3, NOON) == (3, 7, 11, 15)


def test_a_shards_watermark_begins_with_its_first_bucket_and_ends_with_its_last() -> (
    None
):
    shard_map = epochs()
    assert shard_map.next_bucket(1, 1, BEFORE) == BEFORE
    assert shard_map.next_bucket(1, 5, BEFORE) == NOON
    assert shard_map.next_bucket(1, 5, AFTER) == AFTER
    assert shard_map.next_bucket(1, 3, BEFORE) == BEFORE
    assert shard_map.next_bucket(1, 3, NOON) == NEVER
    assert shard_map.next_bucket(1, 2, BEFORE) == NEVER
    assert epochs(Phase.MOVING).next_bucket(1, 3, AFTER) == AFTER


def test_a_shard_that_is_given_up_comes_back_with_a_later_epoch() -> None:
    shard_map = ShardMap(
        (Epoch(None, 16, 2), Epoch(NOON, 4, 2), Epoch(AFTER, 16, 2)),
    )
    assert shard_map.next_bucket(1, 9, BEFORE) == BEFORE
    assert shard_map.next_bucket(1, 9, NOON) == AFTER
    assert shard_map.all_shards_of(1) == (1, 3, 5, 7, 9, 11, 13, 15)


def test_only_rows_of_an_unsettled_epoch_have_another_place() -> None:
    def key(instant: datetime, shard: int) -> RowKey:
        return row_key(SCHEDULE, 1, instant, shard)

    old, new = stable_hash(SCHEDULE) % 4, stable_hash(SCHEDULE) % 16
    assert old != new
    for phase in (Phase.ANNOUNCED, Phase.MOVING):
        shard_map = epochs(phase)
        assert shard_map.twin(key(NOON, old)) == key(NOON, new)
        assert shard_map.twin(key(NOON, new)) == key(NOON, old)
        assert shard_map.twin(key(BEFORE, old)) is None
    assert epochs().twin(key(NOON, new)) is None


def test_a_schedule_that_both_counts_give_one_shard_has_one_place() -> None:
    same = next(
        name
        for name in (f"sch{number}" for number in range(100))
        if stable_hash(name) % 4 == stable_hash(name) % 16
    )
    key = row_key(same, 1, NOON, stable_hash(same) % 4)
    assert epochs(Phase.MOVING).twin(key) is None


def test_minutes_are_floored_and_both_ends_count() -> None:
    first, last = NOON + timedelta(seconds=59), NOON + timedelta(minutes=2)
    assert list(minutes_between(first, last)) == [
        NOON,
        NOON + timedelta(minutes=1),
        NOON + timedelta(minutes=2),
    ]
