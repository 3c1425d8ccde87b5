"""The materializer's handler."""

from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.messages import encode_work
from hourbell.domain.definition import Tracking
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import GroupWork

from functions.materializer.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sqs_event
from tests.unit.usecases.deferring import (
    DAY,
    HORIZON,
    available,
    deferred,
    releases,
    stored,
)
from tests.unit.usecases.leaping import LOOKED, ONCE, leap
from tests.unit.usecases.limiting import limit, once
from tests.unit.usecases.world import SECOND, START, World


def order(*groups: int) -> dict[str, Any]:
    return sqs_event([encode_work(GroupWork(group, START)) for group in groups])


def test_the_ordered_groups_are_scanned(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    first = world.add(Timing("* * * * *"))
    assert handler(order(0, 1), Context()) == {"batchItemFailures": []}
    assert len(world.rows(State.SCHEDULED)) == 3
    group = world.shard_map.group_of(first.shard)
    scanned = {line["group"]: line for line in log.lines}
    assert set(scanned) == {0, 1}
    assert scanned[group]["tally"]["scheduled"] == 3
    assert scanned[1 - group]["tally"]["scheduled"] == 0
    metrics = measured(capsys.readouterr().out)[()]
    assert metrics["RowsPlanned"] in ([3.0, 0.0], [0.0, 3.0])
    assert metrics["RowsScheduled"] == metrics["RowsPlanned"]
    # The watermark stands two minutes behind the first row's creation.
    assert metrics["WatermarkAge"] == [120.0, 120.0]
    assert metrics["PassDuration"] == [0.0, 0.0]


def test_what_is_deferred_and_released_is_counted(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    row = deferred(world)
    world.clock.set(available(row) - HORIZON)
    other = world.add(Timing("* * * * *"), window=DAY)
    (dispatch,) = releases(world)
    group = world.shard_map.group_of(dispatch.shard)
    while world.shard_map.group_of(other.shard) != group:
        other = world.add(Timing("* * * * *"), window=DAY)
    handler(order(group), Context())
    metrics = measured(capsys.readouterr().out)[()]
    waiting = [r for r in world.rows(State.DEFERRED) if r.shard % 2 == group]
    assert metrics["RecordsReleased"] == [1.0]
    assert metrics["ReleasesInVain"] == [0.0]
    assert metrics["RowsDeferred"] == [float(len(waiting))]
    assert len(waiting) >= 3
    assert (log.lines[0]["released"], stored(world, row).state) == (1, "SCHEDULED")


def test_what_a_rate_moves_is_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(world, a_second=2)
    once(world, START + 60 * SECOND, 7)
    handler(order(0, 1), Context())
    metrics = measured(capsys.readouterr().out)[()]
    assert sum(metrics["RowsScheduled"]) == 7
    assert sum(metrics["RowsPaced"]) == 5


def test_what_an_outage_left_is_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.add(Timing("* * * * *"))
    # Of 12:01 to 12:08, overdue at 12:09:02, the latest one runs. The others have two
    # rows: the first one's, and that of the gap after it.
    world.clock.advance(timedelta(minutes=9, seconds=2))
    handler(order(0, 1), Context())
    metrics = measured(capsys.readouterr().out)[()]
    names = ("RowsOverdue", "RowsMissed", "GapsExpanded")
    assert [sum(metrics[name]) for name in names] == [1, 2, 1]


def test_what_was_counted_by_minute_is_not_logged_and_a_lost_count_is_measured(
    world: World,
    log: Log,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(first.shard)

    def fail(_counts: object) -> None:
        raise Transient

    monkeypatch.setattr(world.loads, "add", fail)
    assert handler(order(group), Context()) == {"batchItemFailures": []}
    assert len(world.rows(State.SCHEDULED)) == 3
    assert "minutes" not in log.lines[0]["tally"]
    assert measured(capsys.readouterr().out)[()]["LoadsLost"] == [1.0]


def test_a_group_that_another_holds_is_left_to_it(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    first = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(first.shard)
    assert world.groups.acquire(group, "other", now=START, duration=60 * SECOND)
    assert handler(order(group), Context()) == {"batchItemFailures": []}
    assert world.rows() == [first]
    assert [line["message"] for line in log.lines] == ["left to the lease's holder"]
    assert measured(capsys.readouterr().out)[()] == {
        "PassesWithoutLease": [1.0],
        "ScansFailed": [0.0],
    }


def test_a_message_that_fails_is_repeated_alone(
    world: World, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(first.shard)
    event = order(1 - group, group)
    event["Records"][0]["body"] = "{}"
    assert handler(event, Context()) == {
        "batchItemFailures": [{"itemIdentifier": "m0"}]
    }
    assert len(world.rows(State.SCHEDULED)) == 3
    assert "Permanent" in str([line.get("exception_name") for line in log.lines])


def test_when_all_fail_all_are_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Transient

    monkeypatch.setattr(world.groups, "acquire", fail)
    assert handler(order(0, 1), Context()) == {
        "batchItemFailures": [{"itemIdentifier": "m0"}, {"itemIdentifier": "m1"}]
    }


def test_near_its_limit_a_pass_ends_and_the_next_one_goes_on(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    first = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(first.shard)
    # Five seconds are kept for giving the lease back: none are left to scan.
    assert handler(order(group), Context(remaining_ms=5_000)) == {
        "batchItemFailures": []
    }
    assert world.rows() == [first]
    assert log.lines[0]["finished"] is False
    assert measured(capsys.readouterr().out)[()]["PassesUnfinished"] == [1.0]
    handler(order(group), Context(request_id="another"))
    assert len(world.rows(State.SCHEDULED)) == 3


def test_what_is_parked_is_counted_and_told(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    row = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(row.shard)
    del world.store.handlers["acme", "ring"]
    world.clock.advance(1_000 * SECOND)
    # It is tried in vain, and by the next pass parked.
    handler(order(group), Context())
    assert measured(capsys.readouterr().out)[()]["RowsParked"] == [0.0]
    handler(order(group), Context(request_id="second"))
    metrics = measured(capsys.readouterr().out)[()]
    assert (metrics["RowsParked"], metrics["ParkedRows"]) == ([1.0], [1.0])
    assert metrics["RowsUnparked"] == [0.0]
    assert log.lines[1]["parked"] == 1
    del world.store.rows[row.key.partition]
    world.clock.advance(1_000 * SECOND)
    handler(order(group), Context(request_id="another"))
    metrics = measured(capsys.readouterr().out)[()]
    assert (metrics["RowsUnparked"], metrics["ParkedRows"]) == ([1.0], [0.0])


def test_how_far_a_group_is_behind_is_measured(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    row = world.add(Timing("* * * * *"))
    group = world.shard_map.group_of(row.shard)
    del world.store.handlers["acme", "ring"]
    # Due at 12:01, and found at 12:10.
    world.clock.advance(600 * SECOND)
    handler(order(group), Context())
    metrics = measured(capsys.readouterr().out)[()]
    assert metrics["OldestPendingAge"] == [540.0]
    assert metrics["EstimatedDrainTime"] == [0.0]
    assert metrics["PassesContinued"] == [0.0]
    handler(order(1 - group), Context())
    assert measured(capsys.readouterr().out)[()]["OldestPendingAge"] == [0.0]


def test_what_nobody_claimed_is_counted(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    row = world.add(ONCE, tracking=Tracking.TRACKED)
    world.clock.set(row.scheduled_for)
    for _ in range(5):
        world.scan()
        world.relay_stream()
        world.clock.advance(60 * SECOND)
    leap(world, row.scheduled_for + LOOKED)
    group = world.shard_map.group_of(row.shard)

    handler(order(group), Context())

    assert measured(capsys.readouterr().out)[()]["RowsUnclaimed"] == [1.0]
    assert log.lines[0]["unclaimed"] == 1
