"""What the simulation's callers asked for, what they were told, and what was sent."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.rules import Rule, ceil_second


@dataclass(frozen=True)
class Tries:
    """A retry policy, in the model's words.

    Attributes:
        most: attempts in all.
        deadline: seconds from the first attempt on within which others may begin.
        classes: failures of which classes are worth another attempt.
    """

    most: int = 5
    base: int = 10
    cap: int = 900
    deadline: int | None = 86_400
    classes: tuple[str, ...] = ("RETRYABLE", "THROTTLED", "LEASE_EXPIRED")


@dataclass(frozen=True)
class Spec:
    """What a version of a schedule says, in the model's words.

    Attributes:
        policy: SKIP, FIRE_ONCE or CATCH_UP, the last with `limit`.
        payload: the number that its messages carry.
    """

    rule: Rule
    payload: int
    policy: str = "FIRE_ONCE"
    limit: int | None = None
    max_lateness: int | None = None
    window: int = 0
    tracked: bool = False
    handler: str = "ring"
    overlap: str = "ALLOW"
    tries: Tries = Tries()

    def following(self, before: "Spec", now: datetime) -> "Spec":
        """Return this spec with the anchor that an edit of `before` gives its rate."""
        rule, old = self.rule, before.rule
        if rule.kind != "rate":
            return self
        kept = old.kind == "rate" and old.n == rule.n
        anchor = old.anchor if kept else ceil_second(rule.start or now)
        return replace(self, rule=replace(rule, anchor=anchor))


@dataclass
class Call:
    """One call of the API, with all that its caller saw.

    Attributes:
        nows: by the process's clock, when each attempt began.
        answered: true time of the answer; None when there was none.
        refused: code of the error, when that was the answer.
        states: when it was answered, the states of the schedule's rows by id.
        job: the call that made the job of which this is an item.
    """

    number: int
    kind: str
    name: str
    began: datetime
    spec: Spec | None = None
    key: str | None = None
    schedule_id: str | None = None
    nows: list[datetime] = field(default_factory=list)
    answered: datetime | None = None
    refused: str | None = None
    answer: Any = None
    request: Any = None
    states: dict[str, str] = field(default_factory=dict)
    step: int = 0
    job: "Call | None" = None

    @property
    def mark(self) -> str:
        """The reason that it leaves in the version log."""
        return f"call {self.number}"


@dataclass(frozen=True)
class Send:
    """One message that a delivery queue accepted.

    Attributes:
        at: true time; `relay_now` is the relay's clock then.
        task_began: true time at which the relay's task began.
        number: which send of the occurrence the message says it is.
    """

    step: int
    at: datetime
    occurrence_id: str
    queue: str
    delay: int
    relay_now: datetime
    task_began: datetime
    available_at: datetime
    payload: Any
    misfire: bool
    version: int
    schedule_id: str
    time: datetime
    number: int
    tenant: str

    @property
    def visible_at(self) -> datetime:
        """True time from which on it can be received."""
        return self.at + timedelta(seconds=self.delay)


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    step: int
    text: str
    schedule_id: str | None = None


@dataclass
class Log:
    """Everything that the model judges by, besides the store itself.

    Attributes:
        outages: (what, from, to) in true time.
        calm: no fault was injected in the whole run.
    """

    calls: list[Call] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    outages: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    calm: bool = False

    def violate(
        self, invariant: str, step: int, text: str, schedule_id: str | None = None
    ) -> None:
        """Note a violation, once for each text."""
        found = Violation(invariant, step, text, schedule_id)
        if all(each.text != text for each in self.violations):
            self.violations.append(found)
            self.lines.append(f"!! {invariant}: {text}")
