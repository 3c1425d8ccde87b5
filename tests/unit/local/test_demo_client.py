import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hourbell.local import demo_client
from hourbell.local.demo_client import ATTEMPTS, SignedApi
from hourbell.local.errors import LocalStackError
from hourbell.local.state import Credentials

USER = Credentials("AKIAEXAMPLE", "secret", "arn:aws:iam::000000000000:user/demo")


class Api(ThreadingHTTPServer):
    """Answers with what it was told to, then with 201; 0 drops the connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/prod"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        status = self.server.answers.pop(0) if self.server.answers else 201
        if status == 0:
            self.close_connection = True
            return
        answer = json.dumps({"status": status}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(demo_client, "PAUSE_SECONDS", 0)
    api = Api()
    thread = threading.Thread(target=api.serve_forever, args=(0.01,))
    thread.start()
    yield api
    api.shutdown()
    api.server_close()
    thread.join()


def test_a_request_is_signed_for_the_api_and_carries_the_key(server: Api) -> None:
    api = SignedApi(server.url, USER, "us-east-1")

    answer = api.post("/v1/schedules", {"name": "a"}, idempotency_key="key-1")

    assert (answer.status, answer.document) == (201, {"status": 201})
    [(path, headers, body)] = server.requests
    assert path == "/prod/v1/schedules"
    assert json.loads(body) == {"name": "a"}
    assert headers["Idempotency-Key"] == "key-1"
    authorization = headers["Authorization"]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
    assert "/us-east-1/execute-api/aws4_request" in authorization


@pytest.mark.parametrize("fault", [0, 500, 503])
def test_a_fault_of_the_api_is_answered_by_the_same_request(
    server: Api, fault: int
) -> None:
    server.answers = [201, fault, fault]
    api = SignedApi(server.url, USER, "us-east-1")
    api.post("/v1/schedules", {}, idempotency_key="key-0")

    answer = api.post("/v1/schedules", {"name": "a"}, idempotency_key="key-1")

    assert answer.status == 201
    keys = [headers["Idempotency-Key"] for _, headers, _ in server.requests]
    assert keys == ["key-0", "key-1", "key-1", "key-1"]


def test_a_refusal_is_not_repeated(server: Api) -> None:
    server.answers = [400]

    answer = SignedApi(server.url, USER, "us-east-1").post("/v1/schedules", {})

    assert answer.status == 400
    assert len(server.requests) == 1


def test_an_api_that_never_answers_is_told(server: Api) -> None:
    server.answers = [500] * ATTEMPTS

    with pytest.raises(LocalStackError, match="HTTP 500"):
        SignedApi(server.url, USER, "us-east-1").post("/v1/schedules", {})
