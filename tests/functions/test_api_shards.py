"""The shard count over the API: changed and read by the platform role."""

from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.memory.shards import MemoryMoveQueue
from hourbell.domain.shards import MAX_SHARDS, Phase
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Epochs, MoveOrder, MoveProgress

from tests.functions.conftest import Answer, Api, Log
from tests.functions.test_api_tenants import PLATFORM, call
from tests.unit.usecases.world import START

SHARDS = "/v1/admin/shards"
MINUTE = timedelta(minutes=1)
# The world's clock stands at half past eleven: ten minutes, and one to be whole.
EARLIEST = START + 11 * MINUTE
NOWHERE = {"round": 0, "segments": 4, "done": 0, "moved": 0, "left": 0}


def written(minutes: int) -> str:
    return f"{START + minutes * MINUTE:%Y-%m-%dT%H:%M:%SZ}"


def change(api: Api, **body: Any) -> Answer:
    return call(api, "POST", SHARDS, body)


def show(api: Api) -> Any:
    answer = call(api, "GET", SHARDS)
    assert answer.status == 200, answer.text
    return answer.body


def test_before_the_first_tick_the_settings_are_told(api: Api) -> None:
    assert show(api) == {
        "epochs": [{"since": None, "shards": 4, "groups": 2, "phase": "SETTLED"}],
        "changed_at": written(0),
        "requested_by": None,
        "move": NOWHERE | {"segments": 1},
    }
    assert api.world.store.epochs is None


def test_a_change_is_announced_logged_and_ordered(
    api: Api, log: Log, move_queue: MemoryMoveQueue
) -> None:
    answer = change(api, shards=16)
    assert answer.status == 202
    assert answer.body == {
        "epochs": [
            {"since": None, "shards": 4, "groups": 2, "phase": "SETTLED"},
            {"since": written(11), "shards": 16, "groups": 2, "phase": "ANNOUNCED"},
        ],
        "changed_at": written(0),
        "requested_by": PLATFORM,
        "move": NOWHERE,
    }
    assert show(api) == answer.body
    assert move_queue.orders == [(MoveOrder(EARLIEST), timedelta(0))]
    (line,) = [each for each in log.lines if each["message"] == "shards announced"]
    assert (line["shards"], line["groups"]) == (16, 2)
    assert line["since"].startswith(f"{EARLIEST:%Y-%m-%d}")


def test_groups_and_the_minute_may_be_chosen(api: Api) -> None:
    answer = change(api, shards=64, groups=8, since=written(60))
    assert answer.status == 202
    last = answer.body["epochs"][-1]
    assert (last["shards"], last["groups"], last["since"]) == (64, 8, written(60))
    assert set(api.world.store.groups) == set(range(8))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "shards"),
        ({"shards": 0}, "shards"),
        ({"shards": MAX_SHARDS + 1}, "shards"),
        ({"shards": "16"}, "shards"),
        ({"shards": 1}, "shards"),
        ({"shards": 16, "groups": 1}, "groups"),
        ({"shards": 16, "groups": 17}, "groups"),
        ({"shards": 16, "since": "noon"}, "since"),
        ({"shards": 16, "since": written(10)}, "since"),
        ({"shards": 16, "since": written(30 * 24 * 60 + 1)}, "since"),
        ({"shards": 16, "since": written(20).replace("00Z", "30Z")}, "since"),
        ({"shards": 16, "sinse": written(20)}, "sinse"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    api: Api, move_queue: MemoryMoveQueue, body: dict[str, Any], field: str
) -> None:
    answer = change(api, **body)
    assert (answer.status, set(answer.findings)) == (400, {field})
    assert "to 1." not in answer.findings[field]["message"]
    assert move_queue.orders == []
    assert len(show(api)["epochs"]) == 1


def test_a_refusal_tells_what_would_be_right(api: Api) -> None:
    assert change(api, shards=1).findings["shards"]["message"] == (
        "shards must be 2 to 4096."
    )
    assert change(api, shards=16, groups=1).findings["groups"]["message"] == (
        "groups must be 2 to 16."
    )


def test_one_change_at_a_time(api: Api) -> None:
    unchanged = change(api, shards=4)
    assert (unchanged.status, unchanged.code) == (409, "shards_unchanged")
    change(api, shards=16)
    for body in ({"shards": 64}, {"shards": 16, "groups": 4}):
        answer = change(api, **body)
        assert (answer.status, answer.code) == (409, "resharding_under_way")


def test_the_same_again_is_the_same_however_late(
    api: Api, move_queue: MemoryMoveQueue
) -> None:
    """Also when its minute is too near, or over, to be announced now."""
    body = {"shards": 16, "groups": 4, "since": written(11)}
    first = change(api, **body)
    for wait in (0, 5, 30):
        api.world.clock.advance(wait * MINUTE)
        again = change(api, **body)
        assert (again.status, again.body) == (202, first.body)
    assert move_queue.orders == [(MoveOrder(EARLIEST), timedelta(0))] * 4


def test_whoever_is_second_is_asked_to_come_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(api, "GET", SHARDS)
    monkeypatch.setattr(
        "hourbell.adapters.memory.shards.MemoryEpochBook.store", lambda *_: Write.LOST
    )
    assert change(api, shards=16).status == 503


def test_moving_is_ordered_anew(
    api: Api, move_queue: MemoryMoveQueue, log: Log
) -> None:
    resume = f"{SHARDS}/resume"
    idle = call(api, "POST", resume)
    assert (idle.status, move_queue.orders) == (202, [])
    change(api, shards=16)
    move_queue.orders.clear()
    answer = call(api, "POST", resume)
    assert (answer.status, answer.body) == (202, show(api))
    assert move_queue.orders == [(MoveOrder(EARLIEST), timedelta(0))]
    phases = [
        line["phase"] for line in log.lines if line["message"] == "moving resumed"
    ]
    assert phases == ["SETTLED", "ANNOUNCED"]


def test_a_stored_list_is_told_with_its_progress(api: Api) -> None:
    change(api, shards=16)
    stored = api.world.store.epochs
    assert stored is not None
    progress = MoveProgress(2, 4, frozenset({1, 3}), 70, 6)
    moving = stored.shard_map.with_phase(Phase.MOVING)
    api.world.store.epochs = Epochs(moving, 3, EARLIEST, progress, PLATFORM)
    told = show(api)
    assert told["epochs"][-1]["phase"] == "MOVING"
    assert told["changed_at"] == written(11)
    assert told["move"] == {
        "round": 2,
        "segments": 4,
        "done": 2,
        "moved": 70,
        "left": 6,
    }


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("POST", ""), ("POST", "/resume")]
)
def test_tenants_are_kept_out(api: Api, method: str, path: str) -> None:
    body = {"shards": 16} if (method, path) == ("POST", "") else None
    answer = api.call(method, f"{SHARDS}{path}", body)
    assert (answer.status, answer.code) == (403, "forbidden")
    assert api.world.store.epochs is None
