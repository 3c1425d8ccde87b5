"""What must hold of work on TRACKED occurrences, judged at each write and answer."""

import hashlib
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.history import History
from tests.simulation.log import Spec

SECOND = timedelta(seconds=1)
# Two clocks.
SKEW = 2 * SECOND
# How long before a write a call, or a pass, may have read its clock.
CALL, PASS = 27 * SECOND, 130 * SECOND
# How long after it is over one may have been in another's way.
LATELY = 60 * SECOND
ENDS = {"SUCCEEDED", "DEAD", "CANCELED", "MISSED", "SKIPPED_OVERLAP"}
CLAIMABLE = {"SCHEDULED", "ENQUEUED"}
HELD = {"DEFERRED", "WAITING_OVERLAP"}


def backoff(tries: Any, occurrence_id: str, attempt: int, count: int) -> int:
    """Return the seconds that docs/policies.md lets pass after an attempt."""
    longest: int = min(tries.cap, tries.base * 2 ** (count - 1))
    digest = hashlib.sha256(f"{occurrence_id}#{attempt}".encode()).hexdigest()[:16]
    return 1 + int(digest, 16) % longest


class Workbook:
    """Keeps what consumers said and were told, and judges what is written.

    Attributes:
        granted: by occurrence, by token, the attempt that it was written for.
        said: by occurrence and token, how its worker said that it ended, and when
            first; None for done.
        cancels: occurrences of which a cancel was asked.
        canceled: when the cancel of an occurrence was answered.
        replays: how often a replay was asked.
        begun: when the first attempt since the last replay was written.
        waited: how long it has waited since then though nothing had failed.
        before: how many attempts there were when it was last replayed.
        over: when an occurrence was last over.
    """

    def __init__(self, world: Any) -> None:
        self.world = world
        self.granted: dict[str, dict[str, int]] = defaultdict(dict)
        self.said: dict[tuple[str, str], dict[str | None, tuple[datetime, Any]]] = {}
        self.cancels: set[str] = set()
        self.canceled: dict[str, datetime] = {}
        self.replays: Counter[str] = Counter()
        self.begun: dict[str, datetime] = {}
        self.waited: dict[str, timedelta] = defaultdict(timedelta)
        self.holds: Counter[str] = Counter()
        self.before: Counter[str] = Counter()
        self.over: dict[str, datetime] = {}
        self.effects: set[str] = set()
        self._specs: dict[tuple[str, int], Spec] = {}

    # --- what is said and answered ----------------------------------------------

    def on_said(self, held: list[Any], failure: Any) -> None:
        """Note what a worker is about to say of its attempts."""
        for each in held:
            kinds = self.said.setdefault((each.occurrence_id, each.lease_token), {})
            kind = None if failure is None else str(failure.error_class)
            kinds.setdefault(kind, (self.world.now, failure))

    def on_effect(self, name: str) -> None:
        """Note an effect, the only one of its id."""
        self.effects.add(name)

    def on_claimed(self, told: list[Any]) -> None:
        """Judge the answers to a claim."""
        for each in told:
            if each.answer != "RUN":
                continue
            attempt = self.granted[each.occurrence_id].get(each.lease_token)
            if attempt is None:
                text = f"{each.occurrence_id} runs with a token that is not stored"
                self._violate("a lease is stored", text)

    def on_beats(
        self, held: list[Any], told: list[Any], began: datetime, *, sure: bool
    ) -> None:
        """Judge the answers to heartbeats."""
        for mine, each in zip(held, told, strict=True):
            name = each.occurrence_id
            if each.outcome != "OK":
                continue
            if mine.lease_token not in self.granted[name]:
                self._violate("a lease is stored", f"heartbeat of {name} is OK")
            at = self.canceled.get(name)
            known = at is not None and at < began
            if sure and not each.cancel_requested:
                if known:
                    text = f"{name} was canceled at {at}, and its worker is not told"
                    self._violate("a worker is told of a cancel", text)
                elif self._is_schedule_canceled(name, began):
                    text = f"the schedule of {name} was canceled; its worker is not told"
                    self._violate("a worker is told of a cancel", text)

    def on_finished(self, held: list[Any], told: list[Any], failure: Any) -> None:
        """Judge the answers to a complete or a fail."""
        for mine, each in zip(held, told, strict=True):
            row = self._row(each.occurrence_id)
            if row is None or failure is not None or each.outcome != "LEASE_LOST":
                continue
            if row.state == "SUCCEEDED" and row.lease_token == mine.lease_token:
                text = f"{each.occurrence_id} was completed, and its worker hears not"
                self._violate("what is said again is answered again", text)

    def on_canceled(self, row: Any) -> None:
        """Note that a cancel was answered."""
        self.canceled.setdefault(row.occurrence_id, self.world.now)

    def _is_schedule_canceled(self, name: str, before: datetime) -> bool:
        row = self._row(name)
        if row is None:
            return False
        asked = row.asked_at
        return any(
            stop.call.kind == "cancel"
            and stop.call.answered < before
            and (asked is None or asked < stop.as_of)
            and row.version <= stop.version
            for stop in self.world.callers.stops[row.schedule_id]
        )

    def _row(self, name: str) -> Any:
        return self.world.store.by_schedule[name.split(".")[0]].get(name)

    # --- writes -----------------------------------------------------------------

    def on_row(self, old: Any, new: Any) -> None:
        """Judge a write of an occurrence's row, before it is made."""
        if old is None or old.state == new.state != "RUNNING":
            return
        if new.state in ENDS:
            self.over[new.occurrence_id] = self.world.now
        if (old.state, new.state) == ("DEAD", "DEFERRED"):
            self._judge_replay(old, new)
        if new.state == "RUNNING" and new.lease_token != old.lease_token:
            self._judge_grant(old, new)
        if old.state == "RUNNING":
            self._judge_end(old, new)
        elif new.state == "DEAD" and new.reason != "SEND_REFUSED":
            self._judge_unclaimed(old, new)
        if old.state in CLAIMABLE and new.state in HELD:
            self._judge_wait(new)
        if new.state == "SKIPPED_OVERLAP":
            self._judge_skip(new)

    def _judge_replay(self, old: Any, new: Any) -> None:
        name = new.occurrence_id
        if not self.replays[name]:
            self._violate("terminal states stay", f"{name}: nobody replayed it")
        self.before[name] = old.attempt
        self.begun.pop(name, None)
        self.waited.pop(name, None)
        self.holds.pop(name, None)

    def _judge_grant(self, old: Any, new: Any) -> None:
        world, name = self.world, new.occurrence_id
        spec, now = self.spec(new), world.now
        self._judge_freedom(old, new)
        if new.attempt != old.attempt + 1 or not new.lease_token:
            self._violate("attempts grow by one", f"{name}: {old.attempt} {new.attempt}")
        count = new.attempt - self.before[name]
        if count > spec.tries.most:
            text = f"{name}: attempt {count} of {spec.tries.most}"
            self._violate("no more attempts than the policy has", text)
        if new.lease_token in self.granted[name]:
            self._violate("each attempt has its own token", name)
        self.granted[name][new.lease_token] = new.attempt
        self.begun.setdefault(name, now)
        if now < (old.available_at or now) - SKEW - SKEW:
            text = f"{name}: begins at {now}, available at {old.available_at}"
            self._violate("nothing begins before its time", text)
        for at in (self.canceled.get(name),):
            if at is not None and (old.replayed_at is None or old.replayed_at < at):
                self._violate("what is canceled never runs", f"{name}, {at}")
        if spec.overlap != "ALLOW":
            others = self._others(new, {"RUNNING"})
            if others:
                text = f"{name} besides {[each.occurrence_id for each in others]}"
                self._violate("one runs at a time", text)
        self._judge_quota(new)

    def _judge_quota(self, new: Any) -> None:
        world = self.world
        limit = world.tenants[new.tenant_id].quotas.running
        if limit is None:
            return
        running = [
            row
            for rows in world.store.by_schedule.values()
            for row in rows.values()
            if row.tenant_id == new.tenant_id and row.state == "RUNNING"
            if row.occurrence_id != new.occurrence_id
        ]
        slots = {row.slot for row in running}
        if len(running) >= limit or new.slot in slots or new.slot is None:
            text = f"{new.occurrence_id} in place {new.slot} besides {slots} of {limit}"
            self._violate("no more run than the quota lets", text)

    def _judge_freedom(self, old: Any, new: Any) -> None:
        """A lease is its worker's until it ends."""
        if old.state == "RUNNING" and self.world.now < old.lease_expires_at - SKEW:
            text = f"{new.occurrence_id}: {old.lease_expires_at} at {self.world.now}"
            self._violate("at most one live lease", text)

    def _judge_end(self, old: Any, new: Any) -> None:
        if new.state == "RUNNING":
            if new.lease_token == old.lease_token:
                if new.lease_expires_at < old.lease_expires_at:
                    self._violate("a lease never shrinks", new.occurrence_id)
            return
        name = new.occurrence_id
        said = self.said.get((name, old.lease_token), {})
        if new.state == "SUCCEEDED":
            if None not in said:
                text = f"{name} succeeds, and its worker {old.worker} did not say so"
                self._violate("a late worker changes nothing", text)
            elif name not in self.effects:
                self._violate("effects are exactly one", f"{name} has none")
            return
        kind = str(new.failure.error_class) if new.failure else "LEASE_EXPIRED"
        if kind == "LEASE_EXPIRED":
            self._judge_freedom(old, new)
            since, failure = old.lease_expires_at, new.failure
        elif kind in said:
            since, failure = said[kind]
        else:
            text = f"{name} {new.state}: its worker said {list(said)}, not {kind}"
            self._violate("a late worker changes nothing", text)
            return
        if new.state == "CANCELED":
            if name not in self.cancels and not self._asked_to_cancel(new):
                self._violate("nobody stops what nobody cancels", name)
        elif old.cancel_requested_at is not None:
            text = f"{name} is {new.state}, and was asked to stop"
            self._violate("what is canceled never runs", text)
        else:
            self._judge_verdict(old, new, failure, since)

    def _asked_to_cancel(self, row: Any) -> bool:
        return any(
            call.kind in {"cancel", "job"}
            for call in self.world.log.calls
            if call.schedule_id == row.schedule_id or call.kind == "job"
        )

    def _judge_verdict(self, old: Any, new: Any, failure: Any, since: datetime) -> None:
        """Judge what follows a failed attempt by the policy."""
        name, tries, now = new.occurrence_id, self.spec(new).tries, self.world.now
        kind = str(failure.error_class)
        count = old.attempt - self.before[name]
        wait = backoff(tries, name, old.attempt, count)
        if kind == "THROTTLED":
            wait = max(wait, failure.retry_after_seconds or 0)
        right = None
        if kind == "PERMANENT":
            right = "PERMANENT_ERROR"
        elif kind not in tries.classes:
            right = "NOT_RETRYABLE"
        elif count >= tries.most:
            right = "ATTEMPTS_USED_UP"
        text = f"{name}, attempt {count}, {kind}: {new.state} {new.reason or ''}"
        told = new.reason if new.state == "DEAD" else None
        if right is not None:
            if told != right:
                self._violate("a death has its reason", f"{text}, not {right}")
            return
        budget = self.world.tenants[new.tenant_id].quotas.retries_per_minute
        if told == "DEADLINE_PASSED":
            self._judge_deadline(new, wait * SECOND, CALL)
        elif told == "RETRY_BUDGET_USED_UP":
            if budget is None:
                self._violate("a death has its reason", f"{text}, and has no budget")
        elif told is not None:
            self._violate("a death has its reason", text)
        elif new.available_at < since - SKEW + wait * SECOND:
            text += f" again at {new.available_at}, failed at {since}, waits {wait}"
            self._violate("a retry waits as the policy says", text)
        elif budget is None and new.available_at > now + SKEW + wait * SECOND:
            text += f" again at {new.available_at}, at {now} waits {wait}"
            self._violate("a retry waits as the policy says", text)

    def _judge_deadline(self, row: Any, wait: timedelta, slack: timedelta) -> None:
        """Judge a death by deadline: waits that are nobody's failure do not count."""
        name, tries = row.occurrence_id, self.spec(row).tries
        begun = self.begun.get(name)
        text = f"{name} begun {begun}, waited {self.waited[name]}, {tries.deadline} s"
        if tries.deadline is None or begun is None:
            self._violate("a death has its reason", text)
            return
        used = self.world.now - begun - self.waited[name] + wait
        slack += 2 * SKEW + self.holds[name] * SKEW
        if used + slack <= tries.deadline * SECOND:
            self._violate("no healthy wait ends DEAD", f"{text}, used {used}")

    def _judge_unclaimed(self, old: Any, new: Any) -> None:
        """Judge a death without an attempt."""
        name = new.occurrence_id
        if new.reason == "DEADLINE_PASSED":
            self._judge_deadline(new, 0 * SECOND, CALL)
        elif new.reason == "NEVER_CLAIMED":
            redriven = self.world.consumers.messages.redriven
            if (name, old.sends) not in redriven:
                text = f"{name}: send {old.sends} was not received too often"
                self._violate("no healthy wait ends DEAD", text)
        else:
            self._violate("a death has its reason", f"{name} {old.state} {new.reason}")

    def _judge_wait(self, new: Any) -> None:
        name, now = new.occurrence_id, self.world.now
        self.holds[name] += 1
        if name in self.begun:
            self.waited[name] += max(new.available_at - now, 0 * SECOND)
        if new.state != "WAITING_OVERLAP":
            return
        if self._others(new, {"WAITING_OVERLAP"}):
            self._violate("at most one waits", name)
        if not self._in_the_way(new):
            self._violate("what waits has one that runs", name)

    def _judge_skip(self, new: Any) -> None:
        least = 2 if self.spec(new).overlap == "QUEUE_ONE" else 1
        if self.spec(new).overlap == "ALLOW" or len(self._in_the_way(new)) < least:
            text = f"{new.occurrence_id}: {self._in_the_way(new)}"
            self._violate("what is skipped has one that runs", text)

    def _in_the_way(self, new: Any) -> list[str]:
        """Return who of its schedule has been claimed, and is not over for long."""
        found = []
        for row in self.world.store.by_schedule[new.schedule_id].values():
            name = row.occurrence_id
            if name == new.occurrence_id or not (row.attempt or row.waits):
                continue
            over = self.over.get(name)
            if row.state not in ENDS or (over and self.world.now - over < LATELY):
                found.append(name)
        return found

    def _others(self, new: Any, states: set[str]) -> list[Any]:
        """Return others of its schedule that share its lane and are in a state."""
        return [
            row
            for row in self.world.store.by_schedule[new.schedule_id].values()
            if row.state in states and row.occurrence_id != new.occurrence_id
            if self.spec(row).overlap != "ALLOW"
        ]

    # --- the end ----------------------------------------------------------------

    def judge(self) -> None:
        """Judge what is left when all has been quiet for long."""
        world = self.world
        lost = world.consumers.messages.lost
        for schedule_id, rows in world.store.by_schedule.items():
            if world.is_tracked(schedule_id):
                for row in rows.values():
                    self._judge_left(row, lost)
        held = {
            (row.tenant_id, row.slot): row.occurrence_id
            for row in world.store.all_rows()
            if row.state == "RUNNING" and row.slot is not None
        }
        taken = {place: each.holder for place, each in world.store.slots.items()}
        if held != taken:
            text = f"taken {taken}, running {held}"
            self._violate("a place is taken while its occurrence runs", text)

    def _judge_left(self, row: Any, lost: set[tuple[str, int]]) -> None:
        world, name = self.world, row.occurrence_id
        text = f"{name} is {row.state}, available {row.available_at}, {row.waits} waits"
        if row.state == "DEAD" and row.told_at is None and row.key in self._letters():
            self._violate("each death is told", text)
        if row.state in {"PLANNED", *ENDS}:
            return
        times = (row.available_at or row.scheduled_for, row.scheduled_at, row.started_at)
        last = max(each for each in times if each is not None)
        if last < world.now - 900 * SECOND and (name, row.sends) not in lost:
            self._violate("nothing waits for ever", text)

    def _letters(self) -> set[Any]:
        return set()

    def spec(self, row: Any) -> Spec:
        """Return what the calls say of a row's version."""
        place = row.schedule_id, row.version
        if place not in self._specs:
            owners = History(self.world, row.schedule_id).owners
            for number, owner in owners.items():
                self._specs[row.schedule_id, number] = owner.spec
        return self._specs[place]

    def _violate(self, invariant: str, text: str) -> None:
        schedule = text.split(".")[0]
        self.world.log.violate(invariant, self.world.steps, text, schedule)
