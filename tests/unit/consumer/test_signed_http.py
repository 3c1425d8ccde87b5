"""Signed HTTP and SQS's protocol, against a server of this process."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.session import Session
from hourbell.consumer import Consumer, Options
from hourbell.consumer.http import Endpoint, SignedTransport
from hourbell.consumer.queue import QueueFault, SqsQueue

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.server import FakeServer, serving
from tests.consumers.worker_plane import CLAIM, LOST_ANSWER


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeServer]:
    with serving() as found:
        yield found


def session_with(region: str | None = "us-east-1") -> Session:
    session = Session()
    session.set_credentials("testing", "testing", "token")
    session.set_config_variable("region", region)
    return session


@pytest.mark.parametrize(
    ("url", "region", "service", "expected"),
    [
        (
            "https://a1.execute-api.eu-west-1.amazonaws.com/prod/",
            None,
            None,
            ("https://a1.execute-api.eu-west-1.amazonaws.com/prod", "eu-west-1"),
        ),
        (
            "https://x.lambda-url.eu-west-1.on.aws",
            None,
            None,
            ("https://x.lambda-url.eu-west-1.on.aws", "eu-west-1", "lambda"),
        ),
        ("http://api.test", "r-1", "lambda", ("http://api.test", "r-1", "lambda")),
        ("http://api.test", "r-1", None, ("http://api.test", "r-1")),
    ],
)
def test_the_host_tells_region_and_service(
    url: str, region: str | None, service: str | None, expected: Any
) -> None:
    assert Endpoint.of(url, region, service) == Endpoint(*expected)


def test_without_a_region_nothing_is_signed() -> None:
    with pytest.raises(ValueError, match="AWS_REGION"):
        Endpoint.of("http://127.0.0.1:1/")


@pytest.mark.parametrize("service", ["execute-api", "lambda"])
def test_a_request_is_signed_for_its_service(fake: FakeServer, service: str) -> None:
    endpoint = Endpoint(fake.url, "us-east-1", service)
    reply = SignedTransport(endpoint, session_with()).post(
        "/v1/occurrences/complete", b'{"items": []}'
    )
    assert reply.status == 200
    assert reply.document == {"results": []}
    assert f"us-east-1/{service}/aws4_request" in fake.scopes


def test_a_connection_that_breaks_is_an_os_error(fake: FakeServer) -> None:
    fake.plane.go_wrong(CLAIM, LOST_ANSWER)
    transport = SignedTransport(Endpoint(fake.url, "us-east-1"), session_with())
    with pytest.raises(OSError, match="onnection"):
        transport.post("/v1/occurrences/claim", b'{"items": []}')


def test_without_credentials_there_is_no_request(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session()
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    with pytest.raises(OSError, match="credentials"):
        SignedTransport(Endpoint(fake.url, "us-east-1"), session).post("/", b"")


def test_a_consumer_connects_to_what_the_environment_names(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    name = occurrence_id(1)
    row = fake.plane.add(name)
    fake.queue.put(body_of(name))
    consumer = Consumer.connect(options=Options(wait_seconds=0))

    @consumer.handler("report")
    def report(*_: Any) -> None:
        consumer.stop()

    assert consumer.run(signals=False) == 0
    assert row.state == "SUCCEEDED"
    assert ":" in row.worker
    assert fake.queue.bodies() == []


def test_a_lambda_connects_without_a_queue(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOURBELL_QUEUE_URL", raising=False)
    consumer = Consumer.connect(api_url=fake.url, session=session_with())
    assert consumer.handle({"Records": []}) == {"batchItemFailures": []}


def test_without_an_api_there_is_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOURBELL_API_URL", raising=False)
    with pytest.raises(ValueError, match="HOURBELL_API_URL"):
        Consumer.connect()


class Client:
    """A client of SQS that notes its calls; what it deletes partly fails."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def receive_message(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        return {}

    def delete_message_batch(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        return {"Failed": [{"Id": "0", "Code": "ReceiptHandleIsInvalid"}]}

    def change_message_visibility_batch(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        return {}


def test_a_queue_is_asked_for_ten_at_most_and_changed_in_tens() -> None:
    client = Client()
    queue = SqsQueue(client, "http://queue")
    assert queue.receive(50, 20) == []
    assert client.calls.pop()["MaxNumberOfMessages"] == 10
    queue.hide([f"r{number}" for number in range(12)], 99_999)
    sizes = [len(call["Entries"]) for call in client.calls]
    assert sizes == [10, 2]
    entry = client.calls[1]["Entries"][1]
    assert entry == {"Id": "1", "ReceiptHandle": "r11", "VisibilityTimeout": 43_200}
    with pytest.raises(QueueFault, match="ReceiptHandleIsInvalid"):
        queue.delete(["r1"])


def test_a_queue_that_cannot_be_reached_is_a_fault(fake: FakeServer) -> None:
    client: Any = session_with().create_client(
        "sqs", region_name="us-east-1", endpoint_url="http://127.0.0.1:9"
    )

    def fail(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:9")

    client.meta.events.register("before-send.sqs", fail)
    queue = SqsQueue(client, "http://127.0.0.1:9/q")
    for call in (
        lambda: queue.receive(1, 0),
        lambda: queue.delete(["r"]),
        lambda: queue.hide(["r"], 1),
    ):
        with pytest.raises(QueueFault):
            call()
