"""Packed writes of dispatch rows when the service throttles, fails, loses an answer."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.dynamodb import DynamoTimeline
from hourbell.domain.dispatch import DispatchState
from hourbell.usecases.ports import Write

from tests.conformance import samples
from tests.conformance.faults import (
    Reaction,
    Script,
    error,
    scripted_database,
    statements,
    timeout,
)
from tests.conformance.samples import DUE
from tests.conformance.worlds import still_backoff

FAILING: dict[str, Reaction] = {
    "throttled": statements("ThrottlingError", "ThrottlingError"),
    "timeout": timeout,
    "internal": error("InternalServerError", 500),
}


def timeline(script: Script, attempts: int = 3) -> Any:
    return DynamoTimeline(scripted_database(script, still_backoff(attempts=attempts)))


def rows() -> Any:
    every = [samples.dispatch(n) for n in range(2)]
    return [replace(each, state=DispatchState.DONE, expires_at=DUE) for each in every]


def test_each_row_has_its_own_answer() -> None:
    posted = timeline(Script(statements(None, "DuplicateItem"))).post(rows())
    settled = timeline(Script(statements("ConditionalCheckFailed", None)))

    assert posted == [Write.APPLIED, Write.EXISTS]
    assert settled.settle(rows()) == [Write.LOST, Write.APPLIED]


@pytest.mark.parametrize("call", ["post", "settle"])
@pytest.mark.parametrize("fault", FAILING.values(), ids=FAILING.keys())
def test_what_outlasts_the_attempts_is_unknown(call: str, fault: Reaction) -> None:
    script = Script(*[fault] * 3)

    assert getattr(timeline(script), call)(rows()) == [Write.UNKNOWN] * 2
    assert script.left == 0


def test_after_a_lost_answer_a_settled_row_may_be_our_own_doing() -> None:
    again = statements("ConditionalCheckFailed", "ConditionalCheckFailed")

    assert timeline(Script(timeout, again)).settle(rows()) == [Write.UNKNOWN] * 2
