"""A proxy before the API that loses answers: it is done, and nobody hears of it."""

import http.client
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60.0


class LossyProxy:
    """Forwards requests as they come, and loses the answers to some of each route."""

    def __init__(self, target: str, every: Mapping[str, int]) -> None:
        """Make a proxy.

        Args:
            target: base URL of the API.
            every: last word of a path -> each how manieth answer to it is lost; the
                first one is.
        """
        self._target = urlsplit(target)
        self._every = every
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.url = ""

    def forward(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """Let the API do a request; return its answer, or None when it is lost.

        The name that the client signed for stays in the request.
        """
        connection = http.client.HTTPConnection(self._target.netloc, timeout=SECONDS)
        try:
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            found = (answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()
        word = path.rsplit("/", 1)[-1]
        with self._lock:
            count = self._calls[word]
            self._calls[word] += 1
            if word in self._every and count % self._every[word] == 0:
                self.lost[word] += 1
                return None
        return found


def _handler(proxy: LossyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = proxy.forward(self.path, dict(self.headers.items()), body)
            self.close_connection = True
            if answer is None:
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in headers:
                if name.lower() in {"content-type", "retry-after"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            # Who asked may have been killed meanwhile.
            with suppress(OSError):
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def proxied(target: str, every: Mapping[str, int]) -> Iterator[LossyProxy]:
    """Run a proxy for as long as the block lasts."""
    proxy = LossyProxy(target, every)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    base = urlsplit(target)
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}{base.path}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
