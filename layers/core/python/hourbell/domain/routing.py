"""Which queue an occurrence's message goes to."""

from hourbell.domain.definition import Handler, Routing, Tier
from hourbell.domain.occurrence import Lane


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
