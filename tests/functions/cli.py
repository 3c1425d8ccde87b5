"""The command line's requests, answered by the API's handler in this process."""

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from urllib.parse import parse_qs, urlsplit

import pytest
from hourbell.cli import client

from tests.functions.conftest import Api
from tests.functions.events import ANN, api_event


def answer_commands(
    api: Api, monkeypatch: pytest.MonkeyPatch, who: Callable[[], str] = lambda: ANN
) -> None:
    """Have requests of commands answered by the handler, as signed by somebody."""
    monkeypatch.setenv("HOURBELL_API_URL", "http://127.0.0.1:9/prod")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    def send(
        _self: client.Api,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> client.Answer:
        url = urlsplit(path)
        query = parse_qs(url.query) or None
        event = api_event(
            method, url.path, body, arn=who(), headers=headers, query=query
        )
        with redirect_stdout(io.StringIO()):
            answer = api.send(event)
        return client.Answer(answer.status, answer.text)

    monkeypatch.setattr(client.Api, "send", send)
