"""The wall clock of the local stack's own processes."""

import time


def now_seconds() -> float:
    """Return the seconds since the epoch."""
    return time.time()  # noqa: TID251 - these processes are edges, not the product
