"""The tick's handler."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hourbell import bootstrap
from hourbell.adapters.memory import MemoryWorkQueue
from hourbell.domain.errors import Transient
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork

from functions.tick.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sample
from tests.unit.usecases.jobs import begin_create
from tests.unit.usecases.world import MINUTE, START, World


def test_every_group_is_ordered_once(
    work_queue: MemoryWorkQueue, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert handler(sample("rule"), Context()) == {"groups": 2}
    assert work_queue.messages == [GroupWork(0, START), GroupWork(1, START)]
    assert [line["message"] for line in log.lines] == ["ordered"]
    assert measured(capsys.readouterr().out) == {
        (): {
            "GroupsOrdered": [2.0],
            "JobsReminded": [0.0],
            "ShardSettingsIgnored": [0.0],
            "Ticks": [1.0],
        }
    }


def test_a_queue_that_fails_makes_the_rule_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full:
        def put(self, _: object) -> None:
            raise Transient

    ports = bootstrap.tick_ports()
    failing = replace(ports, work_queue=Full())
    monkeypatch.setattr(bootstrap, "tick_ports", lambda: failing)
    with pytest.raises(Transient):
        handler(sample("rule"), Context())


def test_a_job_whose_message_was_lost_is_put_on_its_queue_again(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    world.store.principals["1:user/ann"] = "acme"
    job = begin_create(world)
    world.job_queue.take()
    world.clock.advance(5 * MINUTE)
    assert handler(sample("rule"), Context()) == {"groups": 2}
    assert world.job_queue.take() == [job.job_id]
    told = next(line for line in log.lines if line["level"] == "WARNING")
    assert told["jobs"] == [job.job_id]
    assert measured(capsys.readouterr().out)[()]["JobsReminded"] == [1.0]


def test_a_tick_that_has_no_time_left_leaves_jobs_to_the_next(world: World) -> None:
    world.store.principals["1:user/ann"] = "acme"
    job = begin_create(world)
    world.job_queue.take()
    world.clock.advance(5 * MINUTE)
    handler(sample("rule"), Context(remaining_ms=10_000))
    assert world.job_queue.take() == []
    handler(sample("rule"), Context(remaining_ms=11_000))
    assert world.job_queue.take() == [job.job_id]


@pytest.mark.parametrize("fault", [Transient, OverflowError])
def test_jobs_that_cannot_be_seen_after_stop_no_tick(
    fault: type[Exception],
    world: World,
    work_queue: MemoryWorkQueue,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent:
        def reminders(self, *_: object, **__: object) -> None:
            raise fault

    ports = bootstrap.tick_ports()
    silent: Any = Silent()
    failing = replace(ports, office=replace(ports.office, jobs=silent))
    monkeypatch.setattr(bootstrap, "tick_ports", lambda: failing)
    assert handler(sample("rule"), Context()) == {"groups": 2}
    assert len(work_queue.messages) == 2
    assert [line["level"] for line in log.lines] == ["INFO", "ERROR"]


def test_settings_that_were_changed_later_change_nothing_and_are_told(
    work_queue: MemoryWorkQueue,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler(sample("rule"), Context())
    ports = replace(bootstrap.tick_ports(), initial=ShardMap.constant(64, 8))
    monkeypatch.setattr(bootstrap, "tick_ports", lambda: ports)
    work_queue.messages.clear()
    log.clear()
    capsys.readouterr()
    assert handler(sample("rule"), Context()) == {"groups": 2}
    assert [message.group for message in work_queue.messages] == [0, 1]
    warning, _ = log.lines
    assert (warning["level"], warning["settings"]) == ("WARNING", 64)
    assert (warning["first"], warning["present"]) == (4, 4)
    assert measured(capsys.readouterr().out)[()]["ShardSettingsIgnored"] == [1.0]


def test_the_answer_is_json() -> None:
    assert json.loads(json.dumps(handler(sample("rule"), Context()))) == {"groups": 2}
