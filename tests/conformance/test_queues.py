"""The queue ports."""

import pytest
from hourbell.usecases.ports import Entry, GroupWork, Probe, Sent
from hourbell.usecases.shard_ports import MoveOrder

from tests.conformance.samples import DUE, MINUTE, NOW, planned
from tests.conformance.worlds import Queues

QUEUE = "premium-strict"


def entry(name: str, body: str = "{}", delay_seconds: int = 0) -> Entry:
    return Entry(name, body, delay_seconds, "acme")


def test_accepted_entries_arrive(queues: Queues) -> None:
    entries = [entry(f"e{n}", f'{{"text":"grüß 👋 {n}"}}') for n in range(10)]

    answers = queues.deliveries.send(QUEUE, entries)

    assert answers == {f"e{n}": Sent.ACCEPTED for n in range(10)}
    assert sorted(queues.bodies(QUEUE)) == sorted(each.body for each in entries)
    assert queues.bodies("basic-flexible") == []


def test_a_delayed_entry_is_not_receivable_at_once(queues: Queues) -> None:
    queues.deliveries.send(QUEUE, [entry("now", "a"), entry("later", "b", 900)])

    assert queues.bodies(QUEUE) == ["a"]


def test_nothing_to_send_answers_nothing(queues: Queues) -> None:
    assert queues.deliveries.send(QUEUE, []) == {}


def test_a_queue_that_does_not_exist_is_tried_again(queues: Queues) -> None:
    answers = queues.deliveries.send("no-such", [entry("a"), entry("b")])

    assert answers == {"a": Sent.RETRY, "b": Sent.RETRY}


def test_a_poison_entry_blocks_no_other(queues: Queues) -> None:
    poison = "x" * (1024 * 1024 + 1)

    answers = queues.deliveries.send(
        QUEUE, [entry("fine", "a"), entry("poison", poison), entry("also", "b")]
    )

    assert answers == {
        "fine": Sent.ACCEPTED,
        "poison": Sent.REFUSED,
        "also": Sent.ACCEPTED,
    }
    assert sorted(queues.bodies(QUEUE)) == ["a", "b"]


def test_a_poison_entry_alone_is_refused(queues: Queues) -> None:
    poison = "x" * (1024 * 1024 + 1)

    assert queues.deliveries.send(QUEUE, [entry("poison", poison)]) == {
        "poison": Sent.REFUSED
    }
    assert queues.bodies(QUEUE) == []


def test_too_many_or_repeated_entries_are_a_fault_of_the_program(
    queues: Queues,
) -> None:
    with pytest.raises(ValueError, match="at most 10"):
        queues.deliveries.send(QUEUE, [entry(f"e{n}") for n in range(11)])
    with pytest.raises(ValueError, match="id of its own"):
        queues.deliveries.send(QUEUE, [entry("same"), entry("same")])
    assert queues.bodies(QUEUE) == []


def test_orders_to_scan_arrive(queues: Queues) -> None:
    orders = [GroupWork(group, NOW + group * MINUTE) for group in range(13)]

    queues.work.put(orders)

    assert sorted(queues.works(), key=lambda work: work.group) == orders
    queues.work.put([])
    assert queues.works() == []


def test_keys_to_sweep_arrive_in_messages_of_up_to_50(queues: Queues) -> None:
    keys = [planned(n).key for n in range(120)]

    queues.sweep.put(keys)

    messages = queues.sweeps()
    assert sorted(len(message) for message in messages) == [20, 50, 50]
    assert sorted(key for message in messages for key in message) == sorted(keys)


def test_orders_to_work_at_jobs_arrive(queues: Queues) -> None:
    ids = [f"job{n:026}" for n in range(3)]
    for job_id in ids:
        queues.jobs.put(job_id)

    assert sorted(queues.orders()) == ids


def test_orders_to_move_rows_arrive_when_their_delay_is_over(queues: Queues) -> None:
    orders = [MoveOrder(DUE, 2, segment, "there") for segment in range(13)]

    queues.moves.put(orders, delay=0 * MINUTE)
    queues.moves.put([MoveOrder(DUE)], delay=MINUTE)

    arrived = queues.move_orders()
    assert len(arrived) == 13
    assert set(arrived) == set(orders)


def test_a_probe_tells_whether_a_queue_takes_messages(queues: Queues) -> None:
    assert queues.probe.verify(queues.arn(QUEUE), "{}") is Probe.ACCEPTED
    assert queues.probe.verify(queues.arn("no-such"), "{}") is Probe.NOT_FOUND
