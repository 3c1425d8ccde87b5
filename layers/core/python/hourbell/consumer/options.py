"""How a consumer works."""

import os
import socket
from dataclasses import dataclass
from typing import Final

from hourbell.consumer.tenants import CACHED_TENANTS

MAX_WORKER: Final = 128


def worker_name() -> str:
    """Return `<host>:<process id>`, cut to what the API takes."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a consumer works.

    Attributes:
        concurrency: how many handlers run at once, each in a thread.
        lease_seconds: how long after its last sign of life a worker's occurrence is
            given to another, 10 to 43,200. Heartbeats come every third of it.
        wait_seconds: how long a receive waits for the first message, 0 to 20.
        grace_seconds: how long a stopping consumer waits for what runs.
        delete_when_claimed: whether TRACKED messages are deleted before the work
            instead of after it: for work of hours, which then needs no change of
            visibility. Hourbell's lease watch sends the occurrence again either way.
        margin_seconds: how long before the end of a Lambda invocation `handle` answers.
        worker: what this worker calls itself; 1 to 128 characters.
        cached_tenants: for how many tenants credentials are kept at once, those that
            were used last, where each signs for itself.
    """

    concurrency: int = 10
    lease_seconds: int = 60
    wait_seconds: int = 20
    grace_seconds: float = 25.0
    delete_when_claimed: bool = False
    margin_seconds: float = 2.0
    worker: str = ""
    cached_tenants: int = CACHED_TENANTS

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            ValueError: one does not hold; the message names it.
        """
        for name, least, most in (
            ("concurrency", 1, 1_000),
            ("lease_seconds", 10, 43_200),
            ("wait_seconds", 0, 20),
            ("cached_tenants", 1, 1_000_000),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name} is {value}; allowed is {least} to {most}.")
        if len(self.worker) > MAX_WORKER:
            raise ValueError(f"worker is longer than {MAX_WORKER} characters.")
