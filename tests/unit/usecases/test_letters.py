"""A dead letter goes to its handler's dead-letter queue at least once, and is noted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import Handler, Routing, Tracking
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.retry import Retry
from hourbell.usecases.occurrences import replay_occurrence
from hourbell.usecases.ports import Entry, Sent
from hourbell.usecases.relay import Outbox, relay_keys, relay_rows

from tests.unit.usecases.faults import AnsweringQueues, UnclearTimeline
from tests.unit.usecases.poison import Damaged
from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import MINUTE, SECOND, World

ONCE = Retry(max_attempts=1)
DEAD_TYPE = "com.hourbell.occurrence.dead.v1"
TARGET = "arn:aws:sqs:eu-central-1:1:letters"


def died() -> tuple[Shop, str]:
    """Let the first occurrence die in its only attempt; its letter is not sent."""
    shop = Shop("30 13 * * *", retry=ONCE)
    name = shop.due()
    shop.fail(name, shop.run(name), BOOM)
    return shop, name


def letters(world: World) -> list[tuple[str, Any]]:
    """Return the queue and the text of every letter that was accepted."""
    read = [(each.queue, json.loads(each.entry.body)) for each in world.queues.accepted]
    return [(queue, event) for queue, event in read if event["type"] == DEAD_TYPE]


def outbox(shop: Shop, **ports: Any) -> Outbox:
    return replace(shop.world.outbox, **ports)


def route(shop: Shop, **members: Any) -> None:
    shop.world.store.handlers["acme", "ring"] = Handler("acme", "ring", **members)


def test_the_stream_brings_a_letter_to_the_handlers_queue_with_the_reason() -> None:
    shop, name = died()
    report = shop.world.relay_stream()

    [(queue, letter)] = letters(shop.world)
    assert queue == "standard-dead"
    assert (letter["id"], letter["type"]) == (name, DEAD_TYPE)
    sent = next(
        json.loads(each.entry.body)
        for each in shop.world.queues.accepted
        if each.queue == "standard-strict"
    )
    own = {
        "reason": "ATTEMPTS_USED_UP",
        "failure": {"class": "RETRYABLE", "type": "Boom", "message": "it broke"},
        "attempts": 1,
        "died_at": "2026-03-09T13:30:00Z",
    }
    assert letter == sent | {"type": DEAD_TYPE, "data": sent["data"] | own}
    assert shop.row(name).told_at == shop.now
    assert (report.letters.sent, report.unsettled) == (1, ())


def test_a_letter_is_not_sent_again_once_it_is_noted() -> None:
    shop, name = died()
    row = shop.row(name)
    shop.world.relay_stream()
    # Its own note comes by the stream as well, and so may the first image, late.
    report = relay_rows(shop.world.outbox, [row, *shop.world.store.take_stream()])
    assert (report.letters.sent, report.repeated) == (0, 1)
    report = relay_keys(shop.world.outbox, [row.key])
    assert (report.letters.sent, report.repeated) == (0, 1)
    assert len(letters(shop.world)) == 1


def test_a_letter_that_the_stream_lost_is_sent_by_the_sweep() -> None:
    shop, name = died()
    shop.world.store.take_stream()
    shop.world.clock.advance(15 * SECOND)
    shop.world.scan()
    assert letters(shop.world) == []

    (report,) = shop.world.relay_sweep()

    assert report.letters.sent == 1
    assert shop.row(name).told_at == shop.now
    shop.world.scan()
    assert shop.pending(DispatchKind.LETTER) == []
    assert shop.world.sweep_queue.take() == []


def test_a_crash_between_send_and_note_sends_it_twice_with_the_same_id() -> None:
    shop, name = died()
    key = shop.row(name).key
    unclear = UnclearTimeline(shop.world.timeline, lambda name, _: name == "move")
    report = relay_keys(outbox(shop, timeline=unclear), [key])
    assert report.unsettled == (key,)
    assert shop.row(name).told_at is None

    relay_keys(shop.world.outbox, [key])

    assert {letter["id"] for _, letter in letters(shop.world)} == {name}
    assert shop.row(name).told_at is not None


def test_a_replay_that_was_first_is_not_noted_as_told() -> None:
    shop, name = died()
    world = shop.world
    place = world.workplace

    class Replaying:
        def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
            replay_occurrence(place, "acme", name)
            return world.queues.send(queue, entries)

    report = relay_keys(outbox(shop, queues=Replaying()), [shop.row(name).key])
    assert (report.letters.sent, report.repeated) == (0, 1)
    row = shop.row(name)
    assert (row.told_at, row.state) == (None, State.SCHEDULED)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, "standard-dead"),
        (
            {"routing": Routing.DEDICATED, "queue_arn": "arn:x:hourbell-tenant-acme"},
            "arn:x:hourbell-tenant-acme-dead",
        ),
        (
            {
                "routing": Routing.EXTERNAL,
                "queue_arn": "arn:x:inbox",
                "dead_letter_queue_arn": TARGET,
            },
            TARGET,
        ),
    ],
)
def test_it_goes_where_its_handler_is_routed_by_now(
    members: dict[str, Any], expected: str
) -> None:
    shop, _ = died()
    route(shop, **members)
    shop.world.relay_stream()
    assert [queue for queue, _ in letters(shop.world)] == [expected]


def test_without_a_dead_letter_queue_it_is_kept_in_the_store_and_noted() -> None:
    shop, name = died()
    route(shop, routing=Routing.EXTERNAL, queue_arn="arn:x:inbox")
    report = shop.world.relay_stream()
    assert letters(shop.world) == []
    assert (report.letters.kept, report.letters.sent) == (1, 0)
    assert shop.row(name).told_at == shop.now
    assert [each.occurrence_id for each in shop.world.store.letters.values()] == [name]


def test_a_handler_that_is_gone_has_no_queue() -> None:
    shop, name = died()
    del shop.world.store.handlers["acme", "ring"]
    assert shop.world.relay_stream().letters.kept == 1
    assert shop.row(name).told_at is not None


def test_a_letter_that_its_queue_refuses_for_good_is_noted_and_counted() -> None:
    shop, name = died()
    queues = AnsweringQueues(shop.world.queues, {name: Sent.REFUSED})
    report = relay_rows(outbox(shop, queues=queues), shop.world.store.take_stream())
    assert (report.letters.refused, report.unsettled) == (1, ())
    assert shop.row(name).told_at == shop.now


def test_a_letter_that_its_queue_does_not_take_now_is_tried_again() -> None:
    shop, name = died()
    queues = AnsweringQueues(shop.world.queues, {name: Sent.RETRY})
    report = relay_rows(outbox(shop, queues=queues), shop.world.store.take_stream())
    assert report.unsettled == (shop.row(name).key,)
    assert shop.row(name).told_at is None


@pytest.mark.parametrize("error", [Transient(), Permanent()])
def test_what_cannot_be_read_now_is_tried_again_and_keeps_nothing_back(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, name = died()

    def fail(*_: object, **__: object) -> None:
        raise error

    target = shop.world.schedules if isinstance(error, Permanent) else None
    if target is None:
        monkeypatch.setattr(shop.world.directory, "named_handlers", fail)
    else:
        monkeypatch.setattr(target, "versions", fail)
    report = shop.world.relay_stream()
    assert report.unsettled == (shop.row(name).key,)
    assert letters(shop.world) == []


def test_without_its_version_a_letter_cannot_be_written_any_more() -> None:
    shop, name = died()
    shop.world.store.versions.clear()
    report = shop.world.relay_stream()
    assert report.letters.refused == 1
    assert shop.row(name).told_at is not None


def refused(shop: Shop) -> Occurrence:
    """Let the queue refuse the message of the first occurrence; return its row."""
    shop.world.scan()
    name = shop.first.occurrence_id
    queues = AnsweringQueues(shop.world.queues, {name: Sent.REFUSED})
    report = relay_rows(outbox(shop, queues=queues), shop.world.store.take_stream())
    assert (report.refused, report.unsettled) == (1, ())
    return shop.row(name)


@pytest.mark.parametrize("tracking", Tracking)
def test_what_its_queue_refuses_is_dead_with_a_letter_in_both_places(
    tracking: Tracking,
) -> None:
    shop = Shop(tracking=tracking)
    row = refused(shop)
    assert (row.state, row.reason) == (State.DEAD, "SEND_REFUSED")
    assert len(shop.pending(DispatchKind.LETTER)) == 1
    (kept,) = shop.world.store.letters.values()
    assert (kept.occurrence_id, kept.died_at) == (row.occurrence_id, row.finished_at)

    shop.world.relay_stream()

    [(queue, letter)] = letters(shop.world)
    assert (queue, letter["id"]) == ("standard-dead", row.occurrence_id)
    data = letter["data"]
    assert (data["reason"], data["failure"]) == ("SEND_REFUSED", None)
    assert (data["attempts"], data["send"]) == (0, 0)


def test_when_the_stream_loses_a_refused_one_its_letter_is_swept() -> None:
    shop = Shop()
    row = refused(shop)
    shop.world.store.take_stream()
    shop.world.clock.advance(MINUTE)
    shop.world.scan()
    shop.world.relay_sweep()
    assert [letter["id"] for _, letter in letters(shop.world)] == [row.occurrence_id]


def test_an_end_that_was_not_written_leaves_an_outbox_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    shop.world.scan()
    name = shop.first.occurrence_id
    queues = AnsweringQueues(shop.world.queues, {name: Sent.REFUSED})

    def fail(*_: object) -> None:
        raise Transient

    monkeypatch.setattr(shop.world.ledger, "do", fail)
    report = relay_rows(outbox(shop, queues=queues), shop.world.store.take_stream())
    row = shop.row(name)
    assert (row.state, report.unsettled, report.refused) == (
        State.SCHEDULED,
        (row.key,),
        0,
    )


def test_whoever_is_second_to_end_a_record_counts_it_as_repeated() -> None:
    shop = Shop()
    shop.world.scan()
    rows = [shop.row(shop.first.occurrence_id)]
    name = shop.first.occurrence_id
    queues = AnsweringQueues(shop.world.queues, {name: Sent.REFUSED})
    relay_rows(outbox(shop, queues=queues), rows)
    report = relay_rows(outbox(shop, queues=queues), rows)
    assert (report.refused, report.repeated) == (0, 1)


def test_many_letters_go_in_batches_of_ten() -> None:
    world = World()
    shops = [Shop("30 13 * * *", retry=ONCE, world=world) for _ in range(12)]
    shops[0].due()
    for shop in shops:
        name = shop.first.occurrence_id
        shop.fail(name, shop.run(name), BOOM)
    assert world.relay_stream().letters.sent == 12
    assert len({letter["id"] for _, letter in letters(world)}) == 12


@pytest.mark.parametrize("lost", ["tenants_lost", "handlers_lost"])
def test_an_unreadable_tenant_or_handler_keeps_its_letter_back_and_no_message(
    lost: str,
) -> None:
    shop, name = died()
    row, other = shop.row(name), Shop("31 13 * * *", world=shop.world)
    shop.world.scan()
    directory: Any = Damaged(shop.world.directory)
    getattr(directory, lost).update({"acme", ("acme", "ring")})
    rows = shop.world.store.take_stream()
    report = relay_rows(outbox(shop, directory=directory), rows)
    # Nothing is repeated for the sake of the letter: what was sent is acknowledged.
    assert report.unsettled == (row.key,)
    assert len(report.deliveries) == 1
    assert shop.row(other.first.occurrence_id).state is State.ENQUEUED
    assert (shop.row(name).told_at, letters(shop.world)) == (None, [])
    assert relay_keys(shop.world.outbox, [row.key]).letters.sent == 1
