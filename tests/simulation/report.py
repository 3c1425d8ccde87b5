"""What many seeds came to, and whether they met enough to prove anything."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.simulation.actions import KINDS
from tests.simulation.faults import CALENDAR, CHANCES, SUSPENDED
from tests.simulation.log import Violation
from tests.simulation.shards import ANNOUNCED, ORDER_CHANCES, is_resharded
from tests.simulation.specs import POLICY_VALUES
from tests.simulation.verdicts import UNCLAIMED

# From so many seeds on the floors hold; fewer prove nothing about how often.
MANY_SEEDS = 30
LEAST_FAULTS = 0.01
LEAST_SEEDS = 0.1
LEAST_STEPS = 200
# What befalls consumers and their messages: of the steps that they make.
WORK = (
    *("message duplicated", "message late", "message lost for good"),
    *("message never claimed", "redelivery", "redrive", "deletion without effect"),
    *("acknowledgement late", "lost acknowledgement"),
    *("worker dies", "worker not heard of"),
)
CONSUMERS = "task: api"
# Few calls make jobs, and each has few messages.
JOBS = ("job message lost",)
FAULTS = tuple(name for name in (*CHANCES, *CALENDAR) if name not in (*WORK, *JOBS))
# Only some seeds change their shards, and a mover has few orders in each.
MOVES = (*ORDER_CHANCES, ANNOUNCED)
CALLS = tuple(
    f"call: {kind}" for kind in (*dict.fromkeys(KINDS), "replay", "cancel occurrence")
)
# What must have come about at all.
MET = (*CALLS, UNCLAIMED)


@dataclass
class Result:
    """What came of one seed.

    Attributes:
        values: the policy values of versions that occurrences ran by.
    """

    seed: int
    steps: int
    counts: Counter[str]
    violations: list[Violation]
    values: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def shown(self, violation: Violation) -> str:
        """Return a violation's text with names instead of ids."""
        text = violation.text
        for schedule_id, name in self.names.items():
            text = text.replace(schedule_id, name)
        return text


@dataclass
class Report:
    """What came of all seeds so far."""

    seeds: int = 0
    steps: int = 0
    shortest: int | None = None
    resharded: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    invariants: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count a seed in."""
        self.seeds += 1
        self.resharded += is_resharded(result.seed)
        self.steps += result.steps
        self.shortest = min(self.shortest or result.steps, result.steps)
        self.counts += result.counts
        self.values.update(result.values)
        if result.violations:
            self.failed.append(result)
            self.invariants.update({each.invariant for each in result.violations})

    @property
    def violations(self) -> int:
        return sum(len(each.violations) for each in self.failed)

    def too_rare(self) -> list[str]:
        """Return what was met too rarely: faults, policy values, calls, steps."""
        if self.seeds < MANY_SEEDS:
            return []
        theirs = self.counts[CONSUMERS]
        found = []
        # Whoever calls for a suspended tenant is refused: callers, and workers.
        only = tuple(name for name in FAULTS if name != SUSPENDED)
        for names, steps in (
            (only, self.steps - theirs),
            (WORK, theirs),
            ((SUSPENDED,), self.steps),
        ):
            least = steps * LEAST_FAULTS
            found += [
                f"{name}: {self.counts[name]}, needs {least:.0f}"
                for name in names
                if self.counts[name] < least
            ]
        least = self.seeds * LEAST_SEEDS
        found += [
            f"{name}: {self.counts[name]}, needs {least:.0f}"
            for name in JOBS
            if self.counts[name] < least
        ]
        found += [
            f"{name}: in {self.values[name]} seeds, needs {least:.0f}"
            for name in POLICY_VALUES
            if self.values[name] < least
        ]
        found += [f"{name}: never" for name in MET if not self.counts[name]]
        found += [
            f"{name}: {self.counts[name]}, needs {self.resharded}"
            for name in MOVES
            if self.counts[name] < self.resharded
        ]
        if (self.shortest or 0) < LEAST_STEPS:
            found.append(f"a seed of {self.shortest} steps, needs {LEAST_STEPS}")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        steps, seeds = max(self.steps, 1), max(self.seeds, 1)
        rest = {
            name: count
            for name, count in sorted(self.counts.items())
            if name not in {*FAULTS, *WORK}
        }
        return {
            "seeds": self.seeds,
            "seeds_with_a_change_of_the_shard_count": self.resharded,
            "steps": self.steps,
            "steps_of_the_shortest_seed": self.shortest or 0,
            "faults": {
                name: {
                    "count": self.counts[name],
                    "per_step": round(self.counts[name] / steps, 4),
                }
                for name in (*FAULTS, *WORK)
            },
            "policy_values": {
                name: {
                    "seeds": self.values[name],
                    "share": round(self.values[name] / seeds, 3),
                }
                for name in POLICY_VALUES
            },
            "counts": rest,
            "floors": "checked" if self.seeds >= MANY_SEEDS else "too few seeds",
            "too_rare": self.too_rare(),
            "violations": self.violations,
            "invariants": dict(self.invariants),
            "failed": [
                {
                    "seed": each.seed,
                    "violations": [asdict(found) for found in each.violations],
                }
                for each in self.failed
            ],
        }
