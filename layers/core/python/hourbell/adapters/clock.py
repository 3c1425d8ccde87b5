"""The machine's clock: the one place that reads it."""

from datetime import UTC, datetime


class SystemClock:
    """Reads the time from the machine."""

    def now(self) -> datetime:
        """Return the current instant as an aware UTC datetime."""
        return datetime.now(UTC)
