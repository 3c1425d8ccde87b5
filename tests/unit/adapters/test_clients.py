"""Settings of the low-level clients, and their endpoints."""

from typing import Any

import pytest
from boto3.session import Session
from hourbell.adapters import sqs
from hourbell.adapters.backoff import Backoff
from hourbell.adapters.chunks import chunks
from hourbell.adapters.dynamodb import TableNames, connect
from hourbell.adapters.dynamodb.client import client_config

TABLES = TableNames.with_prefix("x")


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(
        region_name="eu-central-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def test_the_single_client_never_retries(session: Session) -> None:
    database = connect(TABLES, session=session)

    configs: list[Any] = [
        client.meta.config for client in (database.single, database.client)
    ]
    assert [each.retries["total_max_attempts"] for each in configs] == [1, 3]
    for config in configs:
        assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert database.tables == TABLES


def test_requests_are_not_validated_twice() -> None:
    assert client_config(1).parameter_validation is False  # type: ignore[attr-defined]


def test_the_environment_names_the_endpoint(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:2")

    database = connect(TABLES, session=session)

    assert database.client.meta.endpoint_url == "http://127.0.0.1:1"
    assert database.single.meta.endpoint_url == "http://127.0.0.1:1"
    assert sqs.connect(session=session).meta.endpoint_url == "http://127.0.0.1:2"


def test_an_argument_names_the_endpoint(session: Session) -> None:
    url = "http://127.0.0.1:3"

    database = connect(TABLES, session=session, endpoint_url=url)

    assert database.client.meta.endpoint_url == url
    assert sqs.connect(session=session, endpoint_url=url).meta.endpoint_url == url


def test_chunks_keep_order_and_size() -> None:
    assert [list(part) for part in chunks(range(7), 3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    assert list(chunks([], 3)) == []


def test_an_attempt_that_succeeds_is_the_last_one() -> None:
    pauses: list[float] = []
    backoff = Backoff(sleep=pauses.append, uniform=lambda _low, high: high)

    for attempt in backoff.rounds():
        if attempt == 2:
            break

    assert pauses == [0.05, 0.1]
