"""What schedules say: policies dealt from decks, so that each value has its turn."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from hourbell.domain.dates import DateRange
from hourbell.domain.definition import Definition, NewSchedule, Tracking
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Retry
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import Fold, Gap

from tests.simulation.log import Spec, Tries
from tests.simulation.rules import DAY, MINUTE, UTC_ZONE, Rule, wall

T = TypeVar("T")
# (length in seconds, up to) of flexible windows: none, short, within SQS's delay or
# just beyond it, and up to a day.
WINDOWS = {"none": (0,), "short": (90, 600), "long": (1500, 3600, 14_400, 86_400)}
HANDLERS = ("ring", "own", "far")
OVERLAPS = ("ALLOW", "SKIP_IF_RUNNING", "QUEUE_ONE")
CLASSES = (
    *(("RETRYABLE", "THROTTLED", "LEASE_EXPIRED"),) * 3,
    ("RETRYABLE", "THROTTLED"),
    ("LEASE_EXPIRED", "THROTTLED"),
)
MOST_CLASSES = 3


class Deck:
    """Deals values in random order, each as often as the others."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left: dict[str, list[Any]] = {}

    def draw(self, name: str, values: Sequence[T]) -> T:
        """Return the next of these values; a value may be named several times."""
        left = self._left.setdefault(name, [])
        if not left:
            left += self._rng.sample(list(values), len(values))
        drawn: T = left.pop()
        return drawn


class Specs:
    """Makes up specs."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.rng = world.rng
        self.deck = Deck(world.rng)

    def new(self, number: int) -> Spec:
        """Return the spec of a new schedule; its messages carry `number`."""
        deck, rng = self.deck, self.rng
        policy = deck.draw(
            "misfire", ("SKIP", "FIRE_ONCE", *("CATCH_UP",) * 2, "SKIP", "FIRE_ONCE")
        )
        late = deck.draw("lateness", (None, None, 120, 600, 1800, None))
        window = deck.draw("window", ("none", "none", "none", "short", "long"))
        spec = Spec(
            self._rule(),
            number,
            policy,
            rng.choice((1, 3, 20, 80)) if policy == "CATCH_UP" else None,
            late,
            rng.choice(WINDOWS[window]),
            deck.draw("tracking", (False, True)),
            deck.draw("handler", ("ring", "ring", "own", "far")),
        )
        return self._worked(spec) if spec.tracked else spec

    def _worked(self, spec: Spec) -> Spec:
        """Return a spec whose consumers report back."""
        deck, rng = self.deck, self.rng
        if spec.rule.kind in {"every", "rate"}:
            # Often, so that they meet.
            frequent = replace(spec.rule, n=rng.choice((1, 1, 2)))
            spec = replace(spec, rule=frequent)
        base = rng.choice((1, 5, 20))
        return replace(
            spec,
            overlap=deck.draw("overlap", OVERLAPS),
            tries=Tries(
                deck.draw("attempts", (1, 2, 3, 4)),
                base,
                base * rng.choice((1, 4, 16)),
                deck.draw("deadline", (60, 120, 300, 900, None)),
                deck.draw("classes", CLASSES),
            ),
        )

    def edited(self, before: Spec, number: int) -> Spec:
        """Return what an edit makes of a spec."""
        after = replace(self.new(number), tracked=before.tracked)
        after = replace(after, overlap="ALLOW", tries=Tries())
        if after.tracked:
            after = self._worked(after)
        if self.rng.random() < 0.3:
            return replace(before, payload=number)
        if before.rule.most is not None or after.rule.most is not None:
            kept = before.rule.most if after.rule.kind != "once" else None
            after = replace(after, rule=replace(after.rule, most=kept))
        return after

    def _rule(self) -> Rule:
        rng, now = self.rng, self.world.now
        kind = self.deck.draw(
            "kind", ("every", "every", "every", "hourly", "daily", "once", "rate")
        )
        zone = self.deck.draw("zone", (UTC_ZONE, self.world.zone, self.world.zone))
        near = now + rng.uniform(0.5, 60) * MINUTE
        local = wall(zone, near.replace(second=0, microsecond=0))
        if self.deck.draw("missing", (False, False, True)):
            local = self._missing(zone, near) or local
        base = self._bounded(kind, zone)
        minutes = {"every": (1, 1, 2, 3, 5, 10, 15), "rate": (1, 2, 7, 30)}
        if kind in minutes:
            return replace(base, n=rng.choice(minutes[kind]))
        if kind == "once":
            return replace(
                base, once=local, end=None, most=None, exclude=(), start=None
            )
        return replace(base, n=local.minute, hour=local.hour)

    def _missing(self, zone: str, near: datetime) -> datetime | None:
        """Return a local time that clocks are about to jump over or show twice."""
        change: datetime | None = self.world.change
        if change is None or zone == UTC_ZONE or not near < change + 30 * MINUTE:
            return None
        local = wall(zone, change - MINUTE) + MINUTE
        missing: datetime = local + self.rng.randrange(30) * MINUTE
        return missing

    def _bounded(self, kind: str, zone: str) -> Rule:
        """Return a rule of a zone with bounds, and without times of its own."""
        deck, rng = self.deck, self.rng
        now = self.world.now.replace(second=0, microsecond=0)
        start = end = most = None
        exclude: tuple[Any, ...] = ()
        bound = deck.draw("bound", ("start", "end", "most", "exclude", *("none",) * 6))
        if bound == "start":
            start = now + rng.randrange(1, 30) * MINUTE
        elif bound == "end":
            end = now + rng.randrange(4, 90) * MINUTE
        elif bound == "most":
            most = rng.choice((1, 3, 12))
        elif bound == "exclude":
            today = wall(zone, now).date()
            first = today + rng.choice((-1, -1, 0, 1, 1)) * DAY
            exclude = ((first, first + rng.choice((0, 0, 2)) * DAY),)
            if first < today:
                exclude = ((first, first), (today + DAY, today + DAY))
        return Rule(
            kind,
            zone=zone,
            start=start,
            end=end,
            most=most,
            gap=deck.draw("gap", ("SKIP", "NEXT_VALID")),
            fold=deck.draw("fold", ("FIRST", "SECOND", "BOTH")),
            exclude=exclude,
            aws=deck.draw("form", (False, True)),
        )


def definition_of(spec: Spec) -> Definition:
    """Return a spec in the product's words."""
    rule = spec.rule
    timing = Timing(
        rule.expression,
        rule.zone,
        Gap(rule.gap),
        Fold(rule.fold),
        rule.start,
        rule.end,
        rule.most,
        tuple(DateRange(first, last) for first, last in rule.exclude),
    )
    misfire = Misfire(MisfirePolicy(spec.policy), spec.limit, spec.max_lateness)
    tracking = Tracking.TRACKED if spec.tracked else Tracking.UNTRACKED
    payload = f'{{"n":{spec.payload}}}'
    tries = spec.tries
    retry = Retry(
        tries.most,
        tries.base,
        tries.cap,
        tries.deadline,
        tuple(map(ErrorClass, tries.classes)),
    )
    return Definition(
        timing,
        spec.handler,
        payload,
        tracking,
        spec.window,
        misfire,
        Overlap(spec.overlap),
        retry,
    )


def request_of(spec: Spec, name: str, number: int, key: str | None) -> NewSchedule:
    """Return the request that creates a schedule of a spec."""
    definition = definition_of(spec)
    return NewSchedule(
        name,
        definition.timing,
        definition.handler,
        f"body-{number}",
        definition.payload_json,
        definition.tracking,
        definition.flexible_window_seconds,
        definition.misfire,
        idempotency_key=key,
        overlap=definition.overlap,
        retry=definition.retry,
    )


def length_of(window: int) -> str:
    """Return which kind of flexible window a length is."""
    return next(name for name, lengths in WINDOWS.items() if window in lengths)


def values_of(spec: Spec) -> set[str]:
    """Return the policy values that a spec has, as reports name them."""
    rule = spec.rule
    bounds = {
        "start_at": rule.start,
        "end_at": rule.end,
        "max_occurrences": rule.most,
        "exclude": rule.exclude or None,
    }
    found = {
        f"misfire {spec.policy}",
        f"max_lateness {'none' if spec.max_lateness is None else 'set'}",
        f"flexible window {length_of(spec.window)}",
        f"tracking {'TRACKED' if spec.tracked else 'UNTRACKED'}",
        f"routing {ROUTES[spec.handler]}",
        f"timing {'one-time' if rule.kind == 'once' else FORMS[rule.kind, rule.aws]}",
        *(f"{name} set" for name, value in bounds.items() if value is not None),
    }
    if spec.tracked:
        tries = spec.tries
        deadline = "none" if tries.deadline is None else "set"
        found |= {
            f"overlap {spec.overlap}",
            f"attempts {tries.most}",
            f"deadline {deadline}",
            f"retryable {'some' if len(tries.classes) < MOST_CLASSES else 'all'}",
        }
    if rule.kind != "rate":
        found |= {f"dst.gap {rule.gap}", f"dst.fold {rule.fold}"}
    return found


ROUTES = {"ring": "shared", "own": "dedicated", "far": "external"}
FORMS = {
    **{(kind, False): "Unix cron" for kind in ("every", "hourly", "daily")},
    **{(kind, True): "AWS cron" for kind in ("every", "hourly", "daily")},
    ("rate", False): "rate",
    ("rate", True): "rate",
}
POLICY_VALUES = (
    *(f"misfire {each}" for each in ("SKIP", "FIRE_ONCE", "CATCH_UP")),
    *(f"max_lateness {each}" for each in ("none", "set")),
    *(f"flexible window {each}" for each in WINDOWS),
    *(f"tracking {each}" for each in ("TRACKED", "UNTRACKED")),
    *(f"routing {each}" for each in ROUTES.values()),
    *(f"overlap {each}" for each in OVERLAPS),
    *(f"attempts {each}" for each in (1, 2, 3, 4)),
    *("deadline none", "deadline set", "retryable all", "retryable some"),
    *(f"timing {each}" for each in ("one-time", "Unix cron", "AWS cron", "rate")),
    *(f"dst.gap {each}" for each in ("SKIP", "NEXT_VALID")),
    *(f"dst.fold {each}" for each in ("FIRST", "SECOND", "BOTH")),
    *("start_at set", "end_at set", "max_occurrences set", "exclude set"),
    *("clocks go forward", "clocks go back"),
)
