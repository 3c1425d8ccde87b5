"""Test messages in memory."""

from hourbell.usecases.ports import Probe


class MemoryQueueProbe:
    """The `QueueProbe` port.

    Attributes:
        answers: by queue ARN, what the queue says; others do not exist.
        sent: ARN and body of every message that a queue took, in order.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Probe] = {}
        self.sent: list[tuple[str, str]] = []

    def verify(self, queue_arn: str, body: str) -> Probe:
        """Send one message and tell what the queue said."""
        answer = self.answers.get(queue_arn, Probe.NOT_FOUND)
        if answer is Probe.ACCEPTED:
            self.sent.append((queue_arn, body))
        return answer
