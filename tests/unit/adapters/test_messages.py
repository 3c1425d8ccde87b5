"""The messages of the internal queues."""

import json

import pytest
from hourbell.adapters.ids import SecretIds
from hourbell.adapters.messages import (
    SCHEMA,
    decode_job,
    decode_keys,
    decode_move,
    decode_work,
    encode_job,
    encode_keys,
    encode_move,
    encode_work,
)
from hourbell.domain.errors import Permanent
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.shard_ports import MoveOrder

from tests.conformance.samples import DUE, NOW, planned


def test_work_reads_as_it_was_written() -> None:
    work = GroupWork(3, DUE)

    assert json.loads(encode_work(work)) == {
        "schema": SCHEMA,
        "group": 3,
        "tick": "2026-03-09T06:30:00Z",
    }
    assert decode_work(encode_work(work)) == work
    assert decode_work(encode_work(GroupWork(0, NOW))) == GroupWork(0, NOW)


def test_keys_read_as_they_were_written() -> None:
    keys = tuple(planned(n).key for n in range(50))

    assert decode_keys(encode_keys(keys)) == keys
    assert len(encode_keys(keys)) < 8 * 1024


def test_an_order_to_move_rows_reads_as_it_was_written() -> None:
    order = MoveOrder(DUE, 3, 63, '{"bucket_shard":{"S":"ü"}}')

    assert json.loads(encode_move(order)) == {
        "schema": SCHEMA,
        "move": {
            "since": "2026-03-09T06:30:00Z",
            "round": 3,
            "segment": 63,
            "after": '{"bucket_shard":{"S":"ü"}}',
        },
    }
    assert decode_move(encode_move(order)) == order
    assert decode_move(encode_move(MoveOrder(DUE))) == MoveOrder(DUE)


def test_orders_of_one_queue_are_told_apart() -> None:
    job_id = f"job{7:026}"

    assert decode_move(encode_job(job_id)) is None
    assert decode_job(encode_job(job_id)) == job_id
    with pytest.raises(Permanent):
        decode_job(encode_move(MoveOrder(DUE)))


def test_the_previous_schema_is_read() -> None:
    members = json.loads(encode_work(GroupWork(3, DUE)))
    members["schema"] = SCHEMA - 1

    assert decode_work(json.dumps(members)) == GroupWork(3, DUE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "{}",
        '{"schema":3,"group":1,"tick":"2026-03-09T06:30:00Z","keys":[]}',
        '{"schema":1}',
        '{"schema":1,"group":"x","tick":"2026-03-09T06:30:00Z","keys":[[1]]}',
        '{"schema":1,"group":1,"tick":"noon","keys":[["a#b","c"]]}',
        '{"schema":1,"group":1,"tick":5,"keys":7}',
        '{"schema":1,"group":1,"tick":"2026-03-09T06:30:00","keys":[[1,2]]}',
    ],
)
def test_another_message_is_refused(text: str) -> None:
    for decode in (decode_work, decode_keys):
        with pytest.raises(Permanent) as raised:
            decode(text)
        assert raised.value.code == "unreadable_message"


def test_ids_from_the_machine_differ_and_have_their_form() -> None:
    ids = SecretIds()

    drawn = {ids.schedule_id() for _ in range(100)}

    assert len(drawn) == 100
    assert all(len(text) == 29 and text.startswith("sch") for text in drawn)
    tokens = {ids.token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(bytes.fromhex(token)) == 16 for token in tokens)
