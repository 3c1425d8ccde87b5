"""What must hold of work on TRACKED occurrences, judged at each write and answer."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.company import Company
from tests.simulation.history import History
from tests.simulation.log import Spec
from tests.simulation.verdicts import SKEW, Verdicts

SECOND = timedelta(seconds=1)
# How long after it is over one may have been in another's way.
LATELY = 60 * SECOND
# How long at least who retries keeps its place in the lane; clocks differ.
LANE_KEPT = 270 * SECOND
ENDS = {"SUCCEEDED", "DEAD", "CANCELED", "MISSED", "SKIPPED_OVERLAP"}
CLAIMABLE = {"SCHEDULED", "ENQUEUED"}
HELD = {"DEFERRED", "WAITING_OVERLAP"}


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
        letters: how many dead letters of an occurrence were accepted.
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
        self._effect_of: dict[tuple[str, ...], str] = {}
        self.letters: Counter[str] = Counter()
        # Rows that were written by the port call that is under way.
        self._fresh: list[Any] = []
        self._verdicts = Verdicts(self)
        self._company = Company(self)
        self._specs: dict[tuple[str, int], Spec] = {}

    # --- what is said and answered ----------------------------------------------

    def on_said(self, held: list[Any], failure: Any) -> None:
        """Note what a worker is about to say of its attempts."""
        for each in held:
            kinds = self.said.setdefault((each.occurrence_id, each.lease_token), {})
            kind = None if failure is None else str(failure.error_class)
            kinds.setdefault(kind, (self.world.now, failure))

    def on_effect(self, name: str) -> None:
        """Judge an effect, the only one of its id: no other id of its time has one."""
        self.effects.add(name)
        schedule, _, time, *run = name.split(".")
        first = self._effect_of.setdefault((schedule, time, *run), name)
        if first != name:
            self.violate("effects are exactly one", f"{name} besides {first}")

    def on_letter(self, name: str) -> None:
        """Judge a dead letter that a queue accepted."""
        self.letters[name] += 1
        row = self._row(name)
        if row is None or name not in self.over:
            self.violate("a letter has its death", name)

    def on_claimed(self, told: list[Any]) -> None:
        """Judge the answers to a claim."""
        for each in told:
            if each.answer != "RUN":
                continue
            attempt = self.granted[each.occurrence_id].get(each.lease_token)
            if attempt is None:
                text = f"{each.occurrence_id} runs with a token that is not stored"
                self.violate("a lease is stored", text)
                continue
            # It may have died and been replayed before this is answered.
            count = attempt - self.before[each.occurrence_id]
            if count > 0 and each.attempt != count:
                text = f"{each.occurrence_id}: attempt {attempt} is told {each.attempt}"
                self.violate("attempts start anew with a replay", text)

    def on_beats(
        self, held: list[Any], told: list[Any], began: datetime, *, sure: bool
    ) -> None:
        """Judge the answers to heartbeats."""
        for mine, each in zip(held, told, strict=True):
            name = each.occurrence_id
            if each.outcome != "OK":
                continue
            if mine.lease_token not in self.granted[name]:
                self.violate("a lease is stored", f"heartbeat of {name} is OK")
            at = self.canceled.get(name)
            known = at is not None and at < began
            if sure and not each.cancel_requested:
                if known:
                    text = f"{name} was canceled at {at}, and its worker is not told"
                    self.violate("a worker is told of a cancel", text)
                elif self._is_schedule_canceled(name, began):
                    text = (
                        f"the schedule of {name} was canceled; its worker is not told"
                    )
                    self.violate("a worker is told of a cancel", text)

    def on_finished(self, held: list[Any], told: list[Any], failure: Any) -> None:
        """Judge the answers to a complete or a fail."""
        for mine, each in zip(held, told, strict=True):
            row = self._row(each.occurrence_id)
            if row is None or failure is not None or each.outcome != "LEASE_LOST":
                continue
            if row.state == "SUCCEEDED" and row.lease_token == mine.lease_token:
                text = f"{each.occurrence_id} was completed, and its worker hears not"
                self.violate("what is said again is answered again", text)

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
        return self.world.store.by_schedule[name.partition(".")[0]].get(name)

    # --- writes -----------------------------------------------------------------

    def on_row(self, old: Any, new: Any) -> None:
        """Judge a write of an occurrence's row, before it is made."""
        if old is None or old.state == new.state != "RUNNING":
            return
        if old.state != new.state or old.attempt != new.attempt:
            self._fresh.append(new)
        if new.state in ENDS:
            self.over[new.occurrence_id] = self.world.now
        if new.state == "RUNNING" and new.lease_token != old.lease_token:
            self._judge_freedom(old, new)
            self._judge_grant(old, new)
        elif old.state == new.state:
            if new.lease_expires_at < old.lease_expires_at:
                self.violate("a lease never shrinks", new.occurrence_id)
        elif old.state == "RUNNING":
            self._judge_end(old, new)
        else:
            self._judge_unworked(old, new)

    def _judge_unworked(self, old: Any, new: Any) -> None:
        """Judge what becomes of a row that no worker has."""
        if (old.state, new.state) == ("DEAD", "DEFERRED"):
            self._judge_replay(old, new)
        elif new.state == "DEAD" and new.reason != "SEND_REFUSED":
            self._verdicts.judge_unclaimed(old, new)
        elif old.state in CLAIMABLE and new.state in HELD:
            self._judge_wait(old, new)
        elif new.state == "SKIPPED_OVERLAP":
            self._judge_skip(new)

    def _judge_replay(self, old: Any, new: Any) -> None:
        name = new.occurrence_id
        if not self.replays[name]:
            self.violate("terminal states stay", f"{name}: nobody replayed it")
        self.before[name] = old.attempt
        self.begun.pop(name, None)
        self.waited.pop(name, None)
        self.holds.pop(name, None)

    def _judge_grant(self, old: Any, new: Any) -> None:
        name, now = new.occurrence_id, self.world.now
        if new.attempt != old.attempt + 1 or not new.lease_token:
            self.violate("attempts grow by one", f"{name}: {old.attempt} {new.attempt}")
        most, count = self.spec(new).tries.most, new.attempt - self.before[name]
        if count > most:
            text = f"{name}: attempt {count} of {most}"
            self.violate("no more attempts than the policy has", text)
        if new.lease_token in self.granted[name]:
            self.violate("each attempt has its own token", name)
        self.granted[name][new.lease_token] = new.attempt
        self.begun.setdefault(name, now)
        if now < (old.available_at or now) - SKEW - SKEW:
            text = f"{name}: begins at {now}, available at {old.available_at}"
            self.violate("nothing begins before its time", text)
        if old.state == "RUNNING":
            self._verdicts.judge_takeover(new)
        at = self.canceled.get(name)
        if at is not None and (old.replayed_at is None or old.replayed_at < at):
            self.violate("what is canceled never runs", f"{name}, {at}")
        self._judge_others(new)
        self._judge_quota(new)

    def _judge_others(self, new: Any) -> None:
        """Judge an attempt by those of the same schedule that have a worker."""
        if self.overlap(new) == "ALLOW":
            return
        others = self._others(new, {"RUNNING"})
        if others:
            text = f"{new.occurrence_id} besides {[o.occurrence_id for o in others]}"
            self.violate("one runs at a time", text)

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
            self.violate("no more run than the quota lets", text)

    def _judge_freedom(self, old: Any, new: Any) -> None:
        """A lease is its worker's until it ends."""
        if old.state == "RUNNING" and self.world.now < old.lease_expires_at - SKEW:
            text = f"{new.occurrence_id}: {old.lease_expires_at} at {self.world.now}"
            self.violate("at most one live lease", text)

    def _judge_end(self, old: Any, new: Any) -> None:
        name, state = new.occurrence_id, str(new.state)
        said = self.said.get((name, old.lease_token), {})
        if state == "SUCCEEDED":
            self._judge_success(old, name, said)
            return
        kind = str(new.failure.error_class) if new.failure else "LEASE_EXPIRED"
        since, failure = said.get(kind, (old.lease_expires_at, new.failure))
        if kind == "LEASE_EXPIRED":
            self._judge_freedom(old, new)
        elif kind not in said:
            text = f"{name} {state}: its worker said {list(said)}, not {kind}"
            self.violate("a late worker changes nothing", text)
            return
        if state == "CANCELED":
            if name not in self.cancels and not self._asked_to_cancel(new):
                self.violate("nobody stops what nobody cancels", name)
        elif old.cancel_requested_at is not None:
            self.violate("what is canceled never runs", f"{name} is {state}")
        else:
            self._verdicts.judge(old, new, failure, since)

    def _judge_success(self, old: Any, name: str, said: Any) -> None:
        if None not in said:
            text = f"{name} succeeds, and its worker {old.worker} did not say so"
            self.violate("a late worker changes nothing", text)
        elif name not in self.effects:
            self.violate("effects are exactly one", f"{name} has none")

    def _asked_to_cancel(self, row: Any) -> bool:
        return any(
            call.kind in {"cancel", "job"}
            for call in self.world.log.calls
            if call.schedule_id == row.schedule_id or call.kind == "job"
        )

    def _judge_wait(self, old: Any, new: Any) -> None:
        name = new.occurrence_id
        self.holds[name] += 1
        if name in self.begun:
            # Until when its retry has it wait is no wait of this kind; how long its
            # consumer took to come for nothing is.
            waited = new.available_at - old.available_at
            self.waited[name] += max(waited, 0 * SECOND)
        if new.state != "WAITING_OVERLAP":
            return
        if self._others(new, {"WAITING_OVERLAP"}):
            self.violate("at most one waits", name)
        if not self._in_the_way(new):
            self.violate("what waits has one that runs", name)

    def _judge_skip(self, new: Any) -> None:
        name, until = new.occurrence_id, new.available_at + LANE_KEPT
        if name in self.begun and self.world.now < until:
            self.violate("who retries keeps its place", name)
        if new.replayed_at is not None:
            self.violate("what is replayed is not skipped", name)
        least = 2 if self.overlap(new) == "QUEUE_ONE" else 1
        if self.overlap(new) == "ALLOW" or len(self._in_the_way(new)) < least:
            text = f"{new.occurrence_id}: {self._in_the_way(new)}"
            self.violate("what is skipped has one that runs", text)

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
            if self.overlap(row) != "ALLOW"
        ]

    def judge_fresh(self) -> None:
        """Judge what must have been written together with rows.

        A deed is whole, and a watch comes before its attempt: so it is all there when
        the port call is over.
        """
        fresh, self._fresh = self._fresh, []
        for row in fresh:
            if row == self._row(row.occurrence_id):
                self._company.judge(row)

    # --- the end ----------------------------------------------------------------

    def judge(self) -> None:
        """Judge what is left when all has been quiet for long."""
        world = self.world
        lost = world.consumers.messages.lost
        for schedule_id, rows in world.store.by_schedule.items():
            if world.consumers.are_there and world.is_tracked(schedule_id):
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
            self.violate("a place is taken while its occurrence runs", text)

    def _judge_left(self, row: Any, lost: set[tuple[str, int]]) -> None:
        world, name = self.world, row.occurrence_id
        text = f"{name} is {row.state}, available {row.available_at}, {row.waits} waits"
        if (
            row.state == "DEAD"
            and row.told_at is None
            # Expired: everything was down for longer than it is kept.
            and (row.expires_at is None or row.expires_at > world.now)
            and self.over[name] < (world.now - world.patience)
        ):
            self.violate("each death is told", text)
        if row.told_at is not None and not self.letters[name]:
            spec = self.spec(row)
            if spec.handler != "far":
                self.violate("each death is told", f"{text}, without a letter")
        if row.state in {"PLANNED", *ENDS}:
            return
        times = (
            row.available_at or row.scheduled_for,
            row.scheduled_at,
            row.started_at,
        )
        last = max(each for each in times if each is not None)
        if last < world.now - world.patience and (name, row.sends) not in lost:
            self.violate("nothing waits for ever", text)

    def spec(self, row: Any) -> Spec:
        """Return what the calls say of a row's version."""
        place = row.schedule_id, row.version
        if place not in self._specs:
            owners = History(self.world, row.schedule_id).owners
            for number, owner in owners.items():
                self._specs[row.schedule_id, number] = owner.spec
        return self._specs[place]

    def overlap(self, row: Any) -> str:
        """Return a row's overlap policy: what its backfill said, or its version."""
        return str(row.overlap) if row.overlap else self.spec(row).overlap

    def violate(self, invariant: str, text: str) -> None:
        """Note what does not hold; the text begins with an occurrence_id."""
        schedule, _, _ = text.partition(".")
        self.world.log.violate(invariant, self.world.steps, text, schedule)
