"""The job worker at orders to move rows to other shards."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hourbell import bootstrap
from hourbell.adapters.memory.shards import MemoryMoveQueue
from hourbell.adapters.messages import decode_move, encode_job, encode_move
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.job import JobState
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Phase
from hourbell.usecases.reshard import Plan, announce
from hourbell.usecases.shard_ports import MoveOrder

from functions.jobs.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sqs_event
from tests.unit.usecases.jobs import begin_create, stored
from tests.unit.usecases.world import START, World

YEARLY = Timing("0 0 1 1 *")
SINCE = START + timedelta(minutes=11)
FAILED = {"batchItemFailures": [{"itemIdentifier": "m0"}]}
NONE_FAILED: dict[str, Any] = {"batchItemFailures": []}
# Of so many, some have another shard among 16 than among 4.
SCHEDULES = 20


def work(*orders: MoveOrder, **context: Any) -> Any:
    return handler(sqs_event(list(map(encode_move, orders))), Context(**context))


def taken(queue: MemoryMoveQueue) -> list[MoveOrder]:
    orders = [order for order, _ in queue.orders]
    queue.orders.clear()
    return orders


@pytest.fixture
def segments(world: World, move_queue: MemoryMoveQueue) -> list[MoveOrder]:
    """Bring an epoch to where its rows are moved; return the orders of the parts."""
    for _ in range(SCHEDULES):
        world.add(YEARLY)
    mover = bootstrap.job_ports().mover
    announce(mover, Plan(16), requested_by="arn:aws:iam::123456789012:role/ops")
    for _ in range(2):
        world.clock.advance(EPOCH_LAG)
        work(*taken(move_queue))
    return taken(move_queue)


def phase(world: World) -> Phase:
    assert world.store.epochs is not None
    return world.store.epochs.shard_map.last.phase


def astray(world: World) -> int:
    assert world.store.epochs is not None
    shard_map = world.store.epochs.shard_map
    return sum(
        row.shard != shard_map.shard_of(row.schedule_id, row.scheduled_for)
        for row in world.store.all_rows()
    )


def moved_lines(log: Log) -> list[dict[str, Any]]:
    message = "moved rows to other shards"
    return [line for line in log.lines if line["message"] == message]


def test_an_order_that_came_too_early_is_put_off(
    world: World, move_queue: MemoryMoveQueue
) -> None:
    announce(bootstrap.job_ports().mover, Plan(16), requested_by="ops")
    (order,) = taken(move_queue)
    world.clock.advance(timedelta(seconds=30))
    assert work(order) == NONE_FAILED
    assert move_queue.orders == [(order, EPOCH_LAG - timedelta(seconds=30))]


def test_rows_are_moved_counted_and_told(
    world: World,
    segments: list[MoveOrder],
    log: Log,
    capsys: pytest.CaptureFixture[str],
) -> None:
    strays = astray(world)
    assert 0 < strays <= SCHEDULES
    capsys.readouterr()
    log.clear()
    assert segments == [MoveOrder(SINCE, 1, number) for number in range(4)]
    assert work(*segments) == NONE_FAILED
    assert (astray(world), phase(world)) == (0, Phase.SETTLED)
    metrics = measured(capsys.readouterr().out)[()]
    assert sum(metrics["RowsMoved"]) == strays
    assert metrics["JobsInterrupted"] == [0.0]
    lines = moved_lines(log)
    told = [(each["round"], each["segment"], each["phase"]) for each in lines]
    assert told == [
        (1, 0, "MOVING"),
        (1, 1, "MOVING"),
        (1, 2, "MOVING"),
        (1, 3, "SETTLED"),
    ]
    assert sum(each["moved"] for each in lines) == strays
    assert {each["left"] for each in lines} == {0}
    assert lines[0]["since"].startswith(f"{SINCE:%Y-%m-%d}")


def test_near_its_limit_the_function_hands_the_rest_on(
    world: World,
    segments: list[MoveOrder],
    move_queue: MemoryMoveQueue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hourbell.adapters.memory.shards.PAGE", 1)
    pending, calls = segments, 0
    while pending:
        work(*pending, remaining_ms=20_000)
        calls += len(pending)
        pending = taken(move_queue)
    assert calls > len(segments)
    assert (astray(world), phase(world)) == (0, Phase.SETTLED)


def test_what_does_not_answer_is_ordered_again_and_stops_no_job(
    world: World,
    segments: list[MoveOrder],
    log: Log,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.store.principals["1:user/ann"] = "acme"
    job = begin_create(world)

    def fail(*_: object, **__: object) -> None:
        raise Transient

    with monkeypatch.context() as patch:
        patch.setattr("hourbell.adapters.memory.shards.MemoryRelocation.relocate", fail)
        patch.setattr("hourbell.adapters.memory.shards.MemoryEpochBook.store", fail)
        bodies = [encode_move(segments[0]), encode_job(job.job_id)]
        capsys.readouterr()
        assert handler(sqs_event(bodies), Context()) == FAILED
    assert stored(world, job).state is JobState.SUCCEEDED
    assert measured(capsys.readouterr().out)[()]["JobsInterrupted"] == [1.0]
    assert log.lines[-1]["message"] == "a job was interrupted"
    assert phase(world) is Phase.MOVING
    # SQS brings the order again.
    work(*segments)
    assert (astray(world), phase(world)) == (0, Phase.SETTLED)


def test_an_order_of_another_epoch_does_nothing(
    world: World, segments: list[MoveOrder], log: Log
) -> None:
    before = world.store.epochs
    log.clear()
    other = MoveOrder(SINCE + timedelta(minutes=1), segments[0].round)
    assert work(other) == NONE_FAILED
    assert world.store.epochs == before
    (line,) = moved_lines(log)
    assert (line["moved"], "phase" in line) == (0, False)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"schema": None},
        {"move": 7},
        {"move": []},
        {"move": {}},
        {"move": {"since": "noon", "round": 1, "segment": 0, "after": None}},
        {"move": {"since": None, "round": 1, "segment": 0, "after": None}},
        {
            "move": {
                "since": "2026-03-09T12:00:00Z",
                "round": "x",
                "segment": 0,
                "after": None,
            }
        },
        {
            "move": {
                "since": "2026-03-09T12:00:00Z",
                "round": 1,
                "segment": 0,
                "after": 7,
            }
        },
    ],
)
def test_an_order_that_this_release_does_not_read_comes_again(
    segments: list[MoveOrder], change: dict[str, Any]
) -> None:
    text = json.dumps(json.loads(encode_move(segments[0])) | change)
    with pytest.raises(Permanent) as refused:
        decode_move(text)
    assert refused.value.code == "unreadable_message"
    assert handler(sqs_event([text]), Context()) == FAILED


def test_an_order_of_the_release_before_is_worked_off(
    world: World, segments: list[MoveOrder]
) -> None:
    bodies = [
        json.dumps(json.loads(encode_move(order)) | {"schema": 0}) for order in segments
    ]
    assert handler(sqs_event(bodies), Context()) == NONE_FAILED
    assert phase(world) is Phase.SETTLED
