"""Ports of a simulated process: every call may go wrong, and others act meanwhile."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hourbell.domain.errors import Transient
from hourbell.usecases.ports import Page, Sent, Write

from tests.simulation.log import Send

# Chances per port call, of a seed with all classes at full strength.
CHANCES = {
    "crash before a call": 0.005,
    "crash after a call": 0.006,
    "no answer to a read": 0.007,
    "no answer to a write": 0.04,
    "write takes effect late": 0.05,
    "unclear write without effect": 0.05,
    "unclear write with effect": 0.06,
    "statement takes effect late": 0.06,
    "stale versions": 0.9,
    "stale page": 0.2,
    "item of the release before": 0.05,
    "entry not accepted": 0.28,
    "accepted entry without answer": 0.42,
    "process stalls": 0.005,
    "process frozen until it dies": 0.004,
    "another process acts": 0.06,
    "a caller acts": 0.012,
    # Per message, or what a worker has of one.
    "message duplicated": 0.4,
    "message late": 0.35,
    "message lost for good": 0.18,
    "message never claimed": 0.11,
    "deletion without effect": 0.3,
    "acknowledgement late": 0.1,
    "worker dies": 0.8,
    "worker not heard of": 0.75,
    "lost acknowledgement": 0.25,
    # Per record, message or tick.
    "stream record repeated": 0.4,
    "stream record late": 0.3,
    "stream record lost": 0.25,
    "sweep message lost": 0.35,
    "partial batch": 1.0,
    "job message lost": 0.2,
    "tick missed": 0.25,
    "tick doubled": 0.25,
}
# What strikes by its own calendar.
SUSPENDED = "tenant suspended"
CALENDAR = ("outage of minutes", "outage of a day", SUSPENDED)
PACKED = {"plan", "move", "post", "settle"}
# Transactions that answer as packed writes do.
APART = {"plan_apart", "relocate"}
WRITES = {
    *("create", "relabel", "succeed", "take_over", "complete", "record_run"),
    *("record_backfill", "reopen", "ensure", "acquire", "release", "put"),
    *("park", "put_off", "unpark", "advance", "reserve", "add", "store", "do"),
    "replace_reminder",
}
# How old an eventual read may be: mostly fresh, with a long tail.
LAGS = (5, 20, 60, 150)


class Crash(BaseException):
    """The process ends here."""


class Port:
    """One port of a process."""

    def __init__(self, process: Any, name: str, target: Any) -> None:
        self._process = process
        self._name = name
        self._target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return make_call(self._process, name, method, args, kwargs)

        return call


def make_call(
    process: Any, name: str, method: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Make one port call, with whatever befalls it."""
    world = process.world
    process.enter(name)
    world.reached(name, after=False)
    world.sharding.judge_knowledge(process, name)
    if world.strikes("crash before a call"):
        raise Crash
    answer: Any
    if name in PACKED:
        answer = _packed(process, method, args[0])
    elif name in APART:
        answer = _apart(process, name, method, args)
    elif name == "send":
        answer = _send(process, method, *args)
        if world.strikes("acknowledgement late"):
            # What was sent may be worked on, and fail, meanwhile.
            seconds = world.rng.uniform(3, 40)
            world.others_until(world.now + timedelta(seconds=seconds))
    elif name in WRITES:
        answer = _write(process, name, method, args, kwargs)
    else:
        answer = _read(process, name, method, args, kwargs)
    world.workbook.judge_fresh()
    process.leave(name)
    world.reached(name, after=True)
    if world.strikes("crash after a call"):
        raise Crash
    return answer


def _write(
    process: Any, name: str, method: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    world = process.world
    if world.strikes("write takes effect late"):
        _later(world, lambda: method(*args, **kwargs))
        raise Transient(f"{name}: no answer, and its effect comes later")
    silent = world.strikes("no answer to a write")
    if silent and world.rng.random() < 0.5:
        raise Transient(f"{name}: no answer, no effect")
    answer = method(*args, **kwargs)
    if silent:
        raise Transient(f"{name}: no answer, though it took effect")
    return answer


def _later(world: Any, write: Callable[[], Any]) -> None:
    """Let a request take effect that its sender has given up."""
    wait = timedelta(seconds=world.rng.uniform(0.5, 5))
    world.at(world.now + wait, "late write", write)


def _is_recent(world: Any, at: datetime) -> bool:
    return bool(world.now - at < timedelta(seconds=world.rng.choice(LAGS)))


def _read(
    process: Any, name: str, method: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    world = process.world
    if world.strikes("no answer to a read"):
        raise Transient(f"{name}: no answer")
    answer = method(*args, **kwargs)
    if name == "unfinished":
        return _stale_page(world, answer, {})
    if kwargs.get("consistent", True):
        return answer
    if name == "versions":
        return _stale_versions(world, answer)
    if name == "page":
        return _stale_page(world, answer, world.store.moved_from(*args))
    return answer


def _stale_versions(world: Any, found: dict[Any, Any]) -> dict[Any, Any]:
    told = dict(found)
    for ref in found:
        at, old = world.store.versions.previous[ref]
        if _is_recent(world, at) and world.strikes("stale versions"):
            if old is None:
                del told[ref]
            else:
                told[ref] = old
    return told


def _stale_page(world: Any, page: Page, moved: dict[Any, Any]) -> Page:
    """Return a page as some of its rows were before.

    Args:
        moved: what was moved to another shard, when and what by key.
    """

    def seen(things: Sequence[Any]) -> tuple[Any, ...]:
        told = []
        for thing in things:
            at, old = world.store.previous[thing.key]
            if _is_recent(world, at) and world.strikes("stale page"):
                told.extend([] if old is None else [old])
            else:
                told.append(thing)
        return tuple(told)

    gone = [
        row
        for at, row in moved.values()
        if _is_recent(world, at) and world.strikes("stale page")
    ]
    rows = sorted([*seen(page.rows), *gone], key=lambda row: row.key)
    return Page(tuple(rows), page.after, seen(page.dispatches), page.unreadable)


def _packed(
    process: Any, method: Callable[..., list[Write]], things: Sequence[Any]
) -> list[Write]:
    """Execute statement by statement, in any order, with others in between."""
    keys = [getattr(thing, "row", thing).key for thing in things]
    if len(set(keys)) != len(keys):
        raise ValueError("a row key occurs twice in one call")
    return _executed(process, [partial(method, [thing]) for thing in things])


def _apart(process: Any, name: str, method: Callable[..., Any], args: Any) -> Any:
    """Execute what is a transaction for each row."""
    if name == "plan_apart":
        (answer,) = _executed(process, [lambda: [method(*args)]])
        return answer
    rows, shards = args
    moves = zip(rows, shards, strict=True)
    return _executed(process, [partial(method, [row], [to]) for row, to in moves])


def _executed(
    process: Any, statements: Sequence[Callable[[], list[Write]]]
) -> list[Write]:
    world = process.world
    answers = [Write.UNKNOWN] * len(statements)
    places = list(range(len(statements)))
    world.rng.shuffle(places)
    for count, place in enumerate(places):
        if count:
            process.between()
        if world.strikes("unclear write without effect"):
            continue
        if world.strikes("statement takes effect late"):
            _later(world, statements[place])
            continue
        (answer,) = statements[place]()
        if not world.strikes("unclear write with effect"):
            answers[place] = answer
    return answers


def _send(
    process: Any, method: Callable[..., Any], queue: str, entries: Sequence[Any]
) -> dict[str, Sent]:
    world = process.world
    answers = {}
    for entry in entries:
        if world.strikes("entry not accepted"):
            answers[entry.entry_id] = Sent.RETRY
            continue
        (answer,) = method(queue, [entry]).values()
        if answer is Sent.ACCEPTED and '"died_at"' in entry.body:
            world.workbook.on_letter(json.loads(entry.body)["id"])
        elif answer is Sent.ACCEPTED:
            world.outbox.on_send(told_send(process, queue, entry))
        if world.strikes("accepted entry without answer"):
            answer = Sent.RETRY
        answers[entry.entry_id] = answer
    return answers


def told_send(process: Any, queue: str, entry: Any) -> Send:
    """Return what the model gets to know of an accepted entry, from its body."""
    world, body = process.world, json.loads(entry.body)
    data = body["data"]
    return Send(
        step=world.steps,
        at=world.now,
        occurrence_id=body["id"],
        queue=queue,
        delay=entry.delay_seconds,
        relay_now=process.clock.now(),
        task_began=process.began,
        available_at=datetime.fromisoformat(data["available_at"]),
        payload=data["payload"],
        misfire=data["misfire"],
        version=data["version"],
        schedule_id=data["schedule_id"],
        time=datetime.fromisoformat(body["time"]),
        number=data["send"],
        tenant=data["tenant"],
    )
