"""Edits, pauses and cancels of a minutely schedule, on the wall clock.

One story of three minutes is told; then log, rows and messages must agree on it.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hourbell.domain.occurrence import Occurrence, State

from loadtest.bench._client import Answer
from tests.e2e.api_world import (
    MINUTELY,
    SCHEDULES,
    YEARLY,
    ApiWorld,
    Inbox,
    Tenant,
    rows_of,
)

# The story itself, and the start of the stack before it.
pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timeout(420)]

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
# Far beyond the horizon: until then nothing is materialized.
LATER = 10 * MINUTE
# How far ahead the latest pass has surely come.
AHEAD = timedelta(seconds=100)
ARRIVAL_SECONDS = 20.0
NEVER = datetime.max.replace(tzinfo=UTC)
KEY = {"Idempotency-Key": "again"}


@dataclass(frozen=True)
class Told:
    """A change and what the API said about it."""

    schedule_id: str
    version: int
    already_dispatched: set[str]


@dataclass
class Story:
    """What was done, and what the log, the timeline and the queue have of it.

    Attributes:
        ids: of the schedules, by what happens to them.
        third: the last minute whose messages are waited for.
        until: the instant up to which rows are judged.
    """

    tenant: Tenant
    ids: dict[str, str] = field(default_factory=dict)
    changes: list[Told] = field(default_factory=list)
    runs: list[Answer] = field(default_factory=list)
    reborn: Answer | None = None
    third: datetime = NEVER
    until: datetime = NEVER
    rows: list[Occurrence] = field(default_factory=list)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    logs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def begin(self, title: str, expression: str = MINUTELY, **fields: Any) -> None:
        answer = self.tenant.create(f"story/{title}", expression, **fields)
        assert answer.status == 201, answer.text
        self.ids[title] = answer.document["schedule_id"]

    def edit(self, title: str, patch: dict[str, Any]) -> None:
        self._note(self.tenant.change(self.ids[title], patch, "*"))

    def act(self, title: str, deed: str) -> None:
        place = f"{SCHEDULES}/{self.ids[title]}/{deed}"
        self._note(self.tenant.send("POST", place, {"reason": "a story"}))

    def cancel(self, title: str) -> None:
        place = f"{SCHEDULES}/{self.ids[title]}"
        self._note(self.tenant.send("DELETE", place))

    def run(self, title: str) -> None:
        place = f"{SCHEDULES}/{self.ids[title]}/run"
        self.runs.append(self.tenant.send("POST", place, None, KEY))

    def _note(self, answer: Answer) -> None:
        assert answer.status == 200, answer.text
        document = answer.document
        dispatched = set(document["already_dispatched"])
        told = Told(document["schedule_id"], document["version"], dispatched)
        self.changes.append(told)

    def standing(self, title: str) -> list[Occurrence]:
        """Return the rows that run or have run, up to `until`."""
        return [
            row
            for row in self.rows
            if row.schedule_id == self.ids[title]
            and row.state is not State.CANCELED
            and row.scheduled_for <= self.until
        ]

    def owned(self, title: str) -> list[str]:
        """Return the ids that the version log gives each minute up to `until`."""
        found = []
        for entry in reversed(self.logs[title]):
            minute = self._first(entry)
            to = entry["effective_to"]
            end = self.until + SECOND if to is None else datetime.fromisoformat(to)
            while entry["state"] == "ACTIVE" and minute <= self.until and minute < end:
                stamp = f"{minute:%Y%m%dT%H%M%SZ}"
                found.append(f"{self.ids[title]}.v{entry['version']}.{stamp}")
                minute += MINUTE
        return found

    def _first(self, entry: dict[str, Any]) -> datetime:
        begin = datetime.fromisoformat(entry["effective_from"])
        start = entry["definition"]["start_at"]
        return ceil_minute(
            max(begin, datetime.fromisoformat(start)) if start else begin
        )


def ceil_minute(instant: datetime) -> datetime:
    floor = instant.replace(second=0, microsecond=0)
    return floor if floor == instant else floor + MINUTE


def wait_until(instant: datetime) -> None:
    while (left := (instant - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left)


@pytest.fixture(scope="module")
def story(api_world: ApiWorld) -> Iterator[Story]:
    stack = api_world.stack
    queue = stack.queue_urls["premium-strict"]
    told = Story(api_world.tenant("teller", tier="premium"))
    with Inbox(stack.operator_session(), queue) as inbox:
        first = begin(told)
        # While the fourth minute is beyond the horizon of any pass.
        wait_until(first - 5 * SECOND)
        told.edit("edited", {"payload": {"edition": 3}})
        told.act("interrupted", "resume")
        wait_until(first + MINUTE + 5 * SECOND)
        told.act("paused", "resume")
        told.third = first + 2 * MINUTE
        wait_until(told.third + 5 * SECOND)
        told.until = datetime.now(UTC) + AHEAD
        told.rows = rows_of(stack, set(told.ids.values()))
        told.logs = {title: log_of(told, title) for title in told.ids}
        wait_for_messages(told, inbox)
    yield told
    for title in told.ids:
        told.tenant.send("DELETE", f"{SCHEDULES}/{told.ids[title]}")


def begin(story: Story) -> datetime:
    """Make the schedules and the first changes; return the first full minute."""
    begun = datetime.now(UTC)
    # All that is done before the first minute must have the time.
    if begun.second > 45:
        wait_until(ceil_minute(begun) + SECOND)
        begun = datetime.now(UTC)
    late = {"start_at": f"{begun + LATER:%Y-%m-%dT%H:%M:%SZ}"}
    story.begin("edited", payload={"edition": 1}, **late)
    story.edit("edited", {"start_at": None, "payload": {"edition": 2}})
    story.begin("handed-over", payload={"edition": 1})
    story.edit("handed-over", {"payload": {"edition": 2}})
    story.begin("paused", **late)
    story.act("paused", "pause")
    story.edit("paused", {"start_at": None})
    story.begin("interrupted")
    story.act("interrupted", "pause")
    story.begin("canceled")
    story.cancel("canceled")
    story.reborn = story.tenant.create("story/canceled", YEARLY)
    story.begin("run", YEARLY)
    story.run("run")
    story.run("run")
    return ceil_minute(begun)


def log_of(story: Story, title: str) -> list[dict[str, Any]]:
    place = f"{SCHEDULES}/{story.ids[title]}/versions"
    versions: list[dict[str, Any]] = story.tenant.send("GET", place).document[
        "versions"
    ]
    return versions


def wait_for_messages(story: Story, inbox: Inbox) -> None:
    """Take what arrives until all has that must; what is missing, the tests tell."""
    deadline = time.monotonic() + ARRIVAL_SECONDS
    while time.monotonic() < deadline:
        story.messages = {title: inbox.of(it) for title, it in story.ids.items()}
        if all(len(story.messages[it]) >= len(due(story, it)) for it in TITLES):
            break
        time.sleep(0.2)
    # Whatever comes twice comes now.
    time.sleep(2)
    story.messages = {title: inbox.of(it) for title, it in story.ids.items()}


def due(story: Story, title: str) -> list[str]:
    """Return the ids of what must have arrived."""
    return [
        row.occurrence_id
        for row in story.standing(title)
        if row.scheduled_for <= story.third
    ]


def minutes_of(rows: list[Occurrence]) -> list[datetime]:
    return [row.scheduled_for for row in rows]


TITLES = ("edited", "handed-over", "paused", "interrupted", "canceled")
each_story = pytest.mark.parametrize("title", TITLES)


@each_story
def test_the_rows_are_those_that_the_version_log_gives(
    story: Story, title: str
) -> None:
    found = [row.occurrence_id for row in story.standing(title)]
    assert sorted(found) == sorted(story.owned(title))
    assert found


@each_story
def test_what_has_arrived_is_what_was_due_each_once(story: Story, title: str) -> None:
    arrived = [
        event["id"]
        for event in story.messages[title]
        if datetime.fromisoformat(event["time"]) <= story.third
    ]
    assert Counter(arrived) == Counter(due(story, title))


@each_story
def test_no_time_has_two_ids(story: Story, title: str) -> None:
    times = Counter(minutes_of(story.standing(title)))
    assert set(times.values()) == {1}


@pytest.mark.parametrize("title", ["edited", "handed-over"])
def test_an_edit_loses_no_minute(story: Story, title: str) -> None:
    times = minutes_of(story.standing(title))
    assert times[0] == story.third - 2 * MINUTE
    steps = {after - before for before, after in pairwise(times)}
    assert steps == {MINUTE}
    assert len(times) >= 4
    assert len({row.version for row in story.standing(title)}) == 2


@pytest.mark.parametrize("title", ["edited", "handed-over"])
def test_each_message_has_its_own_versions_payload(story: Story, title: str) -> None:
    payloads = {
        entry["version"]: entry["definition"]["payload"] for entry in story.logs[title]
    }
    assert story.messages[title]
    for event in story.messages[title]:
        assert event["data"]["payload"] == payloads[event["data"]["version"]]
        assert f".v{event['data']['version']}." in event["id"]


def test_what_is_told_as_dispatched_is_what_stands_after_the_change(
    story: Story,
) -> None:
    titles = {schedule_id: title for title, schedule_id in story.ids.items()}
    for told in story.changes:
        title = titles[told.schedule_id]
        log = {entry["version"]: entry for entry in story.logs[title]}
        changed_at = datetime.fromisoformat(log[told.version]["created_at"])
        standing = {
            row.occurrence_id
            for row in story.standing(title)
            if row.version < told.version and row.scheduled_for > changed_at
        }
        assert told.already_dispatched == standing
    dispatched = {
        titles[told.schedule_id] for told in story.changes if told.already_dispatched
    }
    assert dispatched == {"edited", "handed-over", "interrupted", "canceled"}


def test_paused_minutes_are_silent(story: Story) -> None:
    resumed_at = story.third - MINUTE
    assert minutes_of(story.standing("paused"))[0] == story.third
    times = [
        datetime.fromisoformat(event["time"]) for event in story.messages["paused"]
    ]
    assert times == [story.third]
    paused, *_ = (row for row in story.rows if row.schedule_id == story.ids["paused"])
    assert paused.scheduled_for > resumed_at
    states = [entry["state"] for entry in reversed(story.logs["paused"])]
    assert states == ["ACTIVE", "PAUSED", "PAUSED", "ACTIVE"]


@pytest.mark.parametrize(
    ("title", "reason"),
    [("edited", "SUPERSEDED"), ("paused", "PAUSED"), ("canceled", "CANCELED")],
)
def test_the_cursor_of_an_ended_version_is_canceled_with_the_reason(
    story: Story, title: str, reason: str
) -> None:
    rows = [row for row in story.rows if row.schedule_id == story.ids[title]]
    ended = [row for row in rows if row.version == 1 and row.state is State.CANCELED]
    assert [row.reason for row in ended] == [reason]


def test_a_canceled_schedules_name_is_free(story: Story) -> None:
    assert story.reborn is not None
    assert story.reborn.status == 201, story.reborn.text
    document = story.reborn.document
    assert document["name"] == "story/canceled"
    assert document["schedule_id"] != story.ids["canceled"]


def test_a_run_of_two_calls_with_one_key_arrives_once(story: Story) -> None:
    first, second = story.runs
    assert (first.status, second.status) == (201, 201)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    (event,) = story.messages["run"]
    assert event["id"] == first.document["occurrence_id"]
    assert second.document["occurrence_id"] == event["id"]
