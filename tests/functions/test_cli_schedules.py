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

import pytest
from hourbell.cli.schedules import _region_of, app
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
        path = request.path.removeprefix("/prod")
        key = request.headers.get("Idempotency-Key")
        headers = {"Idempotency-Key": key} if key else {}
        event = api_event(request.command, path, body, headers=headers)
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

        do_GET = do_POST = _respond  # noqa: N815 - the server's names

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


def test_an_id_cannot_leave_its_path(gateway: Gateway) -> None:
    result = run("get", "../handlers?x=1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["status"] == 404


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
    assert _region_of(url) == "eu-west-1"
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
