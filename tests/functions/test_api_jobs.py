"""POST /v1/schedules/batch and the routes of jobs."""

from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.messages import encode_job
from hourbell.domain.errors import Transient
from hourbell.usecases.remind import remind

from functions.jobs.handler import handler
from tests.functions.conftest import Answer, Api
from tests.functions.events import BOB, Context, sqs_event
from tests.functions.schedules import create
from tests.unit.usecases.world import MINUTE

BATCH = "/v1/schedules/batch"
JOBS = "/v1/jobs"
DRY = {"dry_run": ["true"]}
NOBODYS = f"sch{'0' * 26}"


def bell(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "handler": "ring", "expression": "0 9 * * *", **fields}


def batch(api: Api, operation: str, **fields: Any) -> Answer:
    options = {name: fields.pop(name) for name in ("headers", "query", "arn")
               if name in fields}  # fmt: skip
    return api.call("POST", BATCH, {"operation": operation, **fields}, **options)


def work(api: Api) -> None:
    """Let the worker do what was handed to it."""
    bodies = [encode_job(each) for each in api.world.job_queue.take()]
    assert handler(sqs_event(bodies), Context()) == {"batchItemFailures": []}


def ask(api: Api, job_id: str, more: str = "", method: str = "GET", **k: Any) -> Answer:
    resource = f"{JOBS}/{{job_id}}{more}"
    return api.call(
        method,
        f"{JOBS}/{job_id}{more}",
        resource=resource,
        path_parameters={"job_id": job_id},
        **k,
    )


def done(api: Api, answer: Answer) -> Any:
    """Return the results of an accepted job, done."""
    assert answer.status == 202, answer.text
    work(api)
    return ask(api, answer.body["job_id"], "/results").body["results"]


class TestBatch:
    def test_a_job_is_accepted_and_done(self, api: Api) -> None:
        answer = batch(api, "create", schedules=[bell("a"), bell("b")])
        assert answer.status == 202
        job = answer.body
        assert answer.headers["Location"] == f"../jobs/{job['job_id']}"
        assert job == {
            "job_id": job["job_id"],
            "operation": "create",
            "dry_run": False,
            "tag": None,
            "dead_letters": None,
            "reason": None,
            "state": "PENDING",
            "failure": None,
            "progress": {
                "total": 2,
                "done": 0,
                "changed": 0,
                "unchanged": 0,
                "refused": 0,
            },
            "created_at": "2026-03-09T12:00:00Z",
            "created_by": "arn:aws:iam::123456789012:user/ann",
            "updated_at": "2026-03-09T12:00:00Z",
            "finished_at": None,
            "expires_at": "2026-03-24T12:00:00Z",
        }
        work(api)
        after = ask(api, job["job_id"]).body
        assert (after["state"], after["progress"]["changed"]) == ("SUCCEEDED", 2)
        assert after["finished_at"] == "2026-03-09T12:00:00Z"
        results = ask(api, job["job_id"], "/results").body
        assert results["cursor"] is None
        first = results["results"][0]
        assert (first["index"], first["name"]) == (0, "a")
        assert (first["outcome"], first["problem"]) == ("CREATED", None)
        found = api.call("GET", f"/v1/schedules/{first['schedule_id']}").body
        assert found["name"] == "a"

    def test_by_tag_and_back_by_ids(self, api: Api) -> None:
        made = [create(api, name=f"b{n}", tags={"team": "ops"}) for n in range(3)]
        create(api, name="other")
        results = done(api, batch(api, "pause", tag={"team": "ops"}, reason="night"))
        assert {each["name"] for each in results} == {"b0", "b1", "b2"}
        assert {each["outcome"] for each in results} == {"CHANGED"}
        ids = [each["schedule_id"] for each in made]
        results = done(api, batch(api, "resume", schedule_ids=ids))
        assert [each["schedule_id"] for each in results] == ids

    def test_a_refusal_reads_as_the_single_routes(self, api: Api) -> None:
        made = create(api, name="a")
        wanted = [
            bell("a"),
            bell("b", handler="gone", expression="at(2020-01-01T00:00:00)"),
        ]
        single = [api.call("POST", "/v1/schedules", each).body for each in wanted]
        results = done(api, batch(api, "create", schedules=wanted))
        taken, wrong = (each["problem"] for each in results)
        assert taken["members"]["schedule_id"] == made["schedule_id"]
        for problem, alone in zip((taken, wrong), single, strict=True):
            assert (problem["status"], problem["code"]) == (
                alone["status"],
                alone["code"],
            )
            assert problem["errors"] == alone.get("errors", [])
        results = done(api, batch(api, "cancel", schedule_ids=[NOBODYS]))
        assert results[0]["problem"]["code"] == "not_found"

    def test_anothers_schedule_is_refused_as_if_it_were_not_there(
        self, api: Api
    ) -> None:
        theirs = create(api, name="a")["schedule_id"]
        ids = [theirs, NOBODYS]
        answer = batch(api, "cancel", schedule_ids=ids, arn=BOB)
        job_id = answer.body["job_id"]
        work(api)
        first, second = ask(api, job_id, "/results", arn=BOB).body["results"]
        assert first | {"index": 1, "schedule_id": NOBODYS} == second

    def test_a_dry_run_says_what_would_be_done(self, api: Api) -> None:
        made = create(api, name="a")["schedule_id"]
        answer = batch(api, "cancel", schedule_ids=[made], query=DRY)
        assert answer.body["dry_run"] is True
        assert [each["outcome"] for each in done(api, answer)] == ["WOULD_CHANGE"]
        answer = batch(api, "create", schedules=[bell("a"), bell("b")], query=DRY)
        told = [each["outcome"] for each in done(api, answer)]
        assert told == ["WOULD_REFUSE", "WOULD_CREATE"]
        assert api.call("GET", f"/v1/schedules/{made}").body["state"] == "ACTIVE"

    def test_the_same_key_makes_one_job(self, api: Api) -> None:
        key = {"Idempotency-Key": "k"}
        body = {"schedules": [bell("a", tags={"x": "1", "y": "2"})]}
        first = batch(api, "create", headers=key, **body)
        same = {"schedules": [bell("a", tags={"y": "2", "x": "1"}, zone="UTC")]}
        again = batch(api, "create", headers=key, **same)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.body == first.body
        for other in (
            batch(api, "create", headers=key, schedules=[bell("b")]),
            batch(api, "create", headers=key, query=DRY, **body),
        ):
            assert (other.status, other.code) == (409, "idempotency_key_reused")
        assert batch(api, "create", **body).body["job_id"] != first.body["job_id"]

    def test_what_no_worker_can_be_told_of_is_accepted_and_done_later(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: object) -> None:
            raise Transient

        key = {"Idempotency-Key": "k"}
        with monkeypatch.context() as patch:
            patch.setattr(api.world.job_queue, "put", fail)
            accepted = batch(api, "create", schedules=[bell("a")], headers=key)
        assert accepted.status == 202
        api.world.clock.advance(timedelta(minutes=5))
        deadline = api.world.clock.now() + timedelta(minutes=1)
        told = remind(api.world.office, api.world.clock, deadline=deadline).told
        assert told == [accepted.body["job_id"]]
        again = batch(api, "create", schedules=[bell("a")], headers=key)
        assert [each["outcome"] for each in done(api, again)] == ["CREATED"]

    @pytest.mark.parametrize(
        ("body", "place", "code"),
        [
            ({}, "operation", "missing"),
            ({"operation": "run"}, "operation", "unsupported_value"),
            ({"operation": "create"}, "schedules", "missing"),
            ({"operation": "create", "schedules": []}, "schedules", "too_short"),
            (
                {
                    "operation": "create",
                    "schedules": [bell(f"b{n}") for n in range(101)],
                },
                "schedules",
                "too_long",
            ),
            (
                {"operation": "create", "schedules": [bell("a"), bell("a")]},
                "schedules.1.name",
                "repeated_value",
            ),
            (
                {"operation": "create", "schedules": [bell("a") | {"zone": "x"}]},
                "schedules.0.zone",
                "unknown_zone",
            ),
            (
                {"operation": "create", "schedules": [bell("a", zon="UTC")]},
                "schedules.0.zon",
                "unknown_field",
            ),
            (
                {"operation": "create", "schedules": [bell("a")], "reason": "x"},
                "reason",
                "unexpected",
            ),
            (
                {"operation": "create", "schedules": [bell("a")], "tag": {"a": "b"}},
                "tag",
                "unexpected",
            ),
            ({"operation": "pause"}, "schedule_ids", "missing"),
            ({"operation": "pause", "schedule_ids": []}, "schedule_ids", "too_short"),
            (
                {"operation": "pause", "schedule_ids": ["x"]},
                "schedule_ids.0",
                "invalid_value",
            ),
            (
                {"operation": "pause", "schedule_ids": [NOBODYS, NOBODYS]},
                "schedule_ids.1",
                "repeated_value",
            ),
            ({"operation": "pause", "tag": {}}, "tag", "too_short"),
            ({"operation": "pause", "tag": {"aws:x": "y"}}, "tag.aws:x", "reserved"),
            (
                {"operation": "pause", "tag": {str(n): "x" for n in range(11)}},
                "tag",
                "too_long",
            ),
            (
                {"operation": "pause", "tag": {"a": "b"}, "schedule_ids": [NOBODYS]},
                "tag",
                "unexpected",
            ),
            (
                {"operation": "pause", "tag": {"a": "b"}, "schedules": [bell("a")]},
                "schedules",
                "unexpected",
            ),
        ],
    )
    def test_what_does_not_go_together_is_refused_by_field(
        self, api: Api, body: dict[str, Any], place: str, code: str
    ) -> None:
        answer = api.call("POST", BATCH, body)
        assert (answer.status, answer.code) == (400, code)
        assert set(answer.findings) == {place}
        assert "None" not in answer.text
        assert not api.world.store.jobs
        assert api.world.job_queue.take() == []

    def test_an_unknown_field_of_a_schedule_gets_a_suggestion(self, api: Api) -> None:
        answer = batch(api, "create", schedules=[bell("a", expresion="x")])
        finding = answer.findings["schedules.0.expresion"]
        assert finding["suggestion"] == "expression"
        answer = batch(api, "create", schedules=[bell("a", dst={"gab": "SKIP"})])
        assert answer.findings["schedules.0.dst.gab"]["suggestion"] == "gap"


class TestJobs:
    def test_they_are_listed_newest_first(self, api: Api) -> None:
        made = []
        for _ in range(3):
            made.append(batch(api, "pause", tag={"a": "b"}).body["job_id"])
            api.world.clock.advance(MINUTE)
        page = api.call("GET", JOBS, query={"limit": ["2"]}).body
        assert [each["job_id"] for each in page["jobs"]] == made[:0:-1]
        query = {"limit": ["2"], "cursor": [page["cursor"]]}
        rest = api.call("GET", JOBS, query=query).body
        assert [each["job_id"] for each in rest["jobs"]] == made[:1]
        assert rest["cursor"] is None
        assert api.call("GET", JOBS, arn=BOB).body == {"jobs": [], "cursor": None}
        answer = api.call("GET", JOBS, query={"cursor": ["x"]})
        assert answer.code == "invalid_cursor"

    def test_results_by_outcome(self, api: Api) -> None:
        create(api, name="a")
        answer = batch(api, "create", schedules=[bell("a"), bell("b")])
        done(api, answer)
        place = answer.body["job_id"]
        query = {"outcome": ["REFUSED"], "limit": ["1"]}
        page = ask(api, place, "/results", query=query).body
        assert [each["name"] for each in page["results"]] == ["a"]
        query |= {"cursor": [page["cursor"]]}
        page = ask(api, place, "/results", query=query).body
        assert page == {"results": [], "cursor": None}

    def test_one_is_canceled_and_resumed(self, api: Api) -> None:
        job_id = batch(api, "create", schedules=[bell("a")]).body["job_id"]
        stopped = ask(api, job_id, "/cancel", "POST")
        assert (stopped.status, stopped.body["state"]) == (200, "CANCELED")
        work(api)
        assert ask(api, job_id, "/results").body["results"] == []
        resumed = ask(api, job_id, "/resume", "POST")
        assert (resumed.status, resumed.body["state"]) == (200, "PENDING")
        work(api)
        for verb in ("/cancel", "/resume"):
            ended = ask(api, job_id, verb, "POST")
            assert (ended.status, ended.code) == (409, "job_ended")
            assert ended.body["state"] == "SUCCEEDED"

    @pytest.mark.parametrize(
        ("more", "method"),
        [("", "GET"), ("/results", "GET"), ("/cancel", "POST"), ("/resume", "POST")],
    )
    def test_anothers_is_as_if_it_were_not_there(
        self, api: Api, more: str, method: str
    ) -> None:
        job_id = batch(api, "pause", tag={"a": "b"}).body["job_id"]
        for it in (job_id, f"job{'0' * 26}", "x"):
            answer = ask(api, it, more, method, arn=BOB)
            assert (answer.status, answer.code) == (404, "not_found")
            assert (
                answer.body["detail"] == "Nothing with this id belongs to the caller."
            )
