"""How long what is over is kept, and how far back rows are certain to be there."""

from datetime import timedelta
from typing import Final

RETENTION: Final = timedelta(days=15)
"""Terminal rows are kept at least this long."""

REMEMBERED: Final = RETENTION - timedelta(hours=1)
"""Of a time that is not older than this, what ran has its row still.

An occurrence that ends with its send ends up to the horizon before its time, and clocks
differ; both are far less than the hour.
"""

QUEUE_RETENTION: Final = timedelta(days=4)
"""How long delivery queues of ours, shared and dedicated, keep a message."""

LONGEST_QUEUE_RETENTION: Final = timedelta(days=14)
"""How long a queue keeps a message at most: so long an external one may."""
