"""Which queue a message, and a dead letter, goes to."""

import pytest
from hourbell.domain.definition import Handler, Routing, Tier
from hourbell.domain.routing import dead_letter_key, dead_letters_beside

BASE = "arn:aws:sqs:eu-central-1:1:hourbell"


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (Handler("acme", "ring"), "premium-dead"),
        (
            Handler("acme", "ring", Routing.DEDICATED, queue_arn=f"{BASE}-tenant-acme"),
            f"{BASE}-tenant-acme-dead",
        ),
        (Handler("acme", "ring", Routing.EXTERNAL, queue_arn="inbox"), None),
        (
            Handler(
                "acme",
                "ring",
                Routing.EXTERNAL,
                queue_arn="inbox",
                dead_letter_queue_arn="letters",
            ),
            "letters",
        ),
    ],
)
def test_a_dead_letter_goes_where_the_handler_is_routed(
    handler: Handler, expected: str | None
) -> None:
    assert dead_letter_key(Tier.PREMIUM, handler) == expected


@pytest.mark.parametrize("readers", ["standard", "tenant-a-1"])
def test_beside_a_dlq_lies_the_dead_letter_queue_of_the_same_readers(
    readers: str,
) -> None:
    assert dead_letters_beside(f"{BASE}-{readers}-dlq") == f"{BASE}-{readers}-dead"
