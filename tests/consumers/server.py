"""Both fakes over HTTP, for consumers that are programs of their own.

One address serves the worker routes and, in the JSON protocol of AWS, a queue of SQS.
"""

import hashlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.consumers.memory_queue import MemoryQueue
from tests.consumers.worker_plane import PREFIX, WorkerPlane

REGION = "us-east-1"
POLL_SECONDS = 0.02


class FakeServer:
    """A worker plane and a queue at an address."""

    def __init__(self) -> None:
        self.plane = WorkerPlane(time.monotonic)
        self.queue = MemoryQueue(time.monotonic)
        self.scopes: set[str] = set()
        self.signers: list[tuple[str, str]] = []
        self.url = ""

    @property
    def queue_url(self) -> str:
        return f"{self.url}/000000000000/work"

    def environment(self) -> dict[str, str]:
        """Return what a consumer's process is told."""
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_SQS": self.url,
            "HOURBELL_API_URL": self.url,
            "HOURBELL_QUEUE_URL": self.queue_url,
        }

    def sqs(
        self, action: str, body: dict[str, Any], is_gone: Callable[[], bool]
    ) -> dict[str, Any]:
        """Do what a client of SQS asks, for as long as it is there."""
        if action == "ReceiveMessage":
            return {"Messages": self._receive(body, is_gone)}
        entries = body.get("Entries", [body])
        receipts = [each["ReceiptHandle"] for each in entries]
        if action.startswith("DeleteMessage"):
            self.queue.delete(receipts)
        else:
            assert action.startswith("ChangeMessageVisibility"), action
            self.queue.hide(receipts, entries[0]["VisibilityTimeout"])
        done = [{"Id": each.get("Id", "0")} for each in entries]
        return {"Successful": done, "Failed": []}

    def _receive(
        self, body: dict[str, Any], is_gone: Callable[[], bool]
    ) -> list[dict[str, Any]]:
        end = time.monotonic() + body.get("WaitTimeSeconds", 0)
        # The poll of one that was killed must not take what others wait for.
        while not is_gone():
            self.plane.watch()
            found = self.queue.receive(body.get("MaxNumberOfMessages", 1), 0)
            if found or time.monotonic() >= end:
                return [
                    {
                        "MessageId": each.message_id,
                        "ReceiptHandle": each.receipt,
                        "Body": each.body,
                        "MD5OfBody": hashlib.md5(each.body.encode()).hexdigest(),  # noqa: S324
                    }
                    for each in found
                ]
            time.sleep(POLL_SECONDS)
        return []


def _is_gone(connection: socket.socket) -> bool:
    """Whether who asked has closed its end."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            scope = self.headers["Authorization"].split("Credential=")[1]
            key, _, where = scope.split(",")[0].split("/", 2)
            server.scopes.add(where)
            server.signers.append((key, self.path))
            try:
                if self.path.startswith(PREFIX):
                    reply = server.plane.post(self.path, body)
                    self._answer(reply.status, reply.text, "application/json")
                else:
                    action = self.headers["X-Amz-Target"].split(".")[1]
                    done = server.sqs(
                        action, json.loads(body), lambda: _is_gone(self.connection)
                    )
                    text = json.dumps(done)
                    self._answer(200, text, "application/x-amz-json-1.0")
            except OSError:
                # The answer is lost.
                self.close_connection = True

        def _answer(self, status: int, text: str, kind: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            # Who asked may have been killed meanwhile.
            with suppress(OSError):
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def serving() -> Iterator[FakeServer]:
    """Serve for as long as the block lasts."""
    fake = FakeServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    http.daemon_threads = True
    fake.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        http.shutdown()
        http.server_close()
        thread.join(10)
