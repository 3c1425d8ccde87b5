"""What the demo must see arrive, computed by plain means of its own.

Nothing here asks the product when or under which id an occurrence is due: a fault of
its time engine, of its ids or of its jitter must not hide itself.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

MINUTE = timedelta(minutes=1)
FIRST_VERSION = 1


class Kind(StrEnum):
    """What sort of schedule the demo made."""

    ONE_TIME = "one-time"
    EVERY_MINUTE = "every minute"
    FLEXIBLE = "flexible"
    BURST = "burst"


@dataclass(frozen=True, slots=True)
class Customer:
    """One of the demo's tenants: its tier and its only handler."""

    tenant_id: str
    tier: str
    handler: str


@dataclass(frozen=True, slots=True)
class Order:
    """One schedule that the demo wants.

    Attributes:
        at: its only time, a whole second; None for the one of every minute.
        window_seconds: over how many seconds it may be spread; 0 for strict ones.
        payload: what the consumer must get back unchanged.
    """

    name: str
    kind: Kind
    customer: Customer
    at: datetime | None
    payload: dict[str, object]
    window_seconds: int = 0

    @property
    def queue(self) -> str:
        """The key of the queue that it must arrive on."""
        lane = "flexible" if self.window_seconds else "strict"
        return f"{self.customer.tier}-{lane}"


@dataclass(frozen=True, slots=True)
class Created:
    """An order that the API accepted.

    Attributes:
        asked_at: when the request was sent, by the demo's clock.
        answered_at: when the answer had come.
    """

    order: Order
    schedule_id: str
    asked_at: datetime
    answered_at: datetime


@dataclass(frozen=True, slots=True)
class Expected:
    """One occurrence, and when it may be received at the earliest."""

    occurrence_id: str
    order: Order
    schedule_id: str
    scheduled_for: datetime
    available_at: datetime


@dataclass(frozen=True, slots=True)
class Forecast:
    """What must arrive, and what else may.

    Attributes:
        expected: occurrences up to the closing instant, by id.
        tolerated: ids of occurrences that are right but not waited for: after the
            closing instant, or due while their schedule was being created.
    """

    expected: dict[str, Expected]
    tolerated: frozenset[str]


def forecast(created: Iterable[Created], closing: datetime) -> Forecast:
    """Return what must arrive with a scheduled_for up to the closing instant."""
    expected: dict[str, Expected] = {}
    tolerated: set[str] = set()
    for each in created:
        for instant in _times(each, until=closing + 10 * MINUTE):
            due = _expect(each, instant)
            if each.answered_at < instant <= closing or each.order.at is not None:
                expected[due.occurrence_id] = due
            else:
                tolerated.add(due.occurrence_id)
    return Forecast(expected, frozenset(tolerated))


def closing_instant(created: Iterable[Created]) -> datetime:
    """Return when everything has come due once.

    That is the last single time with its window, or the first whole minute of the
    schedule of every minute, whichever is later.
    """
    latest = []
    for each in created:
        order = each.order
        start = order.at or _minute_after(each.answered_at)
        latest.append(start + timedelta(seconds=order.window_seconds))
    return max(latest)


def seconds_to_minute(now: datetime) -> float:
    """Return the seconds that are left until the next whole minute."""
    return (_minute_after(now) - now).total_seconds()


def _times(created: Created, until: datetime) -> Iterator[datetime]:
    """Yield the times of a schedule; those of every minute are the whole minutes."""
    if created.order.at is not None:
        yield created.order.at
        return
    instant = _minute_after(created.asked_at)
    while instant <= until:
        yield instant
        instant += MINUTE


def _minute_after(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0) + MINUTE


def _expect(created: Created, scheduled_for: datetime) -> Expected:
    moment = scheduled_for.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    occurrence_id = f"{created.schedule_id}.v{FIRST_VERSION}.{moment}"
    jitter = _jitter(occurrence_id, created.order.window_seconds)
    return Expected(
        occurrence_id=occurrence_id,
        order=created.order,
        schedule_id=created.schedule_id,
        scheduled_for=scheduled_for,
        available_at=scheduled_for + timedelta(seconds=jitter),
    )


def _jitter(occurrence_id: str, window_seconds: int) -> int:
    """Return the documented delay of a flexible occurrence, in seconds."""
    if window_seconds == 0:
        return 0
    digest = hashlib.sha256(occurrence_id.encode("ascii")).hexdigest()
    return int(digest[:16], 16) % window_seconds
