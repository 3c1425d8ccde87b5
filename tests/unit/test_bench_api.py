"""Which routes the bench of the API measures, and which of these a run is about."""

import itertools

import pytest

from devtools.openapi.operations import OPERATIONS
from loadtest.bench._api_routes import BY_NAME, FLOOR, LEFT_OUT, PROBES, chosen
from loadtest.bench._client import Answer
from loadtest.bench.api import LEAST, main, repeat

VERSIONS = "GET /v1/schedules/{schedule_id}/versions"


def test_every_route_is_measured_or_left_out_with_a_reason() -> None:
    # That the operations are the routes that are deployed, test_openapi.py says.
    routes = set(OPERATIONS)
    measured = {each.route for each in PROBES if each.name != FLOOR}
    left_out = {tuple(name.split(" ")) for name in LEFT_OUT}
    assert measured | left_out == routes
    assert not measured & left_out
    assert all(LEFT_OUT.values())


def test_no_name_stands_twice() -> None:
    assert len(BY_NAME) == len(PROBES)


def test_the_floor_comes_first_with_every_number_of_callers() -> None:
    floor = PROBES[0]
    assert floor.name == FLOOR
    assert all(set(each.callers) <= set(floor.callers) for each in PROBES)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["/versions"], [VERSIONS]),
        # The name of one, although it begins others.
        (["GET /v1/schedules"], ["GET /v1/schedules"]),
        (["/versions", "/usage", "usage"], [VERSIONS, "GET /v1/usage"]),
        ([FLOOR], []),
    ],
)
def test_a_text_means_a_name_or_all_that_it_is_a_part_of(
    texts: list[str], names: list[str]
) -> None:
    assert [each.name for each in chosen(texts)] == [FLOOR, *names]


def test_no_text_means_all() -> None:
    assert chosen([]) == PROBES


def test_a_text_that_means_nothing_is_named_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--route", "/usage", "--route", "/nothing"])
    assert "no measured route has '/nothing'" in capsys.readouterr().err


def test_a_few_requests_are_sent_however_short_the_time_is() -> None:
    answers = itertools.repeat(lambda: Answer(201, {}, "{}"))
    assert len(repeat(answers, 0.0)) == LEAST


def test_a_refusal_ends_the_bench_with_what_was_said() -> None:
    answers = itertools.repeat(lambda: Answer(409, {}, '{"code": "job_ended"}'))
    with pytest.raises(RuntimeError, match="job_ended"):
        repeat(answers, 0.0)
