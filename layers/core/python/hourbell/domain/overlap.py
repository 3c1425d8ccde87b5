"""What becomes of occurrences of one schedule that would run at the same time."""

from enum import StrEnum


class Overlap(StrEnum):
    """What becomes of an occurrence that is claimed while another one runs.

    ALLOW: it runs as well. SKIP_IF_RUNNING: it does not run. QUEUE_ONE: it waits until
    the other one is over, unless another one waits already: then it does not run.
    """

    ALLOW = "ALLOW"
    SKIP_IF_RUNNING = "SKIP_IF_RUNNING"
    QUEUE_ONE = "QUEUE_ONE"
