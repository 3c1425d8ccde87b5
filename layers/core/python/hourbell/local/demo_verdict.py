"""Judge what arrived against what had to arrive."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hourbell.domain.occurrence import Occurrence
from hourbell.local.demo_consumer import Receipt
from hourbell.local.demo_oracle import FIRST_VERSION, Expected, Forecast

LATE_SECONDS = 5.0
EVENT_TYPE = "com.hourbell.occurrence.due.v1"


@dataclass(frozen=True, slots=True)
class Lags:
    """Percentiles of one lag in seconds, by nearest rank; None without a value."""

    p50: float | None
    p99: float | None
    max: float | None

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Lags":
        """Return the percentiles of some lags."""
        ordered = sorted(seconds)
        if not ordered:
            return cls(None, None, None)
        p50, p99 = (
            ordered[max(0, math.ceil(share * len(ordered)) - 1)]
            for share in (0.50, 0.99)
        )
        return cls(round(p50, 3), round(p99, 3), round(ordered[-1], 3))

    def as_dict(self) -> dict[str, float | None]:
        """Return the members of the summary."""
        return {"p50": self.p50, "p99": self.p99, "max": self.max}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One expected occurrence and what became of it.

    Attributes:
        received_at: its first arrival, by the consumer's clock; None if missing.
        copies: how many messages carried its id.
        row: its timeline row; None when it was not found.
    """

    expected: Expected
    received_at: datetime | None
    copies: int
    row: Occurrence | None

    @property
    def enqueue_lag(self) -> float | None:
        """Seconds from available_at to enqueued_at; negative when ahead."""
        return self._lag(self.row.enqueued_at if self.row else None)

    @property
    def visible_lag(self) -> float | None:
        """Seconds from available_at to visible_at."""
        return self._lag(self.row.visible_at if self.row else None)

    @property
    def received_lag(self) -> float | None:
        """Seconds from available_at to received_at."""
        return self._lag(self.received_at)

    @property
    def is_early(self) -> bool:
        """Whether it was received before available_at."""
        lag = self.received_lag
        return lag is not None and lag < 0

    @property
    def is_late(self) -> bool:
        """Whether it was received more than five seconds after available_at."""
        lag = self.received_lag
        return lag is not None and lag > LATE_SECONDS

    def _lag(self, instant: datetime | None) -> float | None:
        if instant is None:
            return None
        return (instant - self.expected.available_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the demo found.

    Attributes:
        unexpected: ids, or what stands in their place, that nobody ordered.
        faults: messages that are not what their occurrence promises.
    """

    outcomes: tuple[Outcome, ...]
    unexpected: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def delivered(self) -> int:
        """How many expected occurrences arrived."""
        return sum(outcome.copies > 0 for outcome in self.outcomes)

    @property
    def missing(self) -> int:
        """How many expected occurrences did not arrive."""
        return len(self.outcomes) - self.delivered

    @property
    def early(self) -> int:
        """How many arrived before they were available."""
        return sum(outcome.is_early for outcome in self.outcomes)

    @property
    def late(self) -> int:
        """How many arrived more than five seconds late."""
        return sum(outcome.is_late for outcome in self.outcomes)

    @property
    def duplicates(self) -> int:
        """How many messages repeated an id that had arrived."""
        return sum(max(0, outcome.copies - 1) for outcome in self.outcomes)

    @property
    def is_good(self) -> bool:
        """Whether nothing is missing, early, late, unexpected or malformed."""
        bad = self.missing + self.early + self.late
        return not (bad or self.unexpected or self.faults)

    def lags(self, name: str) -> Lags:
        """Return the percentiles of the `enqueue`, `visible` or `received` lag."""
        found = (getattr(outcome, f"{name}_lag") for outcome in self.outcomes)
        return Lags.of(lag for lag in found if lag is not None)

    def as_json(self) -> str:
        """Return the summary, one line."""
        return json.dumps(
            {
                "scheduled": len(self.outcomes),
                "delivered": self.delivered,
                "missing": self.missing,
                "early": self.early,
                "duplicates": self.duplicates,
                "lag_seconds": {
                    name: self.lags(name).as_dict() for name in ("visible", "received")
                },
            }
        )


def judge(
    forecast: Forecast, receipts: Sequence[Receipt], rows: Mapping[str, Occurrence]
) -> Verdict:
    """Compare arrivals with the forecast.

    Args:
        forecast: what must and what may arrive.
        receipts: every message, in the order of arrival.
        rows: timeline rows by occurrence id, for the lags before the queue.
    """
    arrived: dict[str, list[datetime]] = defaultdict(list)
    unexpected: list[str] = []
    faults: list[str] = []
    for receipt in receipts:
        event = _decode(receipt.body)
        occurrence_id = str(event.get("id", f"without id: {receipt.body[:80]}"))
        expected = forecast.expected.get(occurrence_id)
        if expected is not None:
            arrived[occurrence_id].append(receipt.received_at)
            faults += _faults(receipt, event, expected)
        elif occurrence_id not in forecast.tolerated:
            unexpected.append(occurrence_id)
    outcomes = [
        Outcome(
            expected=expected,
            received_at=min(arrived[each]) if each in arrived else None,
            copies=len(arrived.get(each, ())),
            row=rows.get(each),
        )
        for each, expected in forecast.expected.items()
    ]
    outcomes.sort(key=lambda outcome: outcome.expected.scheduled_for)
    return Verdict(tuple(outcomes), tuple(unexpected), tuple(faults))


def arrived_ids(receipts: Iterable[Receipt]) -> set[str]:
    """Return the ids of the messages that are CloudEvents."""
    return {str(_decode(receipt.body).get("id")) for receipt in receipts}


def _decode(body: str) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _faults(receipt: Receipt, event: dict[str, Any], expected: Expected) -> list[str]:
    """Return what is wrong with a message, one line for each member."""
    order = expected.order
    data = event.get("data")
    data = data if isinstance(data, dict) else {}
    wanted = {
        "specversion": ("1.0", event.get("specversion")),
        "type": (EVENT_TYPE, event.get("type")),
        "source is a text": (True, bool(event.get("source"))),
        "datacontenttype": ("application/json", event.get("datacontenttype")),
        "subject": (order.name, event.get("subject")),
        "time": (expected.scheduled_for, _instant(event.get("time"))),
        "data.available_at": (
            expected.available_at,
            _instant(data.get("available_at")),
        ),
        "data.handler": (order.customer.handler, data.get("handler")),
        "data.schedule_id": (expected.schedule_id, data.get("schedule_id")),
        "data.version": (FIRST_VERSION, data.get("version")),
        "data.tenant": (order.customer.tenant_id, data.get("tenant")),
        "data.payload": (order.payload, data.get("payload")),
        "queue": (order.queue, receipt.queue),
        "message group": (order.customer.tenant_id, receipt.group),
    }
    return [
        f"{expected.occurrence_id}: {name} is {found!r}, not {right!r}"
        for name, (right, found) in wanted.items()
        if found != right
    ]


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
