"""The relay's handler, on the stream and on the sweep queue."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell import bootstrap
from hourbell.adapters.messages import encode_keys
from hourbell.domain.definition import Tier
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import Entry, Sent

from functions.relay import handler as relay
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sqs_event, stream_event
from tests.unit.usecases.faults import AnsweringQueues
from tests.unit.usecases.world import SECOND, World

NOTHING: dict[str, list[object]] = {"batchItemFailures": []}


@pytest.fixture
def rows(world: World) -> list[Occurrence]:
    """Three outbox records, due in 30 seconds, the last one of a premium tenant."""
    world.add_tenant("gold", Tier.PREMIUM)
    timing = Timing("at(2026-03-09T12:00:30)")
    for tenant in ("acme", "acme", "gold"):
        world.add(timing, tenant=tenant)
    world.scan()
    world.store.stream.clear()
    scheduled = world.rows(State.SCHEDULED)
    assert len(scheduled) == 3
    return sorted(scheduled, key=lambda row: row.tenant_id)


def use_queues(world: World, queues: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = replace(world.outbox, queues=queues)
    ports = bootstrap.RelayPorts(outbox, world.sweep_queue)
    monkeypatch.setattr(bootstrap, "relay_ports", lambda: ports)


def failing(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def states(world: World) -> set[State]:
    return {row.state for row in world.rows()}


class TestStream:
    def test_records_are_enqueued(
        self,
        world: World,
        rows: list[Occurrence],
        log: Log,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert relay.handler(stream_event(rows), Context()) == NOTHING
        assert states(world) == {State.ENQUEUED}
        assert len(world.queues.accepted) == 3
        assert [line["delivered"] for line in log.lines] == [3]
        metrics = measured(capsys.readouterr().out)
        assert metrics[("standard", "strict")] == {
            "Enqueued": [2.0],
            "Late": [0.0],
            "EnqueueLag": [-30.0, -30.0],
            "VisibleLag": [0.0, 0.0],
        }
        assert metrics[("premium", "strict")]["Enqueued"] == [1.0]
        assert metrics[("stream",)]["Unsettled"] == [0.0]

    def test_a_repeated_batch_sends_nothing_twice(
        self, world: World, rows: list[Occurrence], capsys: pytest.CaptureFixture[str]
    ) -> None:
        relay.handler(stream_event(rows), Context())
        capsys.readouterr()
        world.clock.advance(timedelta(seconds=15))
        assert relay.handler(stream_event(rows), Context()) == NOTHING
        assert len(world.queues.accepted) == 3
        assert measured(capsys.readouterr().out)[("stream",)]["Repeated"] == [3.0]

    def test_what_the_queue_does_not_take_goes_to_the_sweep(
        self, world: World, rows: list[Occurrence], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stuck = rows[1]
        queues = AnsweringQueues(world.queues, {stuck.schedule_id: Sent.RETRY})
        use_queues(world, queues, monkeypatch)
        assert relay.handler(stream_event(rows), Context()) == NOTHING
        assert world.sweep_queue.messages == [(stuck.key,)]
        assert [row.key for row in world.rows(State.SCHEDULED)] == [stuck.key]

    def test_when_the_sweep_takes_nothing_the_stream_repeats_from_there(
        self, world: World, rows: list[Occurrence], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = {row.schedule_id: Sent.RETRY for row in rows[1:]}
        use_queues(world, AnsweringQueues(world.queues, answers), monkeypatch)
        monkeypatch.setattr(world.sweep_queue, "put", failing(Transient()))
        assert relay.handler(stream_event(rows), Context()) == {
            "batchItemFailures": [{"itemIdentifier": "1002"}]
        }

    def test_sequence_numbers_are_compared_as_numbers(
        self, world: World, rows: list[Occurrence], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = {row.schedule_id: Sent.RETRY for row in rows}
        use_queues(world, AnsweringQueues(world.queues, answers), monkeypatch)
        monkeypatch.setattr(world.sweep_queue, "put", failing(Transient()))
        event = stream_event(rows)
        for record, number in zip(event["Records"], (998, 999, 1000), strict=True):
            record["dynamodb"]["SequenceNumber"] = str(number)
        assert relay.handler(event, Context()) == {
            "batchItemFailures": [{"itemIdentifier": "998"}]
        }

    def test_versions_that_cannot_be_read_go_to_the_sweep(
        self,
        world: World,
        rows: list[Occurrence],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(world.schedules, "versions", failing(Permanent()))
        assert relay.handler(stream_event(rows), Context()) == NOTHING
        assert states(world) == {State.SCHEDULED}
        swept = {key for keys in world.sweep_queue.take() for key in keys}
        assert swept == {row.key for row in rows}

    def test_when_nothing_can_be_read_the_stream_repeats(
        self,
        world: World,
        rows: list[Occurrence],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(world.schedules, "versions", failing(Transient()))
        assert relay.handler(stream_event(rows), Context()) == {
            "batchItemFailures": [{"itemIdentifier": "1001"}]
        }
        assert states(world) == {State.SCHEDULED}

    def test_a_row_that_cannot_be_read_blocks_nobody(
        self,
        world: World,
        rows: list[Occurrence],
        log: Log,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        event = stream_event(rows)
        event["Records"][0]["dynamodb"]["NewImage"]["state"] = {"S": "BROKEN"}
        assert relay.handler(event, Context()) == NOTHING
        assert len(world.queues.accepted) == 2
        # Its place is known: the sweep's own dead-letter queue parks it.
        assert world.sweep_queue.messages == [(rows[0].key,)]
        assert measured(capsys.readouterr().out)[("stream",)]["Unreadable"] == [1.0]
        assert "an unreadable row" in [line["message"] for line in log.lines]

    @pytest.mark.parametrize(
        "image", [{}, {"state": {"S": "SCHEDULED"}}, {"schema": {"N": "99"}}]
    )
    def test_no_image_breaks_the_batch(
        self, world: World, rows: list[Occurrence], image: dict[str, Any]
    ) -> None:
        event = stream_event(rows)
        event["Records"][1]["dynamodb"]["NewImage"] = image
        assert relay.handler(event, Context()) == NOTHING
        assert len(world.queues.accepted) == 2
        assert world.sweep_queue.messages == [(rows[1].key,)]

    @pytest.mark.parametrize(
        "keys", [{}, {"bucket_shard": {"S": "x"}, "row_key": {"S": "y"}}]
    )
    def test_a_record_without_a_place_is_logged_and_passed(
        self, world: World, rows: list[Occurrence], log: Log, keys: dict[str, Any]
    ) -> None:
        event = stream_event(rows)
        event["Records"][0]["dynamodb"]["Keys"] = keys
        assert relay.handler(event, Context()) == NOTHING
        assert len(world.queues.accepted) == 2
        assert not world.sweep_queue.messages
        assert "not a row of the timeline" in [line["message"] for line in log.lines]

    def test_a_record_that_breaks_the_relay_is_parted_from_the_rest(
        self, world: World, rows: list[Occurrence], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Breaking:
            def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
                raise ZeroDivisionError

        use_queues(world, Breaking(), monkeypatch)
        assert relay.handler(stream_event(rows), Context()) == NOTHING
        assert sorted(world.sweep_queue.messages) == sorted((row.key,) for row in rows)

    def test_rows_in_other_states_are_passed_over(
        self, world: World, rows: list[Occurrence]
    ) -> None:
        planned = [replace(row, state=State.PLANNED) for row in rows]
        assert relay.handler(stream_event(planned), Context()) == NOTHING
        assert not world.queues.accepted


class TestSweep:
    def test_keys_are_relayed(
        self,
        world: World,
        rows: list[Occurrence],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        event = sqs_event([encode_keys([row.key for row in rows])])
        assert relay.handler(event, Context()) == NOTHING
        assert states(world) == {State.ENQUEUED}
        metrics = measured(capsys.readouterr().out)
        assert set(metrics) == {
            ("sweep",),
            ("standard", "strict"),
            ("premium", "strict"),
        }

    def test_what_is_settled_already_is_counted(
        self, world: World, rows: list[Occurrence], capsys: pytest.CaptureFixture[str]
    ) -> None:
        event = sqs_event([encode_keys([row.key for row in rows])])
        relay.handler(event, Context())
        capsys.readouterr()
        assert relay.handler(event, Context()) == NOTHING
        assert len(world.queues.accepted) == 3
        assert measured(capsys.readouterr().out)[("sweep",)]["Repeated"] == [3.0]

    def test_only_the_message_that_failed_is_repeated(
        self,
        world: World,
        rows: list[Occurrence],
        log: Log,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        queues = AnsweringQueues(world.queues, {rows[1].schedule_id: Sent.RETRY})
        use_queues(world, queues, monkeypatch)
        event = sqs_event([encode_keys([row.key]) for row in rows] + ["nonsense"])
        assert relay.handler(event, Context()) == {
            "batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m3"}]
        }
        assert len(world.queues.accepted) == 2
        errors = [line for line in log.lines if line["level"] == "ERROR"]
        assert [line["exception_name"] for line in errors] == ["Transient", "Permanent"]

    def test_late_ones_are_counted_as_late(
        self, world: World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = world.add(Timing("at(2026-03-09T12:00:30)"))
        world.clock.advance(95 * SECOND)
        world.scan()
        event = sqs_event([encode_keys([first.key])])
        assert relay.handler(event, Context()) == NOTHING
        lane = measured(capsys.readouterr().out)[("standard", "catchup")]
        assert lane["Late"] == [1.0]
        assert lane["VisibleLag"] == [0.0]

    def test_a_key_without_a_row_is_settled(self, world: World) -> None:
        key = RowKey("20260309T1200Z", 0, "20260309T120000Z#sch#v1")
        assert relay.handler(sqs_event([encode_keys([key])]), Context()) == NOTHING
