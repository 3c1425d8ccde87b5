"""What handlers raise to say how an attempt failed, and what can go wrong around them.

An exception's class decides what is told to Hourbell: `Permanent` and `Throttled` what
their names say; any other exception is RETRYABLE.
"""


class Permanent(Exception):
    """No further attempt would succeed: the occurrence is DEAD at once."""


class Throttled(Exception):
    """The target asks for patience.

    Attributes:
        retry_after_seconds: for how long, 0 to 86,400; None when it did not say. The
            next attempt comes no earlier, as far as the deadline allows.
    """

    # For subclasses that do not call the constructor.
    retry_after_seconds: float | None = None

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after


class Stopped(Exception):
    """The handler gave up because its context told it to.

    It is an ordinary, retryable failure: after a cancel Hourbell answers it with
    CANCELED, after a stop of this consumer with another attempt.
    """


class UnreadableMessage(Exception):
    """A message is not what schemas/message.json describes; it stays in its queue."""


class NoAnswer(Exception):
    """The API did not answer, or asked to be called again; what it did is unknown.

    Attributes:
        retry_after_seconds: how long it asked to wait; 0 when it did not say.
        is_doubtful: whether what was asked for may have been done all the same.
    """

    is_doubtful = True

    def __init__(self, message: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class HeldOff(NoAnswer):
    """A tenant cannot be signed for, or is refused, and is left alone for a while.

    Attributes:
        tenant: whose messages wait.
        retry_after_seconds: for how long.
        is_doubtful: as of NoAnswer, by a try before this one.
    """

    is_doubtful = False

    def __init__(self, tenant: str, seconds: float, reason: str) -> None:
        super().__init__(f"tenant {tenant!r}: {reason}", retry_after_seconds=seconds)
        self.tenant = tenant


class ApiRefused(Exception):
    """The API refused a whole request, and would do so again.

    Attributes:
        status: of HTTP.
        code: its stable code, such as `forbidden`; empty when it gave none.
        is_doubtful: as of NoAnswer, by a try before this one.
    """

    is_doubtful = False

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"HTTP {status} {code}: {detail}")
        self.status = status
        self.code = code
