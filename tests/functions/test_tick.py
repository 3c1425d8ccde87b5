"""The tick's handler."""

import json

import pytest
from hourbell import bootstrap
from hourbell.adapters.memory import MemoryWorkQueue
from hourbell.domain.errors import Transient
from hourbell.usecases.ports import GroupWork

from functions.tick.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sample
from tests.unit.usecases.world import START


def test_every_group_is_ordered_once(
    work_queue: MemoryWorkQueue, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert handler(sample("rule"), Context()) == {"groups": 2}
    assert work_queue.messages == [GroupWork(0, START), GroupWork(1, START)]
    assert [line["message"] for line in log.lines] == ["ordered"]
    assert measured(capsys.readouterr().out) == {
        (): {"GroupsOrdered": [2.0], "Ticks": [1.0]}
    }


def test_a_queue_that_fails_makes_the_rule_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full:
        def put(self, _: object) -> None:
            raise Transient

    ports = bootstrap.tick_ports()
    failing = bootstrap.TickPorts(Full(), ports.shard_map, ports.clock)
    monkeypatch.setattr(bootstrap, "tick_ports", lambda: failing)
    with pytest.raises(Transient):
        handler(sample("rule"), Context())


def test_the_answer_is_json() -> None:
    assert json.loads(json.dumps(handler(sample("rule"), Context()))) == {"groups": 2}
