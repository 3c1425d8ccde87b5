"""Dispatch rows as items: keys with and without a target, and what is refused."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.packed import settlement
from hourbell.adapters.dynamodb.row_items import decode_dispatch, encode_dispatch
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.errors import Permanent

from tests.conformance import samples

SCHEDULE = samples.schedule_id("one")
DUE = datetime(2026, 3, 10, 1, 2, 3, tzinfo=UTC)
HANDOVER = samples.dispatch()
RELEASE = Dispatch(
    DispatchKind.RELEASE,
    SCHEDULE,
    2,
    "acme",
    DUE,
    samples.SHARD,
    samples.NOW,
    scheduled_for=samples.DUE,
)
OF_A_RUN = replace(RELEASE, run="00c0ffee00c0ffee")
TEMPLATES = layout.DOCUMENT["tables"]["timeline"]["items"]


def sort_of(item: dict[str, Any]) -> str:
    text: str = item[layout.TIMELINE.sort]["S"]
    return text


def test_the_key_of_a_release_is_that_of_the_document() -> None:
    filled = TEMPLATES["release"]["sort"]
    for name, value in (
        ("due", "20260310T010203Z"),
        ("schedule_id", SCHEDULE),
        ("version", "2"),
        ("scheduled_for", "20260309T063000Z"),
    ):
        filled = filled.replace(f"<{name}>", value)

    item = encode_dispatch(RELEASE)

    assert sort_of(item) == filled
    assert item[layout.TIMELINE.partition] == {"S": "20260310T0102Z#0003"}
    assert sort_of(encode_dispatch(OF_A_RUN)) == f"{filled}#r00c0ffee00c0ffee"


@pytest.mark.parametrize("row", [HANDOVER, RELEASE, OF_A_RUN])
def test_each_form_of_the_key_is_read_back(row: Dispatch) -> None:
    assert decode_dispatch(encode_dispatch(row)) == row
    done = replace(row, state=DispatchState.DONE, expires_at=DUE)
    assert decode_dispatch(encode_dispatch(done)) == done


def test_a_handovers_key_of_four_parts_is_read_as_it_always_was() -> None:
    old = f"20260309T063000Z#{SCHEDULE}#v2#handover"
    assert sort_of(encode_dispatch(HANDOVER)) == old

    item = {**encode_dispatch(RELEASE), **encode_dispatch(HANDOVER)}

    assert (decode_dispatch(item).scheduled_for, decode_dispatch(item).run) == (
        None,
        None,
    )


@pytest.mark.parametrize(
    "target",
    [
        "",
        "#",
        "#yesterday",
        "#r00c0ffee00c0ffee",
        "#20260309T063000Z#00c0ffee00c0ffee",
        "#20260309T063000Z#",
        "#20260309T063000Z#r00c0ffee00c0ffee#more",
    ],
)
def test_a_release_without_a_target_that_makes_sense_is_refused(target: str) -> None:
    sort = f"20260310T010203Z#{SCHEDULE}#v2#release{target}"
    item = {**encode_dispatch(RELEASE), layout.TIMELINE.sort: {"S": sort}}

    with pytest.raises(Permanent, match="timeline") as raised:
        decode_dispatch(item)

    assert raised.value.code == "unreadable_item"


def test_rows_of_one_due_second_have_keys_of_their_own() -> None:
    keys = {HANDOVER.key, RELEASE.key, OF_A_RUN.key}
    later = replace(RELEASE, scheduled_for=samples.DUE + samples.MINUTE)
    other = replace(OF_A_RUN, run="f" * 16)

    assert len(keys | {later.key, other.key}) == 5


def test_a_settlement_asks_for_a_pending_dispatch_row_under_the_key() -> None:
    done = replace(RELEASE, state=DispatchState.DONE, expires_at=DUE)

    statement = settlement("a-table", done)

    targets, condition = statement.text.split(" WHERE ")
    assert targets == ('UPDATE "a-table" SET "state" = \'DONE\', "expires_at" = ?')
    assert condition.endswith('"kind" = ? AND "state" = \'PENDING\'')
    assert statement.text.count("?") == len(statement.parameters)
    # 2026-03-10T01:02:03Z.
    assert statement.parameters[0] == {"N": "1773104523"}
    other = settlement("a-table", replace(HANDOVER, expires_at=DUE))
    assert other.text == statement.text
