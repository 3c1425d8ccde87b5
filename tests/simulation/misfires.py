"""Whether what was reached too late became what docs/policies.md says."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.history import History
from tests.simulation.log import Spec
from tests.simulation.rules import ceil_second, spelled

SECOND = timedelta(seconds=1)
# Two clocks, each apart by its own two seconds: the relay's, by which the message was
# received, and that of whoever lets the occurrence go again.
SKEW = 4 * SECOND
THRESHOLD = 60 * SECOND
HORIZON = 180 * SECOND
# Older than this, what ran may have been deleted.
FORGOTTEN = timedelta(days=14, hours=23)
MONTHS = 10**7


@dataclass(frozen=True)
class Verdict:
    """What the policy makes of one overdue time.

    Attributes:
        place: how many run before it; None when it does not run.
        reason: why it does not run.
    """

    place: int | None
    reason: str | None = None


def allowed(spec: Spec) -> int:
    """Return how many overdue times a policy lets run."""
    return {"SKIP": 0, "FIRE_ONCE": 1}.get(spec.policy, spec.limit or 0)


def is_overdue(spec: Spec, time: datetime, now: datetime) -> bool:
    return now - time - timedelta(seconds=spec.window) > THRESHOLD


def is_too_late(spec: Spec, time: datetime, now: datetime) -> bool:
    late = spec.max_lateness
    bound = FORGOTTEN if late is None else min(FORGOTTEN, timedelta(seconds=late))
    return now - time > bound


def is_forgotten(time: datetime, planned_at: datetime) -> bool:
    """Whether a time was planned so late that it may have run before."""
    return planned_at - time > FORGOTTEN


def verdicts(
    spec: Spec, overdue: list[datetime], now: datetime, *, is_certain: bool = True
) -> dict[datetime, Verdict]:
    """Return what becomes of all overdue times, in order, by a decision of `now`.

    `is_certain`: the first of them cannot have run and been forgotten.
    """
    count = allowed(spec)
    latest = overdue[-count:] if count else []
    run = [time for time in latest if not is_too_late(spec, time, now)]
    if is_certain and latest[:1] == overdue[:1] and latest[1:] == run:
        lateness = timedelta(seconds=spec.max_lateness or MONTHS)
        run = latest if now - latest[0] <= lateness else run
    reasons = {"SKIP": "MISFIRE_SKIPPED", "FIRE_ONCE": "MISFIRE_LATER_ONE_RUNS"}
    found = {}
    for time in overdue:
        if time in run:
            found[time] = Verdict(run.index(time))
        elif is_too_late(spec, time, now):
            found[time] = Verdict(None, "MISFIRE_TOO_LATE")
        else:
            found[time] = Verdict(
                None, reasons.get(spec.policy, "MISFIRE_BEYOND_LIMIT")
            )
    return found


class Misfires:
    """Judges the overdue times of one schedule."""

    def __init__(
        self,
        world: Any,
        history: History,
        due: dict[datetime, int],
        rows: dict[str, Any],
    ) -> None:
        self.world = world
        self.history = history
        self.rows = rows
        self.sent = {send.occurrence_id for send in world.log.sends}
        self.own: dict[int, list[datetime]] = {}
        for time, number in sorted(due.items()):
            self.own.setdefault(number, []).append(time)
        tenant = world.tenants[history.name.split("-")[0]]
        self.per_minute: int = tenant.quotas.catch_up_per_minute
        self.decided: set[str] = set()

    def judge(self) -> None:
        for row in self.rows.values():
            if row.decision is not None:
                self._judge_gap(row)
        for name, row in self.rows.items():
            by_hand = row.run is not None or row.backfilled_at is not None
            known = row.scheduled_for in self.own.get(row.version, [])
            if name not in self.decided and not by_hand and known:
                self._judge_alone(row)
        for what, begin, end in self.world.log.outages:
            if what != "relay":
                self._judge_outage(begin, end)

    def _violate(
        self, text: str, invariant: str = "misfires as the policy says"
    ) -> None:
        name, schedule = self.history.name, self.history.schedule_id
        text = f"{name}: {text}"
        self.world.log.violate(invariant, self.world.steps, text, schedule)

    def _name(self, version: int, time: datetime) -> str:
        return f"{self.history.schedule_id}.v{version}.{spelled(time)}"

    def _judge_gap(self, gap: Any) -> None:
        decision, number = gap.decision, gap.version
        own = self.own.get(number, [])
        spec = self.history.owners[number].spec
        label = f"v{number} gap {gap.scheduled_for:%d %H:%M} as of {decision.as_of}"
        before = [time for time in own if time < gap.scheduled_for]
        covered = [time for time in own if gap.scheduled_for <= time <= decision.last]
        after = [time for time in own if time > decision.last]
        end = self.history.owners[number].entry.effective_to
        if gap.state == "CANCELED" and end is not None and gap.scheduled_for >= end:
            # A slow pass put it before it knew of the version's end.
            return
        if not covered or not before or covered[0] != gap.scheduled_for:
            self._violate(f"{label}: lies under no time of its version")
            return
        if len(covered) != decision.count:
            self._violate(f"{label}: counts {decision.count}, covers {len(covered)}")
        if gap.state == "CANCELED" and gap.scheduled_at is None:
            # What a stop cut off: up to it, however late that was. The time before
            # may have gone by the decision already.
            times = [before[-1], *covered]
            self.decided |= {self._name(number, time) for time in times}
            return
        if not is_overdue(spec, covered[-1], decision.as_of):
            self._violate(f"{label}: {covered[-1]} was not overdue")
        if after and is_overdue(spec, after[0], decision.as_of):
            self._violate(f"{label}: leaves {after[0]} out")
        overdue = [before[-1], *covered]
        row = self.rows.get(self._name(number, before[-1]))
        is_certain = row is None or not is_forgotten(before[-1], row.planned_at)
        found = verdicts(spec, overdue, decision.as_of, is_certain=is_certain)
        for time, verdict in found.items():
            self.decided.add(self._name(number, time))
            needs_row = time in overdue[:2] or verdict.place is not None
            right = self._as_put(gap, time, verdict)
            self._judge_verdict(gap, time, right, needs_row=needs_row)

    def _as_put(self, gap: Any, time: datetime, verdict: Verdict) -> Verdict:
        """Return what must become of a time of a gap, by when its row was put.

        Where the gap was worked off weeks later, it may have run before.
        """
        row = self.rows.get(self._name(gap.version, time))
        if row is None or time <= gap.scheduled_for:
            return verdict
        is_late = is_forgotten(time, row.planned_at)
        return Verdict(None, "MISFIRE_TOO_LATE") if is_late else verdict

    def _judge_verdict(
        self, gap: Any, time: datetime, verdict: Verdict, *, needs_row: bool
    ) -> None:
        row = self.rows.get(self._name(gap.version, time))
        label = f"v{gap.version} {time:%d %H:%M} of the gap as of {gap.decision.as_of}"
        if row is None:
            if needs_row and gap.state != "CANCELED":
                self._violate(f"{label}: no row, should be {verdict}")
            return
        if row.backfilled_at is not None or row.state == "CANCELED":
            return
        if not needs_row:
            self._violate(f"{label}: a row, {row.state}, besides the gap row")
        elif verdict.place is None:
            if (row.state, row.reason) != ("MISSED", verdict.reason):
                self._violate(f"{label}: {row.state} {row.reason}, not {verdict}")
        else:
            paced = verdict.place * 60 // self.per_minute
            right = ceil_second(gap.decision.as_of) + paced * SECOND
            # What was claimed and waits is let go by another clock.
            right -= SKEW if row.waits else timedelta(0)
            # Others of the tenant may have taken the places before it.
            early = row.available_at is None or row.available_at < right
            if not row.misfire or row.state == "MISSED" or early:
                self._violate(
                    f"{label}: {row.state} misfire={row.misfire} available "
                    f"{row.available_at}, should be {right}"
                )

    def _judge_alone(self, row: Any) -> None:
        """Judge a row that no gap row speaks of."""
        spec = self.history.owners[row.version].spec
        label = f"v{row.version} {row.scheduled_for:%d %H:%M:%S} {row.state}"
        now = row.finished_at if row.state == "MISSED" else row.scheduled_at
        was_deferred = row.key in self.world.released
        if now is None or row.state == "CANCELED" or was_deferred:
            return
        entry = self.history.owners[row.version].entry
        if row.state == "MISSED" and entry.is_stopped and entry.ends_at < now:
            # A pass that did not know of the stop; that would have ended it as well.
            return
        overdue = is_overdue(spec, row.scheduled_for, now)
        if overdue != (row.misfire or row.state == "MISSED"):
            self._violate(f"{label} at {now}, misfire={row.misfire}")
        elif overdue:
            own = self.own[row.version]
            times = [t for t in own if t >= row.scheduled_for]
            times = [t for t in times if is_overdue(spec, t, now)]
            is_certain = not is_forgotten(row.scheduled_for, row.planned_at)
            found = verdicts(spec, times, now, is_certain=is_certain)
            verdict = found[row.scheduled_for]
            if (verdict.place is None) != (row.state == "MISSED"):
                self._violate(f"{label} at {now}, should be {verdict}")
            elif row.state == "MISSED" and row.reason != verdict.reason:
                self._violate(f"{label} {row.reason} at {now}, should be {verdict}")

    def _judge_outage(self, begin: datetime, end: datetime) -> None:
        """Of what an outage left behind, no more runs than the policy lets."""
        for number, own in self.own.items():
            spec = self.history.owners[number].spec
            call = self.history.owners[number].call
            known = call.answered
            # What takes over later is materialized then, by whoever lets it.
            if known is None or not getattr(call.answer, "finished", True):
                continue
            # A call materializes by itself, and orders of passes are tried again.
            first = max(begin, known) + HORIZON + 240 * SECOND
            last = end - THRESHOLD - (5 + spec.window) * SECOND
            names = [self._name(number, t) for t in own if first <= t <= last]
            names = [name for name in names if self.rows.get(name) is not None]
            ran = [
                name
                for name in names
                if name in self.sent and self.rows[name].backfilled_at is None
            ]
            # A cancel by hand judges what is overdue then, in the middle of it.
            parts = 1 + sum(
                row.version == number
                and row.reason == "CANCELED"
                and row.finished_at is not None
                and begin <= row.finished_at <= end
                for row in self.rows.values()
            )
            if len(ran) > parts * allowed(spec) + 1:
                text = f"v{number}, {spec.policy} {spec.limit}: {ran} ran"
                self._violate(text, "an outage lets run what the policy lets")
