"""POST /v1/schedules/{schedule_id}/backfill."""

from typing import Any

import pytest
from hourbell.domain.overlap import Overlap

from tests.functions.conftest import Answer, Api, measured
from tests.functions.schedules import PATH, act, cancel, create

NINE = "2026-03-09T09:00:00Z"
NOON = "2026-03-09T12:00:00Z"


@pytest.fixture
def bell(api: Api) -> Any:
    """An hourly schedule, created at noon."""
    return create(api, expression="0 * * * *")


def fill(api: Api, bell: Any, *, dry_run: str | None = None, **fields: Any) -> Answer:
    body = {"from": NINE, **{name.rstrip("_"): each for name, each in fields.items()}}
    query = {"dry_run": [dry_run]} if dry_run else None
    return api.call("POST", f"{PATH}/{bell['schedule_id']}/backfill", body, query=query)


def test_it_answers_for_each_time(
    api: Api, bell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    answer = fill(api, bell, to="2026-03-09T11:00:00+00:00", per_minute=20)
    assert answer.status == 200
    done = answer.body
    items = done.pop("items")
    assert done == {
        "dry_run": False,
        "to": "2026-03-09T11:00:00Z",
        "created": 2,
        "would_create": 0,
        "existed": 0,
        "skipped": 0,
        "complete": True,
        "next_from": None,
        "pace_from": None,
        "skipped_before": None,
    }
    assert items[1] == {
        "scheduled_for": "2026-03-09T10:00:00Z",
        "occurrence_id": f"{bell['schedule_id']}.v1.20260309T100000Z",
        "outcome": "created",
        "state": "DEFERRED",
        "available_at": "2026-03-09T12:00:03Z",
        "reason": None,
    }
    metrics = measured(capsys.readouterr().out)
    assert sum(each.get("OccurrencesBackfilled", [0])[0] for each in metrics.values())


def test_what_is_left_can_be_gone_on_with(api: Api, bell: Any) -> None:
    first = fill(api, bell, limit=2).body
    assert (first["complete"], first["to"]) == (False, NOON)
    assert first["next_from"] == "2026-03-09T11:00:00Z"
    assert first["pace_from"] == "2026-03-09T12:00:02Z"
    second = fill(
        api,
        bell,
        from_=first["next_from"],
        to=first["to"],
        pace_from=first["pace_from"],
    ).body
    assert second["complete"] is True
    assert [item["available_at"] for item in second["items"]] == [first["pace_from"]]
    again = fill(api, bell).body
    assert (again["created"], again["existed"]) == (0, 3)


def test_a_dry_run_stores_nothing(api: Api, bell: Any) -> None:
    done = fill(api, bell, dry_run="true").body
    assert (done["dry_run"], done["would_create"], done["created"]) == (True, 3, 0)
    assert {item["outcome"] for item in done["items"]} == {"would_create"}
    assert api.world.store.backfills == {}


def test_what_is_too_old_is_summed_up(api: Api, bell: Any) -> None:
    done = fill(api, bell, from_="1970-01-01T00:00:00Z", limit=1).body
    # 14 days and 23 hours before noon of March 9.
    assert done["skipped_before"] == "2026-02-22T13:00:00Z"
    assert done["items"][0]["scheduled_for"] == "2026-02-22T13:00:00Z"


def test_the_reason_and_the_caller_are_kept(api: Api, bell: Any) -> None:
    fill(api, bell, reason="moved house")
    (record, *_) = api.world.store.backfills.values()
    assert record.reason == "moved house"
    assert record.requested_by.endswith(":user/ann")


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"from_": None}, "from", "wrong_type"),
        ({"from_": "2026-03-09T09:00:00"}, "from", "invalid_timestamp"),
        ({"from_": 7}, "from", "wrong_type"),
        ({"from_": "2026-03-09T12:00:01Z"}, "from", "out_of_range"),
        ({"to": "2026-03-09T12:00:01Z"}, "to", "out_of_range"),
        ({"to": NINE}, "from", "reversed_range"),
        ({"limit": 0}, "limit", "out_of_range"),
        ({"limit": 501}, "limit", "out_of_range"),
        ({"per_minute": 0}, "per_minute", "out_of_range"),
        ({"per_minute": 6001}, "per_minute", "out_of_range"),
        ({"pace_from": "2026-03-24T12:00:01Z"}, "pace_from", "out_of_range"),
        ({"overlap": "QUEUE_ONE"}, "overlap", "overlap_needs_tracking"),
        ({"overlap": "SKIP_IF_RUNNING"}, "overlap", "overlap_needs_tracking"),
        ({"overlap": "allow"}, "overlap", "unsupported_value"),
        ({"reason": "x" * 513}, "reason", "too_long"),
        ({"until": NOON}, "until", "unknown_field"),
    ],
)
def test_what_is_wrong_is_named(
    api: Api, bell: Any, fields: dict[str, Any], field: str, code: str
) -> None:
    answer = fill(api, bell, **fields)
    assert answer.status == 400
    assert {name: each["code"] for name, each in answer.findings.items()} == {
        field: code
    }
    assert api.world.store.backfills == {}


def test_null_is_as_if_left_out(api: Api, bell: Any) -> None:
    names = ("to", "limit", "per_minute", "pace_from", "overlap", "reason")
    assert fill(api, bell, **dict.fromkeys(names)).body["created"] == 3
    assert fill(api, bell, overlap="ALLOW").body["existed"] == 3


def test_what_is_tracked_may_have_a_policy_of_its_own(api: Api) -> None:
    bell = create(api, expression="0 * * * *", tracking="TRACKED")
    assert fill(api, bell, overlap="QUEUE_ONE").body["created"] == 3
    rows = [row for row in api.world.rows() if row.backfilled_at is not None]
    assert {row.overlap for row in rows} == {Overlap.QUEUE_ONE}


def test_a_paused_one_is_filled_and_a_canceled_one_not(api: Api, bell: Any) -> None:
    act(api, bell["schedule_id"], "pause")
    assert fill(api, bell).body["items"][0]["occurrence_id"].split(".")[1] == "v2"
    cancel(api, bell["schedule_id"])
    assert fill(api, bell).code == "schedule_canceled"


@pytest.mark.parametrize("body", [None, {}])
def test_where_it_begins_must_be_said(api: Api, bell: Any, body: Any) -> None:
    answer = api.call("POST", f"{PATH}/{bell['schedule_id']}/backfill", body)
    assert answer.status == 400
    assert answer.code in {"missing", "invalid_json"}
