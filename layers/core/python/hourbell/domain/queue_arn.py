"""ARNs of SQS queues."""

import re
from dataclasses import dataclass
from typing import Self

from hourbell.domain.errors import InvalidInput

_ARN = re.compile(
    r"arn:(aws(?:-[a-z]+)*):sqs:([a-z]{2}(?:-[a-z]+)+-[0-9]):([0-9]{12}):"
    r"([A-Za-z0-9_-]{1,80}(?:\.fifo)?)"
)


@dataclass(frozen=True, slots=True)
class QueueArn:
    """The parts of a standard queue's ARN."""

    partition: str
    region: str
    account: str
    name: str

    def __str__(self) -> str:
        """Write the ARN."""
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{self.name}"

    @classmethod
    def parse(cls, text: str, *, field: str = "queue_arn") -> Self:
        """Read an ARN.

        Raises:
            InvalidInput: `invalid_queue_arn`: it is none, or a FIFO queue's, which
                knows no delay of a single message.
        """
        match = _ARN.fullmatch(text)
        if match is None:
            message = "Allowed is arn:aws:sqs:<region>:<account>:<queue>."
            raise InvalidInput.of(field, "invalid_queue_arn", message, found=text)
        if text.endswith(".fifo"):
            message = "FIFO queues cannot delay a single message; allowed are standard."
            raise InvalidInput.of(field, "invalid_queue_arn", message, found=text)
        return cls(*match.groups())
