"""The handler of the job worker."""

from typing import Any

import pytest
from hourbell.adapters.messages import decode_job, encode_job
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.job import Job, JobState

from functions.jobs.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sqs_event
from tests.unit.usecases.jobs import begin_create, outcomes, stored
from tests.unit.usecases.world import World


@pytest.fixture
def job(world: World) -> Job:
    world.store.principals["1:user/ann"] = "acme"
    return begin_create(world)


def order(*jobs: Job) -> dict[str, Any]:
    return sqs_event([encode_job(each.job_id) for each in jobs])


def test_the_job_of_a_message_is_done(
    world: World, job: Job, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    assert handler(order(job), Context()) == {"batchItemFailures": []}
    assert stored(world, job).state is JobState.SUCCEEDED
    (line,) = log.lines
    assert (line["job_id"], line["outcomes"]) == (job.job_id, {"CREATED": 3})
    assert measured(capsys.readouterr().out)[()] == {
        "JobsFinished": [1.0],
        "JobsFailed": [0.0],
        "JobItemsDone": [3.0],
        "JobItemsRefused": [0.0],
        "JobItemsBroken": [0.0],
        "JobsInterrupted": [0.0],
    }


def test_a_message_that_comes_twice_is_worked_at_once(
    world: World, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    handler(order(job), Context())
    capsys.readouterr()
    assert handler(order(job), Context()) == {"batchItemFailures": []}
    assert outcomes(world, job) == ["CREATED"] * 3
    metrics = measured(capsys.readouterr().out)[()]
    assert (metrics["JobsFinished"], metrics["JobItemsDone"]) == ([0.0], [0.0])


def test_near_its_limit_the_function_hands_the_job_on(world: World, job: Job) -> None:
    world.job_queue.take()
    # Twenty seconds are kept for the last item: none are left to begin one.
    handler(order(job), Context(remaining_ms=20_000))
    assert outcomes(world, job) == []
    assert world.job_queue.take() == [job.job_id]


def test_what_does_not_answer_is_tried_again(
    world: World, job: Job, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Transient

    monkeypatch.setattr(world.directory, "find_tenant", fail)
    answer = handler(order(job), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert log.lines[-1]["message"] == "a job was interrupted"


def test_an_item_that_breaks_is_told_to_the_log(
    world: World, job: Job, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Permanent("refused by the table")

    monkeypatch.setattr(world.schedules, "create", fail)
    assert handler(order(job), Context()) == {"batchItemFailures": []}
    assert outcomes(world, job) == ["REFUSED"] * 3
    broken = [line for line in log.lines if line["level"] == "ERROR"]
    assert [line["job_id"] for line in broken] == [job.job_id] * 3
    assert "refused by the table" in broken[0]["exception"]


def test_what_never_answers_is_given_up_after_five_tries(
    world: World, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Transient

    world.job_queue.take()
    monkeypatch.setattr(world.schedules, "create", fail)
    event = order(job)
    for tries in range(1, 5):
        event["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(tries)
        answer = handler(event, Context())
        assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
        assert outcomes(world, job) == []
    event["Records"][0]["attributes"]["ApproximateReceiveCount"] = "5"
    assert handler(event, Context()) == {"batchItemFailures": []}
    assert outcomes(world, job) == ["REFUSED"]
    assert world.job_queue.take() == [job.job_id]


@pytest.mark.parametrize(
    "text", ["{}", '{"schema":1,"job_id":7}', '{"schema":1,"job_id":"x"}', "["]
)
def test_a_message_that_names_no_job_is_none(text: str) -> None:
    with pytest.raises(Permanent):
        decode_job(text)
    answer = handler(sqs_event([text]), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
