"""Queues that are named by their ARNs."""

from typing import Any

import pytest
from hourbell.adapters.sqs import SqsDeliveryQueues, SqsQueueProbe, SqsRegions
from hourbell.domain.errors import Transient
from hourbell.domain.queue_arn import QueueArn
from hourbell.usecases.ports import Entry, Probe, Sent

from tests.conformance.faults import (
    NOWHERE,
    Reaction,
    Script,
    answer,
    error,
    garbage,
    scripted_sqs,
    timeout,
)

FAR = "arn:aws:sqs:eu-west-9:222222222222:inbox"
ACCEPTED = {"Successful": [{"Id": "a", "MessageId": "m", "MD5OfMessageBody": "x"}]}


class Regions:
    """Opens scripted clients, and remembers of which regions."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.opened: list[str] = []

    def open(self, region: str) -> Any:
        self.opened.append(region)
        return scripted_sqs(self.script)


def test_a_queue_of_another_region_has_a_client_of_its_own() -> None:
    regions = Regions(Script(answer(ACCEPTED), answer(ACCEPTED)))
    home = scripted_sqs(Script())
    queues = SqsDeliveryQueues(
        home, {"basic-strict": "http://q"}, SqsRegions(home, regions.open)
    )
    for _ in range(2):
        sent = queues.send(FAR, [Entry("a", "{}", 5, "acme")])
        assert sent == {"a": Sent.ACCEPTED}
    assert regions.opened == ["eu-west-9"]
    urls = {request["QueueUrl"] for request in regions.script.requests}
    assert urls == {f"{NOWHERE}/222222222222/inbox"}


def test_a_queue_of_the_same_region_goes_over_the_same_client() -> None:
    home = scripted_sqs(Script(answer(ACCEPTED)))
    arn = FAR.replace("eu-west-9", home.meta.region_name)
    client, url = SqsRegions(home, Regions(Script()).open).find(QueueArn.parse(arn))
    assert client is home
    assert url == f"{NOWHERE}/222222222222/inbox"


@pytest.mark.parametrize("key", ["gold-strict", f"{FAR}.fifo", "arn:aws:sqs:::"])
def test_a_key_that_names_no_queue_waits(key: str) -> None:
    queues = SqsDeliveryQueues(scripted_sqs(Script()), {})
    assert queues.send(key, [Entry("a", "{}", 0, "acme")]) == {"a": Sent.RETRY}


@pytest.mark.parametrize(
    ("reaction", "said"),
    [
        (answer({"MessageId": "m"}), Probe.ACCEPTED),
        (error("QueueDoesNotExist"), Probe.NOT_FOUND),
        (error("AWS.SimpleQueueService.NonExistentQueue"), Probe.NOT_FOUND),
        (error("InvalidAddress", 404), Probe.NOT_FOUND),
        (error("AccessDeniedException"), Probe.ACCESS_DENIED),
        (error("AccessDenied", 403), Probe.ACCESS_DENIED),
        (error("KmsAccessDenied"), Probe.ACCESS_DENIED),
        (error("UnsupportedOperation"), Probe.REFUSED),
    ],
)
def test_a_probe_tells_what_the_queue_said(reaction: Reaction, said: Probe) -> None:
    regions = Regions(Script(reaction))
    probe = SqsQueueProbe(SqsRegions(open_client=regions.open))
    assert probe.verify(FAR, "{}") is said
    assert regions.script.requests == [
        {"QueueUrl": f"{NOWHERE}/222222222222/inbox", "MessageBody": "{}"}
    ]


@pytest.mark.parametrize(
    "reaction", [error("RequestThrottled"), error("InternalError", 500), timeout]
)
def test_a_queue_that_does_not_answer_is_asked_again(reaction: Reaction) -> None:
    probe = SqsQueueProbe(SqsRegions(open_client=Regions(Script(reaction)).open))
    with pytest.raises(Transient):
        probe.verify(FAR, "{}")


def test_an_answer_that_is_none_is_no_verdict() -> None:
    probe = SqsQueueProbe(SqsRegions(open_client=Regions(Script(garbage)).open))
    with pytest.raises(Transient):
        probe.verify(FAR, "{}")
