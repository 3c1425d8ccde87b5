"""Relaying: send, then acknowledge what was accepted."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Definition, Tracking, VersionRef
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.packing import MAX_BYTES
from hourbell.domain.retention import RETENTION
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import Sent
from hourbell.usecases.relay import Outbox, relay_keys, relay_rows

from tests.unit.usecases.faults import (
    AnsweringQueues,
    Crash,
    Crashing,
    UnclearTimeline,
)
from tests.unit.usecases.world import MINUTE, SECOND, START, World


def scheduled(world: World, count: int = 1, **options: int) -> list[Occurrence]:
    """Make outbox records due in one minute."""
    at = START + MINUTE
    for _ in range(count):
        row = world.add(Timing(f"at({at:%Y-%m-%dT%H:%M:%S})"), **options)  # type: ignore[arg-type]
        advance(world.plane, [row], world.clock.now())
    world.store.stream.clear()
    return world.rows(State.SCHEDULED)


def payload(world: World, row: Occurrence, text: str) -> None:
    """Give a schedule's version another payload."""
    ref = VersionRef(row.schedule_id, row.version)
    version = world.store.versions[ref]
    definition = replace(version.definition, payload_json=text)
    world.store.versions[ref] = replace(version, definition=definition)


def test_a_record_is_sent_with_the_delay_until_it_is_available() -> None:
    world = World()
    rows = scheduled(world)
    report = relay_rows(world.outbox, rows)
    (sent,) = world.queues.accepted
    assert sent.queue == "standard-strict"
    assert sent.entry.delay_seconds == 60
    assert sent.entry.group == "acme"
    assert sent.visible_at == rows[0].available_at
    (row,) = world.rows()
    assert row.state is State.ENQUEUED
    assert row.enqueued_at == START
    assert row.visible_at == START + MINUTE
    assert row.sends == 1
    assert row.expires_at == START + RETENTION
    (delivery,) = report.deliveries
    assert delivery.enqueue_lag == -MINUTE
    assert delivery.visible_lag == timedelta(0)


def test_the_message_is_a_cloud_event_with_the_stable_id() -> None:
    world = World()
    (row,) = scheduled(world)
    relay_rows(world.outbox, [row])
    event = json.loads(world.queues.accepted[0].entry.body)
    assert event["id"] == row.occurrence_id
    assert event["specversion"] == "1.0"
    assert event["type"] == "com.hourbell.occurrence.due.v1"
    assert event["time"] == "2026-03-09T12:01:00Z"
    assert event["subject"] == "bell-0"
    assert event["data"] == {
        "handler": "ring",
        "tracking": "UNTRACKED",
        "attempt": 1,
        "schedule_id": row.schedule_id,
        "version": 1,
        "tenant": "acme",
        "available_at": "2026-03-09T12:01:00Z",
        "send": 1,
        "misfire": False,
        "payload": {"n": 1},
    }


def test_the_payload_arrives_as_the_text_that_was_accepted() -> None:
    world = World()
    (row,) = scheduled(world)
    text = '{"big":12345678901234567890.10,"odd":"\ufffe\uffff\U0001f514"}'
    payload(world, row, text)
    relay_rows(world.outbox, [row])
    (sent,) = world.queues.accepted
    assert '"payload":{"big":12345678901234567890.10,' in sent.entry.body
    assert (
        json.loads(sent.entry.body)["data"]["payload"]["odd"]
        == "\ufffe\uffff\U0001f514"
    )


def test_a_record_in_the_past_is_sent_without_delay() -> None:
    world = World()
    rows = scheduled(world)
    world.clock.advance(5 * MINUTE)
    report = relay_rows(world.outbox, rows)
    assert world.queues.accepted[0].entry.delay_seconds == 0
    assert report.deliveries[0].visible_lag == 4 * MINUTE


def test_a_record_beyond_the_longest_delay_waits_for_the_sweep() -> None:
    world = World()
    (row,) = scheduled(world)
    far = replace(row, available_at=START + 901 * SECOND)
    report = relay_rows(world.outbox, [far])
    assert report.deferred == 1
    assert report.unsettled == ()
    assert world.queues.accepted == []
    assert world.rows()[0].state is State.SCHEDULED


def test_batches_hold_ten_entries_and_one_mebibyte() -> None:
    world = World()
    rows = scheduled(world, 27)
    for row in rows[:9]:
        payload(world, row, json.dumps("x" * 300_000))
    queues = AnsweringQueues(world.queues, {})
    relay_rows(replace(world.outbox, queues=queues), rows)
    assert len(world.queues.accepted) == 27
    for _, entries in queues.batches:
        assert len(entries) <= 10
        assert sum(len(entry.body.encode()) for entry in entries) <= MAX_BYTES
        assert len({entry.entry_id for entry in entries}) == len(entries)


def test_each_queue_gets_batches_of_its_own() -> None:
    world = World()
    rows = scheduled(world, 3) + scheduled(world, 2, window=20)
    queues = AnsweringQueues(world.queues, {})
    relay_rows(replace(world.outbox, queues=queues), list(set(rows)))
    assert {queue for queue, _ in queues.batches} == {
        "standard-strict",
        "standard-flexible",
    }
    for queue, entries in queues.batches:
        assert all(
            f'"id":"{row.occurrence_id}"' not in entry.body
            for entry in entries
            for row in rows
            if row.queue != queue
        )


def test_only_what_the_queue_accepted_is_acknowledged() -> None:
    world = World()
    rows = scheduled(world, 3)
    payload(world, rows[1], '"busy"')
    queues = AnsweringQueues(world.queues, {'"busy"': Sent.RETRY})
    report = relay_rows(replace(world.outbox, queues=queues), rows)
    assert report.unsettled == (rows[1].key,)
    assert len(report.deliveries) == 2
    assert [row.key for row in world.rows(State.SCHEDULED)] == [rows[1].key]
    again = relay_keys(world.outbox, report.unsettled)
    assert len(again.deliveries) == 1
    assert world.rows(State.SCHEDULED) == []


def test_a_message_refused_for_good_is_dead_with_its_reason_and_blocks_nobody() -> None:
    world = World()
    rows = scheduled(world, 3)
    payload(world, rows[0], '"poison"')
    queues = AnsweringQueues(world.queues, {'"poison"': Sent.REFUSED})
    report = relay_rows(replace(world.outbox, queues=queues), rows)
    assert report.refused == 1
    assert len(report.deliveries) == 2
    (dead,) = world.rows(State.DEAD)
    assert dead.reason == "SEND_REFUSED"
    assert dead.key == rows[0].key


def test_an_answer_that_lacks_an_entry_means_try_again() -> None:
    world = World()
    (row,) = scheduled(world)

    class Silent:
        def send(self, queue: Any, entries: Any) -> Any:
            return {}

    report = relay_rows(replace(world.outbox, queues=Silent()), [row])
    assert report.unsettled == (row.key,)


@pytest.mark.parametrize("port", ["queues", "timeline"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_around_the_send_or_the_acknowledgement_repeats_the_same_id(
    port: str, after: bool
) -> None:
    world = World()
    (row,) = scheduled(world)
    crashing = Crashing(getattr(world, port), ("send", "move"), nth=1, after=after)
    with pytest.raises(Crash):
        relay_rows(replace(world.outbox, **{port: crashing}), [row])
    relay_keys(world.outbox, [row.key])
    ids = {json.loads(sent.entry.body)["id"] for sent in world.queues.accepted}
    assert ids == {row.occurrence_id}
    assert world.rows()[0].state is State.ENQUEUED


@pytest.mark.parametrize("applied", [False, True])
def test_an_unclear_acknowledgement_is_settled_by_the_next_try(applied: bool) -> None:
    world = World()
    (row,) = scheduled(world)
    unclear = UnclearTimeline(world.timeline, lambda *_: True, applied=applied)
    report = relay_rows(replace(world.outbox, timeline=unclear), [row])
    assert report.unsettled == (row.key,)
    again = relay_keys(world.outbox, report.unsettled)
    assert world.rows()[0].state is State.ENQUEUED
    assert len(again.deliveries) + again.repeated == 1
    assert len(world.queues.accepted) == (1 if applied else 2)


def test_a_record_that_the_stream_brings_late_is_read_again_first() -> None:
    world = World()
    rows = scheduled(world, 2)
    relay_rows(world.outbox, rows[:1])
    world.clock.advance(11 * SECOND)
    report = relay_rows(world.outbox, rows)
    assert report.repeated == 1
    assert len(world.queues.accepted) == 2


def test_a_record_that_is_gone_counts_as_settled() -> None:
    world = World()
    (row,) = scheduled(world)
    world.store.rows.clear()
    assert relay_keys(world.outbox, [row.key]).repeated == 1
    world.clock.advance(11 * SECOND)
    assert relay_rows(world.outbox, [row]).repeated == 1
    assert world.queues.accepted == []


def test_a_record_settled_by_another_relay_meanwhile_is_counted() -> None:
    world = World()
    (row,) = scheduled(world)
    relay_rows(world.outbox, [row])
    report = relay_rows(world.outbox, [row])
    assert report.repeated == 1
    assert report.deliveries == ()


def test_the_same_record_twice_in_one_batch_is_sent_once() -> None:
    world = World()
    (row,) = scheduled(world)
    relay_rows(world.outbox, [row, row])
    assert len(world.queues.accepted) == 1


def test_images_in_other_states_are_ignored() -> None:
    world = World()
    (row,) = scheduled(world)
    others = [replace(row, state=s) for s in State if s is not State.SCHEDULED]
    report = relay_rows(world.outbox, others)
    assert report.deliveries == ()
    assert world.queues.accepted == []


def test_a_record_that_its_version_does_not_own_is_canceled_unsent() -> None:
    world = World()
    (row,) = scheduled(world)
    ref = VersionRef(row.schedule_id, 1)
    world.store.versions[ref] = replace(
        world.store.versions[ref], effective_to=row.scheduled_for
    )
    assert relay_rows(world.outbox, [row]).canceled == 1
    assert world.rows()[0].reason == "SUPERSEDED"
    assert world.queues.accepted == []


def test_an_orphaned_record_is_canceled_unsent() -> None:
    world = World()
    (row,) = scheduled(world)
    world.store.versions.clear()
    assert relay_rows(world.outbox, [row]).canceled == 1
    assert world.rows()[0].reason == "ORPHANED"


def test_a_tracked_occurrence_does_not_end_when_it_is_enqueued() -> None:
    world = World()
    (row,) = scheduled(world)
    ref = VersionRef(row.schedule_id, 1)
    version = world.store.versions[ref]
    definition: Definition = replace(version.definition, tracking=Tracking.TRACKED)
    world.store.versions[ref] = replace(version, definition=definition)
    relay_rows(world.outbox, [row])
    assert world.rows()[0].state is State.ENQUEUED
    assert world.rows()[0].expires_at is None


def test_nothing_to_relay_reads_nothing() -> None:
    world = World()

    class Unreadable:
        def versions(self, *_args: Any, **_kwargs: Any) -> Any:
            raise AssertionError("nothing to read")

    outbox: Outbox = replace(world.outbox, schedules=Unreadable())  # type: ignore[arg-type]
    assert relay_rows(outbox, []).deliveries == ()


def test_a_misfire_says_so_in_its_message() -> None:
    world = World()
    row = world.add(Timing("at(2026-03-09T12:01:00)"))
    world.clock.advance(10 * MINUTE)
    advance(world.plane, [row], world.clock.now())
    report = relay_rows(world.outbox, world.rows(State.SCHEDULED))
    event = json.loads(world.queues.accepted[0].entry.body)
    assert event["data"]["misfire"] is True
    assert event["time"] == "2026-03-09T12:01:00Z"
    assert report.deliveries[0].misfire


def test_a_fraction_of_a_second_ahead_is_a_whole_second_of_delay() -> None:
    world = World()
    rows = scheduled(world)
    world.clock.advance(timedelta(milliseconds=400))
    relay_rows(world.outbox, rows)
    (sent,) = world.queues.accepted
    assert sent.entry.delay_seconds == 60
    assert sent.visible_at >= START + MINUTE


def test_versions_are_read_consistently_right_before_a_send() -> None:
    world = World()
    rows = scheduled(world)
    reads: list[bool] = []

    class Recording:
        def versions(self, refs: Any, *, consistent: bool) -> Any:
            reads.append(consistent)
            return world.schedules.versions(refs, consistent=consistent)

    schedules: Any = Recording()
    relay_rows(replace(world.outbox, schedules=schedules), rows)
    assert reads == [True]
