"""Clocks that tests and the simulation set."""

from datetime import UTC, datetime, timedelta


class FixedClock:
    """The `Clock` port: stands still until it is moved."""

    def __init__(self, instant: datetime) -> None:
        self.instant = _utc(instant)

    def now(self) -> datetime:
        """Return the instant that it is set to."""
        return self.instant

    def set(self, instant: datetime) -> None:
        """Move to an instant, forwards or backwards."""
        self.instant = _utc(instant)

    def advance(self, duration: timedelta) -> datetime:
        """Move on by a duration, and return the new instant."""
        self.instant += duration
        return self.instant


class SteppedClock(FixedClock):
    """The `Clock` port: moves on by one step with every reading."""

    def __init__(self, instant: datetime, step: timedelta) -> None:
        super().__init__(instant)
        self.step = step

    def now(self) -> datetime:
        """Return the instant, then move on by the step."""
        reading = self.instant
        self.instant += self.step
        return reading


def _utc(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError("an instant needs its zone")
    return instant.astimezone(UTC)
