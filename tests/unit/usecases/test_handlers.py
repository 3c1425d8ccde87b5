"""Registering handlers: whose queues, and only those that work."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hourbell.adapters.memory import MemoryDirectory, MemoryStore, SeededIds
from hourbell.adapters.memory.probe import MemoryQueueProbe
from hourbell.domain.definition import Handler, HandlerState, Routing, Tenant, Tier
from hourbell.domain.errors import Conflict, HourbellError, InvalidInput
from hourbell.domain.occurrence import Lane
from hourbell.domain.queue_arn import QueueArn
from hourbell.domain.routing import queue_key
from hourbell.usecases.handlers import (
    HandlerChange,
    QueueOffer,
    Switchboard,
    change_handler,
    register_handler,
    retire_handler,
)
from hourbell.usecases.ports import Probe, Write

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
ACME = Tenant("acme", Tier.STANDARD)
OWN = QueueArn("aws", "eu-central-1", "111111111111", "hourbell")
INBOX = "arn:aws:sqs:us-east-1:222222222222:inbox"


@pytest.fixture
def probe() -> MemoryQueueProbe:
    probe = MemoryQueueProbe()
    probe.answers[INBOX] = Probe.ACCEPTED
    return probe


@pytest.fixture
def board(probe: MemoryQueueProbe) -> Switchboard:
    directory = MemoryDirectory(MemoryStore())
    directory.register_tenant(ACME, ["222222222222:role/job"])
    external = ("arn:aws:sqs:us-east-1:222222222222:in*",)
    offer = QueueOffer(OWN, frozenset({"acme"}), external)
    return Switchboard(directory, probe, SeededIds(), offer)


def wanted(queue_arn: str | None = INBOX) -> Handler:
    return Handler("acme", "bill", Routing.EXTERNAL, queue_arn=queue_arn)


def code_of(board: Switchboard, handler: Handler) -> str:
    with pytest.raises(HourbellError) as caught:
        register_handler(board, ACME, handler, NOW)
    assert board.directory.handler("acme", handler.name) is None
    return caught.value.code


def test_the_queue_of_an_external_handler_is_its_queue_key(
    board: Switchboard,
) -> None:
    stored = register_handler(board, ACME, wanted(), NOW)
    assert board.directory.handler("acme", "bill") == stored
    assert queue_key(Tier.STANDARD, stored, Lane.STRICT) == INBOX


def test_a_dedicated_handler_has_a_queue_for_each_lane(board: Switchboard) -> None:
    asked = Handler("acme", "bill", Routing.DEDICATED)
    stored = register_handler(board, ACME, asked, NOW)
    base = "arn:aws:sqs:eu-central-1:111111111111:hourbell-tenant-acme"
    assert queue_key(Tier.STANDARD, stored, Lane.CATCHUP) == f"{base}-catchup"


@pytest.mark.parametrize(
    ("offer", "code"),
    [
        (QueueOffer(OWN), "not_provisioned"),
        (
            QueueOffer(OWN, external=("arn:aws:sqs:*:333333333333:*",)),
            "not_provisioned",
        ),
        (QueueOffer(), "not_provisioned"),
    ],
)
def test_a_deployment_sends_where_it_was_told_to(
    board: Switchboard, probe: MemoryQueueProbe, offer: QueueOffer, code: str
) -> None:
    assert code_of(replace(board, offer=offer), wanted()) == code
    assert probe.sent == []
    dedicated = Handler("acme", "own", Routing.DEDICATED)
    assert code_of(replace(board, offer=offer), dedicated) == code


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sqs:us-east-1:333333333333:inbox",
        "arn:aws:sqs:eu-central-1:111111111111:hourbell-sweep",
    ],
)
def test_a_pattern_does_not_open_the_queues_of_others(
    board: Switchboard, probe: MemoryQueueProbe, arn: str
) -> None:
    # A tenant of the deployment's own account is no reason to reach its queues.
    board.directory.add_principal("acme", "111111111111:role/job")
    board = replace(board, offer=QueueOffer(OWN, external=("arn:aws:sqs:*",)))
    probe.answers[arn] = Probe.ACCEPTED
    assert code_of(board, wanted(arn)) == "foreign_queue"
    assert probe.sent == []


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (wanted(None), "missing"),
        (wanted("arn:aws:sqs:us-east-1:222222222222:in.fifo"), "invalid_queue_arn"),
        (wanted("arn:aws:sns:us-east-1:222222222222:inbox"), "invalid_queue_arn"),
        (wanted(f"{INBOX}\n"), "invalid_queue_arn"),
        (wanted("arn:aws:sqs:us-east-1:222222222222:in-2"), "queue_not_writable"),
        (replace(wanted(), routing=Routing.SHARED), "unexpected"),
        (replace(wanted(), routing=Routing.DEDICATED), "unexpected"),
    ],
)
def test_a_wrong_queue_is_refused(
    board: Switchboard, handler: Handler, code: str
) -> None:
    assert code_of(board, handler) == code


def test_a_change_of_routing_forgets_the_queue_before(board: Switchboard) -> None:
    register_handler(board, ACME, wanted(), NOW)
    change = HandlerChange(routing=Routing.DEDICATED)
    changed = change_handler(board, ACME, "bill", change, NOW)
    assert changed.queue_arn == f"{OWN}-tenant-acme"
    change = HandlerChange(routing=Routing.EXTERNAL)
    with pytest.raises(InvalidInput) as caught:
        change_handler(board, ACME, "bill", change, NOW)
    assert caught.value.code == "missing"
    assert board.directory.handler("acme", "bill") == changed


def test_a_queue_that_a_dedicated_handler_cannot_have_is_refused_by_its_field(
    board: Switchboard,
) -> None:
    register_handler(board, ACME, Handler("acme", "bill", Routing.DEDICATED), NOW)
    change = HandlerChange(dead_letter_queue_arn=INBOX)
    with pytest.raises(InvalidInput) as caught:
        change_handler(board, ACME, "bill", change, NOW)
    (finding,) = caught.value.findings
    assert (finding.field, finding.code) == ("dead_letter_queue_arn", "unexpected")
    assert finding.found == INBOX


def test_a_retirement_asks_no_queue(
    board: Switchboard, probe: MemoryQueueProbe
) -> None:
    register_handler(board, ACME, wanted(), NOW)
    probe.answers.clear()
    retired = retire_handler(board, ACME, "bill", NOW)
    assert (retired.state, retired.revision) == (HandlerState.RETIRED, 2)
    assert retire_handler(board, ACME, "bill", NOW) == retired


def test_of_two_that_register_one_name_one_is_told(board: Switchboard) -> None:
    class Late(MemoryDirectory):
        def handler(self, tenant_id: str, name: str) -> Handler | None:
            return None

        def register_handler(self, handler: Handler) -> Write:
            return Write.EXISTS

    late = replace(board, directory=Late(MemoryStore()))
    with pytest.raises(Conflict) as caught:
        register_handler(late, ACME, Handler("acme", "bill"), NOW)
    assert caught.value.code == "handler_exists"
