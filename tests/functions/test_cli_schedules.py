"""`hourbell schedules`, over HTTP to the API's handler."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hourbell.cli.client import region_of
from hourbell.cli.schedules import app
from typer.testing import CliRunner, Result

from tests.functions.conftest import Api
from tests.functions.events import api_event
from tests.unit.usecases.world import MINUTE

BELL = ["create", "--name", "bell", "--expression", "0 9 * * MON", "--handler", "ring"]


@dataclass
class Gateway:
    """An HTTP server in front of the handler."""

    api: Api
    requests: list[dict[str, str]] = field(default_factory=list)
    plain: str | None = None

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, str]:
        self.requests.append(dict(request.headers))
        if self.plain is not None:
            return 502, self.plain
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length).decode() or None
        url = urlsplit(request.path.removeprefix("/prod"))
        passed = ("Content-Type", "Idempotency-Key", "If-Match", "If-None-Match")
        event = api_event(
            request.command,
            url.path,
            body,
            headers={
                name: request.headers[name]
                for name in passed
                if name in request.headers
            },
            query=parse_qs(url.query) or None,
        )
        # The handler prints metrics, which are not the command's output.
        with redirect_stdout(io.StringIO()):
            answer = self.api.send(event)
        return int(answer.status), answer.text


@pytest.fixture
def gateway(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    gateway = Gateway(api)

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            status, text = gateway.answer(self)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        # The server's names.
        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _respond  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/prod/"
    monkeypatch.setenv("HOURBELL_API_URL", url)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    yield gateway
    server.shutdown()
    server.server_close()


def run(*words: str, **kwargs: Any) -> Result:
    return CliRunner().invoke(app, words, **kwargs)


def test_create_sends_every_option_and_signs(gateway: Gateway) -> None:
    result = run(
        *BELL,
        *("--zone", "Europe/Berlin", "--description", "rings", "--payload", '{"n": 1}'),
        *("--tag", "team=ops", "--tag", "empty=", "--start-at", "2026-04-01T00:00:00Z"),
        *("--end-at", "2027-04-01T00:00:00Z", "--max-occurrences", "5"),
        *("--exclude", "2026-12-25", "--exclude", "2026-12-27/2026-12-31"),
        *("--dst-gap", "NEXT_VALID", "--flexible-window-seconds", "60", "--json"),
    )
    assert result.exit_code == 0
    created = json.loads(result.stdout)
    assert {name: created[name] for name in ("zone", "payload", "tags", "exclude")} == {
        "zone": "Europe/Berlin",
        "payload": {"n": 1},
        "tags": {"team": "ops", "empty": ""},
        "exclude": ["2026-12-25", {"from": "2026-12-27", "to": "2026-12-31"}],
    }
    assert created["dst"] == {"gap": "NEXT_VALID", "fold": "FIRST"}
    assert created["max_occurrences"] == 5
    signature = gateway.requests[0]["Authorization"]
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert "/eu-central-1/execute-api/aws4_request" in signature


def test_a_key_creates_once(gateway: Gateway) -> None:
    first, second = (run(*BELL, "--idempotency-key", "k1", "--json") for _ in range(2))
    assert first.stdout == second.stdout
    assert len(gateway.api.world.store.schedules) == 1


def test_a_body_comes_from_a_file_or_from_standard_input(
    gateway: Gateway, tmp_path: Path
) -> None:
    body = {"name": "bell", "expression": "@daily", "handler": "ring"}
    file = tmp_path / "bell.json"
    file.write_text(json.dumps(body))
    named = run("create", "-f", str(file), "--name", "other", "--json")
    assert json.loads(named.stdout)["name"] == "other"
    piped = run("create", "-f", "-", "--json", input=json.dumps(body))
    assert json.loads(piped.stdout)["name"] == "bell"


def test_the_numbers_of_a_payload_arrive_as_they_were_written(gateway: Gateway) -> None:
    payload = '{"pi":3.14159265358979323846264,"n":1.50}'
    result = run(*BELL, "--payload", payload, "--json")
    assert f'"payload":{payload}' in result.stdout


def test_a_payload_that_is_not_json_is_refused(gateway: Gateway) -> None:
    for payload in ("NaN", "[Infinity]", "{"):
        assert run(*BELL, "--payload", payload).exit_code == 2
    assert not gateway.requests


def test_a_payload_comes_from_a_file(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text("[1, 2]")
    result = run(*BELL, "--payload", f"@{file}", "--json")
    assert json.loads(result.stdout)["payload"] == [1, 2]


def test_people_read_what_was_created(gateway: Gateway) -> None:
    result = run(*BELL)
    assert result.exit_code == 0
    for text in ("bell", "0 9 * * MON", "UTC", "ring", "2026-03-16T09:00:00+00:00"):
        assert text in result.stdout


def test_people_read_the_latest_occurrences(gateway: Gateway) -> None:
    world = gateway.api.world
    created = run(
        "create",
        *("--name", "bell", "--expression", "* * * * *", "--handler", "ring", "--json"),
    )
    schedule_id = json.loads(created.stdout)["schedule_id"]
    for _ in range(2):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    result = run("get", schedule_id)
    assert result.exit_code == 0
    assert result.stdout.count("ENQUEUED") == 2
    # The second one was enqueued two minutes ahead.
    assert "-120.000 s" in result.stdout
    assert result.stdout.count("+0.000 s") == 2


def test_a_problem_is_explained_on_standard_error(gateway: Gateway) -> None:
    result = run("create", "--name", "bell", "--expression", "0 9 * *")
    assert result.exit_code == 1
    assert result.stdout == ""
    for text in ("invalid_input", "expression", "handler: This field is required."):
        assert text in result.stderr


def test_a_problem_is_passed_on_as_json(gateway: Gateway) -> None:
    result = run("get", "sch" + "0" * 26, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["code"] == "not_found"


def test_an_answer_that_is_no_problem_is_shown(gateway: Gateway) -> None:
    gateway.plain = "<html>bad gateway</html>"
    result = run("get", "sch" + "0" * 26)
    assert result.exit_code == 1
    assert "HTTP 502: <html>bad gateway</html>" in result.stderr


def test_no_api_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOURBELL_API_URL", raising=False)
    monkeypatch.setenv("HOURBELL_PROJECT", str(tmp_path))
    result = run("get", "sch" + "0" * 26)
    assert result.exit_code == 1
    assert result.stderr.strip() == (
        "HOURBELL_API_URL is not set, and no local stack runs here."
    )


def test_the_local_stack_is_found_by_its_file(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = os.environ["HOURBELL_API_URL"]
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local" / "env").write_text(
        f"HOURBELL_API_URL={url}\nAWS_REGION=us-west-2\n"
        "AWS_ACCESS_KEY_ID=LOCALKEY\nAWS_SECRET_ACCESS_KEY=secret\n"
    )
    monkeypatch.delenv("HOURBELL_API_URL")
    monkeypatch.setenv("HOURBELL_PROJECT", str(tmp_path))
    assert run(*BELL).exit_code == 0
    signature = gateway.requests[0]["Authorization"]
    assert "Credential=LOCALKEY/" in signature
    assert "/us-west-2/" in signature


def test_the_region_can_follow_from_the_url(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://a1b2.execute-api.eu-west-1.amazonaws.com/prod"
    assert region_of(url) == "eu-west-1"
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    result = run(*BELL)
    assert (result.exit_code, result.stderr.strip()) == (1, "AWS_REGION is not set.")


def test_without_credentials_nothing_is_sent(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = run(*BELL)
    assert result.exit_code == 1
    assert "no AWS credentials" in result.stderr
    assert not gateway.requests


def test_an_api_that_is_away_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOURBELL_API_URL", "http://127.0.0.1:9/prod")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    result = run("get", "sch" + "0" * 26)
    assert result.exit_code == 1
    assert result.stderr.startswith("The API did not answer")


@pytest.mark.parametrize(
    "words",
    [
        ["--payload", "{"],
        ["--payload", "@missing.json"],
        ["--tag", "team"],
        ["--file", "missing.json"],
    ],
)
def test_an_option_that_makes_no_sense_is_a_usage_error(
    gateway: Gateway, words: list[str]
) -> None:
    result = run(*BELL, *words)
    assert result.exit_code == 2
    assert not gateway.requests


def test_a_file_must_hold_an_object(gateway: Gateway) -> None:
    assert run("create", "-f", "-", input="[]").exit_code == 2


def created(*words: str) -> Any:
    result = run(*BELL, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def answered(*words: str) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_list_follows_its_pages_and_filters(gateway: Gateway) -> None:
    made = [created("--name", f"bell-{n}", "--tag", f"n={n}") for n in range(3)]
    names = {each["name"] for each in answered("list")["schedules"]}
    assert names == {each["name"] for each in made}
    assert len(answered("list", "--limit", "2")["schedules"]) == 2
    (found,) = answered(
        "list", "--tag", "n:1", "--prefix", "bell", "--state", "ACTIVE"
    )["schedules"]
    assert found["name"] == "bell-1"
    assert answered("list", "--tag", "a b:c d")["schedules"] == []
    people = run("list")
    assert all(each["name"] in people.stdout for each in made)


def test_an_update_changes_what_is_named(gateway: Gateway) -> None:
    made = created("--zone", "Asia/Tokyo", "--tag", "a=b")
    changed = answered(
        *("update", made["schedule_id"], "--expression", "0 8 * * *"),
        *("--tag", "c=d", "--unset", "zone"),
    )
    assert changed["revision"] == 2
    assert changed["expression"] == "0 8 * * *"
    assert (changed["zone"], changed["tags"]) == ("UTC", {"a": "b", "c": "d"})
    assert gateway.requests[-1]["Content-Type"] == "application/merge-patch+json"


def test_the_misfire_policy_is_given_and_shown(gateway: Gateway) -> None:
    words = ("--misfire", "CATCH_UP", "--catch-up-limit", "5", "--max-lateness", "3600")
    made = created(*words)
    policy = {"policy": "CATCH_UP", "limit": 5, "max_lateness_seconds": 3600}
    assert made["misfire"] == policy
    assert "CATCH_UP 5, up to 3600 s late" in run("get", made["schedule_id"]).stdout
    update = ("update", made["schedule_id"])
    longer = answered(*update, "--catch-up-limit", "7")
    assert longer["misfire"] == policy | {"limit": 7}
    usual = answered(*update, "--unset", "misfire")
    assert usual["misfire"]["policy"] == "FIRE_ONCE"
    put = ("put", "bell", "--expression", "@daily", "--handler", "ring")
    skipping = answered(*put, "--misfire", "SKIP")
    assert skipping["misfire"]["policy"] == "SKIP"
    assert "FIRE_ONCE" in run(*put).stdout


def test_an_update_may_name_its_revision(gateway: Gateway) -> None:
    made = created()
    words = ("update", made["schedule_id"], "--zone", "Asia/Tokyo", "--revision", "7")
    result = run(*words)
    assert result.exit_code == 1
    assert "precondition_failed" in result.stderr


def test_an_update_of_nothing_is_a_usage_error(gateway: Gateway) -> None:
    assert run("update", "sch" + "0" * 26).exit_code == 2
    assert not gateway.requests


def test_a_dry_run_shows_what_would_be_done(gateway: Gateway) -> None:
    shown = run(*BELL, "--dry-run")
    assert shown.exit_code == 0
    assert "(not yet)" in shown.stdout
    assert "2026-03-16T09:00:00" in shown.stdout
    assert not gateway.api.world.store.schedules
    made = created()
    refused = run(*BELL, "--dry-run")
    assert "name_taken" in refused.stdout
    words = ("update", made["schedule_id"], "--expression", "0 8 * * *", "--dry-run")
    foreseen = run(*words)
    assert foreseen.exit_code == 0
    assert "would be canceled" in foreseen.stdout
    assert answered("get", made["schedule_id"])["revision"] == 1


def test_put_has_it_so(gateway: Gateway) -> None:
    words = ("put", "bell", "--expression", "@daily", "--handler", "ring")
    first, again = answered(*words), answered(*words)
    assert first["schedule_id"] == again["schedule_id"]
    assert again["revision"] == 1
    only_new = run(*words, "--only-new")
    assert only_new.exit_code == 1
    assert "precondition_failed" in only_new.stderr


def test_pause_resume_and_cancel_say_why(gateway: Gateway) -> None:
    schedule_id = created()["schedule_id"]
    assert answered("pause", schedule_id, "--reason", "moving")["state"] == "PAUSED"
    assert answered("resume", schedule_id)["state"] == "ACTIVE"
    done = answered("cancel", schedule_id, "--reason", "a & b", "--revision", "3")
    assert done["state"] == "CANCELED"
    log = answered("versions", schedule_id)["versions"]
    assert [each["reason"] for each in log] == ["a & b", None, "moving", None]
    assert "CANCELED" in run("versions", schedule_id).stdout
    refused = run("pause", schedule_id)
    assert refused.exit_code == 1
    assert "schedule_canceled" in refused.stderr


def test_run_makes_one_occurrence_for_one_key(gateway: Gateway) -> None:
    schedule_id = created()["schedule_id"]
    words = ("run", schedule_id, "--idempotency-key", "k", "--reason", "audit")
    first, again = answered(*words), answered(*words)
    assert first["occurrence_id"] == again["occurrence_id"]
    shown = "".join(line[15:].strip() for line in run(*words).stdout.splitlines())
    assert first["occurrence_id"] in shown


def test_a_backfill_goes_on_to_the_end_of_the_range(gateway: Gateway) -> None:
    schedule_id = created("--expression", "0 * * * *")["schedule_id"]
    words = ("backfill", schedule_id, "--from", "2026-03-09T06:30:00Z", "--limit", "2")
    foreseen = run(*words, "--dry-run")
    assert foreseen.exit_code == 0
    assert "would create" in foreseen.stdout
    assert "2026-03-09T09:00:00Z" in foreseen.stdout
    whole = answered(
        *words,
        *("--all", "--per-minute", "30", "--to", "2026-03-09T12:00:00Z"),
        *("--reason", "moved"),
    )
    assert (whole["created"], whole["complete"], whole["next_from"]) == (5, True, None)
    assert [each["available_at"] for each in whole["items"]] == [
        f"2026-03-09T12:00:{second:02}Z" for second in (0, 2, 4, 6, 8)
    ]
    shown = run(*words)
    assert "exists" in shown.stdout
    old = run("backfill", schedule_id, "--from", "2026-01-01T00:00:00Z", "--all")
    assert "too old before" in old.stdout


def test_a_backfill_may_have_an_overlap_policy_of_its_own(gateway: Gateway) -> None:
    words = ("--expression", "0 * * * *", "--tracking", "TRACKED")
    schedule_id = created(*words)["schedule_id"]
    begin = ("--from", "2026-03-09T10:30:00Z", "--overlap")
    assert answered("backfill", schedule_id, *begin, "SKIP_IF_RUNNING")["created"] == 1
    refused = run("backfill", schedule_id, *begin, "NONE")
    assert refused.exit_code == 1
    assert "overlap" in refused.stderr


def test_a_backfill_that_is_refused_says_why(gateway: Gateway) -> None:
    schedule_id = created("--expression", "0 * * * *")["schedule_id"]
    words = ("backfill", schedule_id, "--all", "--limit", "1")
    refused = run(*words, "--from", "2026-03-10T00:00:00Z")
    assert refused.exit_code == 1
    assert "from: from must not be after now" in refused.stderr
    nothing = run(*words, "--from", "2026-03-09T11:30:00Z")
    assert nothing.exit_code == 0
    assert "created" in nothing.stdout


def test_what_runs_anyway_is_shown(gateway: Gateway) -> None:
    made = created("--expression", "* * * * *")
    shown = run("pause", made["schedule_id"])
    assert shown.stdout.count("runs anyway") == 3
