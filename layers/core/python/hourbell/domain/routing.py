"""Which queue an occurrence's message, and its dead letter, goes to."""

from typing import Final

from hourbell.domain.definition import Handler, Routing, Tier
from hourbell.domain.occurrence import Lane

DEAD_LETTERS: Final = "dead"
"""What names of handlers' dead-letter queues end with, where others have a lane."""


def queue_key(tier: Tier, handler: Handler, lane: Lane) -> str:
    """Return the key by which the relay finds the queue.

    SHARED: `<tier>-<lane>`. DEDICATED: the ARN of the tenant's own queue of that
    lane. EXTERNAL: the ARN that is registered on the handler.
    """
    if handler.routing is Routing.EXTERNAL and handler.queue_arn is not None:
        return handler.queue_arn
    if handler.routing is Routing.DEDICATED and handler.queue_arn is not None:
        return f"{handler.queue_arn}-{lane}"
    return f"{tier}-{lane}"


def is_kept_by_owner(queue: str, lane: Lane | None, handler: Handler | None) -> bool:
    """Whether a queue is an external one, whose owner says how long it keeps messages.

    Args:
        queue: the key by which a message was sent.
        lane: its lane.
        handler: whose message it is, as it is registered by now; None if it is gone.
            What was sent before it was given another queue counts as external.
    """
    if not queue.startswith("arn:"):
        return False
    is_ours = (
        handler is not None
        and handler.routing is Routing.DEDICATED
        and queue == f"{handler.queue_arn}-{lane}"
    )
    return not is_ours


def dead_letter_key(tier: Tier, handler: Handler) -> str | None:
    """Return the key by which a handler's dead-letter queue is found, if it has one.

    SHARED: `<tier>-dead`. DEDICATED: the ARN of the tenant's own. EXTERNAL: the ARN
    that is registered on the handler, or None.
    """
    if handler.routing is Routing.EXTERNAL:
        return handler.dead_letter_queue_arn
    if handler.routing is Routing.DEDICATED and handler.queue_arn is not None:
        return f"{handler.queue_arn}-{DEAD_LETTERS}"
    return f"{tier}-{DEAD_LETTERS}"


def dead_letters_beside(dlq_arn: str) -> str:
    """Return the ARN of the dead-letter queue beside a DLQ of delivery queues.

    Args:
        dlq_arn: of the DLQ of a tier's or a tenant's lanes: `...-dlq`.
    """
    return f"{dlq_arn.removesuffix('-dlq')}-{DEAD_LETTERS}"
