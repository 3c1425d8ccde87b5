"""A lane delivers in order and never stops at a poison record."""

import json
from dataclasses import dataclass, field
from typing import Any

from hourbell.domain.errors import Transient
from hourbell.local.batches import EXPIRED, Batch, Record, Rules, Step
from hourbell.local.lane import Lane
from hourbell.local.pump_config import MappingConfig
from hourbell.local.wire import Invocation

NOW = 1_000.0


def mapping(rules: Rules, batch_size: int = 10) -> MappingConfig:
    return MappingConfig(
        name="StreamToRelay",
        stream_arn="arn:stream",
        function="relay",
        starting_position="TRIM_HORIZON",
        batch_size=batch_size,
        window_seconds=0.0,
        parallelization=1,
        filters=(),
        on_failure="",
        rules=rules,
    )


def record(name: str, created_at: float = NOW) -> Record:
    return Record(name, created_at, json.dumps({"name": name}).encode())


@dataclass
class FakeFunction:
    """Answers as scripted by the names in the event; notes every call."""

    poison: str = ""
    reports: str = ""
    throttled: int = 0
    calls: list[list[str]] = field(default_factory=list)

    def invoke(self, function: str, event: bytes) -> Invocation:
        names = [entry["name"] for entry in json.loads(event)["Records"]]
        self.calls.append(names)
        if self.throttled:
            self.throttled -= 1
            raise Transient("throttled")
        if self.poison in names:
            return Invocation({"errorMessage": "boom"}, error="Unhandled")
        failures = [{"itemIdentifier": name} for name in names if name == self.reports]
        return Invocation({"batchItemFailures": failures})


@dataclass
class FakeSink:
    """Keeps what was settled and what was given up."""

    done: list[str] = field(default_factory=list)
    given_up: list[tuple[str, ...]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def settled(self, records: tuple[Record, ...]) -> None:
        self.done += [each.sequence for each in records]

    def give_up(self, step: Step) -> None:
        self.given_up.append(tuple(each.sequence for each in step.given_up))
        self.conditions.append(step.condition)


def deliver(
    function: FakeFunction, rules: Rules, *names: str, **options: Any
) -> tuple[FakeSink, list[float]]:
    sink = FakeSink()
    pauses: list[float] = []
    config = mapping(rules)
    lane = Lane(config, function, sink, now=lambda: NOW, pause=pauses.append)
    lane.deliver(Batch(tuple(record(name, **options) for name in names)))
    return sink, pauses


def test_a_batch_reaches_the_function_in_one_call() -> None:
    function = FakeFunction()
    sink, _ = deliver(function, Rules(), "a", "b", "c")
    assert function.calls == [["a", "b", "c"]]
    assert sink.done == ["a", "b", "c"]


def test_a_poison_record_is_given_up_alone() -> None:
    function = FakeFunction(poison="c")
    sink, _ = deliver(function, Rules(bisect=True, max_retries=1), "a", "b", "c", "d")
    assert sink.given_up == [("c",)]
    assert sink.done == ["a", "b", "c", "d"]
    assert function.calls.count(["c"]) == 2


def test_a_reported_record_is_retried_with_those_after_it() -> None:
    function = FakeFunction(reports="b")
    rules = Rules(report_item_failures=True, max_retries=1)
    sink, _ = deliver(function, rules, "a", "b", "c")
    assert function.calls == [["a", "b", "c"], ["b", "c"], ["b", "c"]]
    assert sink.done == ["a", "b", "c"]
    assert sink.given_up == [("b", "c")]


def test_throttling_is_waited_out_without_counting() -> None:
    function = FakeFunction(throttled=5)
    sink, pauses = deliver(function, Rules(max_retries=0), "a")
    assert (sink.done, sink.given_up) == (["a"], [])
    assert len([pause for pause in pauses if pause > 0]) == 5


def test_records_that_are_too_old_never_reach_the_function() -> None:
    function = FakeFunction()
    sink, _ = deliver(function, Rules(max_age_seconds=60), "a", created_at=NOW - 61)
    assert function.calls == []
    assert sink.given_up == [("a",)]
    assert sink.conditions == [EXPIRED]


def test_a_batch_is_cut_at_its_size_in_order() -> None:
    function, sink = FakeFunction(), FakeSink()
    lane = Lane(mapping(Rules(), batch_size=2), function, sink)
    for name in ("a", "b", "c"):
        lane.put(record(name))
    assert [each.sequence for each in lane._take()] == ["a", "b"]
    assert [each.sequence for each in lane._take()] == ["c"]


def test_a_batch_is_cut_before_lambda_would_refuse_its_payload() -> None:
    lane = Lane(mapping(Rules()), FakeFunction(), FakeSink())
    for name in ("a", "b", "c"):
        lane.put(Record(name, NOW, b"x" * 3_000_000))
    assert [each.sequence for each in lane._take()] == ["a", "b"]
