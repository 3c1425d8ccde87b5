"""What callers ask the API for, at random, and what is true once they are told."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hourbell.domain.errors import Forbidden, HourbellError, Transient
from hourbell.domain.overlap import Overlap
from hourbell.usecases import change_schedule
from hourbell.usecases.backfill import backfill
from hourbell.usecases.backfill_values import BackfillRequest
from hourbell.usecases.create_schedule import create_schedule
from hourbell.usecases.identify import Caller, identify
from hourbell.usecases.run_now import run_now

from tests.simulation.backfills import Backfills
from tests.simulation.faults import SUSPENDED
from tests.simulation.jobs import JobCalls
from tests.simulation.log import Call, Send
from tests.simulation.rules import MINUTE
from tests.simulation.specs import Specs, definition_of, request_of

STOPS = "a stop stops"
CHANGES = {"pause", "resume", "cancel", "edit"}
KINDS = (
    *("create",) * 3,
    *("edit",) * 5,
    *("pause",) * 3,
    *("resume",) * 4,
    "cancel",
    *("run",) * 2,
    *("backfill",) * 3,
    *("job",) * 2,
)


@dataclass(frozen=True)
class Stop:
    """A pause or cancel whose call was answered.

    Attributes:
        version: the version that it ended, at `as_of`.
    """

    call: Call
    version: int
    as_of: datetime
    finished: bool


class Callers:
    """Makes calls, and keeps what came of them."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.rng = world.rng
        self.closed = False
        self.specs = Specs(world)
        self.jobs = JobCalls(self)
        self.stops: dict[str, list[Stop]] = defaultdict(list)
        self.sent: set[str] = set()
        self.by_name: dict[str, Call] = {}
        self._favourite: str | None = None

    # --- calls ------------------------------------------------------------------

    def act(self, process: Any, attempt: str) -> None:
        """Make one call, or repeat a create or run that had no answer."""
        call = self._next_call()
        if call is not None:
            self.perform(process, attempt, call)

    def perform(self, process: Any, attempt: str, call: Call) -> None:
        """Make a call, and note what its caller is told."""
        world = self.world
        now = process.clock.now()
        call.nows.append(now)
        call.step = world.steps
        world.note(f"[{attempt}] {call.mark}: {call.kind} {call.name}")
        world.count(f"call: {call.kind}")
        try:
            call.answer = self._make(process, call, now)
        except Transient as error:
            world.note(f"[{attempt}] {call.mark}: no answer, {error}")
            return
        except HourbellError as error:
            call.refused = error.code
            world.counts[SUSPENDED] += isinstance(error, Forbidden)
            call.answered = world.now
            world.note(f"[{attempt}] {call.mark}: refused, {error.code}")
            return
        call.answered = world.now
        self._answered(call)
        world.note(f"[{attempt}] {call.mark}: answered {_told(call)}")

    def _next_call(self) -> Call | None:
        calls = self.world.log.calls
        waiting = [
            call
            for call in calls[-30:]
            if call.answered is None and call.kind in {"create", "run", "job"}
            if call.job is None
        ]
        if waiting and self.rng.random() < 0.5:
            return self.rng.choice(waiting)  # type: ignore[no-any-return]
        call = self._new_call()
        if call is not None:
            calls.append(call)
        return call

    def _new_call(self) -> Call | None:
        rng, world = self.rng, self.world
        number = len(world.log.calls) + 1
        schedules = sorted(world.store.schedules.values(), key=lambda each: each.name)
        alive = [each for each in schedules if each.state in {"ACTIVE", "PAUSED"}]
        kind = "create" if len(alive) < 2 else rng.choice(KINDS)
        if kind == "create":
            tenant = rng.choice(sorted(world.tenants))
            call = Call(number, kind, f"{tenant}-{number}", world.now)
            call.spec, call.key = self.specs.new(number), f"key-{number}"
            self.by_name[call.name] = call
            return call
        if kind == "job":
            return self.jobs.new(number, alive)
        pool = alive if rng.random() < 0.95 else schedules
        # Changes come in bursts.
        names = [each.name for each in pool]
        if self._favourite in names and rng.random() < 0.6:
            target = next(each for each in pool if each.name == self._favourite)
        else:
            target = rng.choice(pool)
            self._favourite = target.name
        call = Call(number, kind, target.name, world.now)
        call.schedule_id = target.schedule_id
        if kind == "edit":
            before = self.world.model_spec(target.schedule_id, target.version)
            call.spec = self.specs.edited(before, number)
        if kind == "run":
            earlier = [
                each.key
                for each in world.log.calls
                if each.kind == "run" and each.name == target.name
            ]
            reuse = bool(earlier) and rng.random() < 0.3
            call.key = rng.choice(earlier) if reuse else f"key-{number}"
        return call

    def _make(self, process: Any, call: Call, now: datetime) -> Any:
        tenant = call.name.split("-")[0]
        who, changes = self.identity(process, tenant), process.changes
        target = call.schedule_id or ""
        if call.kind == "create":
            assert call.spec is not None
            wanted = request_of(call.spec, call.name, call.number, call.key)
            return create_schedule(process.registry, who, wanted, now)
        if call.kind == "job":
            return self.jobs.start(process, who, call, now)
        if call.kind == "edit":
            assert call.spec is not None
            found = change_schedule.find_current(changes, tenant, target)
            definition, marks = definition_of(call.spec), {"call": call.mark}
            return change_schedule.edit(
                *(changes, who, found, definition, now),
                description="",
                tags=marks,
                reason=call.mark,
            )
        if call.kind == "run":
            key = call.key or ""
            return run_now(changes, who, target, now, key=key, reason=call.mark)
        if call.kind == "backfill":
            call.request = call.request or self._backfill_request(target, now)
            return backfill(changes, who, target, call.request, now)
        plain: dict[str, Any] = {
            "pause": change_schedule.pause,
            "resume": change_schedule.resume,
            "cancel": change_schedule.cancel,
        }
        return plain[call.kind](changes, who, target, now, reason=call.mark)

    def identity(self, process: Any, tenant: str) -> Caller:
        """Return who calls, as the API finds out.

        Raises:
            Forbidden: the tenant is suspended.
        """
        who = identify(process.directory, self.world.arns[tenant], "api test")
        assert isinstance(who, Caller)
        return who

    def _backfill_request(self, schedule_id: str, now: datetime) -> BackfillRequest:
        first = now - self.rng.uniform(2, 200) * MINUTE
        last = None
        if self.rng.random() < 0.5:
            last = first + self.rng.random() * (now - first)
        return BackfillRequest(
            first,
            last,
            limit=self.rng.choice((3, 10, 40)),
            per_minute=self.rng.choice((6, 60, 600)),
            overlap=self._own_overlap(schedule_id),
        )

    def _own_overlap(self, schedule_id: str) -> Overlap | None:
        """Return the policy of what a backfill makes; None for the version's."""
        if not self.is_tracked(schedule_id):
            return None
        found: Overlap | None = self.rng.choice((None, None, *Overlap))
        return found

    def is_tracked(self, schedule_id: str) -> bool:
        """Whether a schedule's consumers report back; no edit changes it here."""
        found = self.world.store.schedules.get(schedule_id)
        call = self.by_name.get(found.name) if found else None
        return bool(call and call.spec and call.spec.tracked)

    # --- what is true at once ---------------------------------------------------

    def _answered(self, call: Call) -> None:
        world = self.world
        if call.kind == "job":
            return
        if call.kind == "create":
            call.schedule_id = call.answer.schedule.schedule_id
        rows = world.store.by_schedule[call.schedule_id]
        call.states = {name: str(row.state) for name, row in rows.items()}
        if call.kind in {"pause", "cancel"} and call.answer.changed:
            self._note_stop(call)
        if call.kind == "backfill":
            self._judge_backfill(call)
        if call.kind == "run" and call.answer.occurrence.occurrence_id not in rows:
            self._violate("a run has its row", f"{call.mark} has none", call)

    def _note_stop(self, call: Call) -> None:
        versions = self.world.version_log(call.schedule_id)
        made = [each for each in versions if each.reason == call.mark]
        if not made:
            self._violate("an answered change is in the log", call.mark, call)
            return
        ended = versions[made[0].version - 2]
        stop = Stop(call, ended.version, ended.ends_at, call.answer.finished)
        self.stops[call.schedule_id or ""].append(stop)

    def _judge_backfill(self, call: Call) -> None:
        if self.world.steps == call.step:
            Backfills(self.world, call).judge()

    def judge_send(self, send: Send) -> None:
        """Judge a message at the moment that a queue accepts it."""
        text = f"{send.occurrence_id} of {self.world.short(send.schedule_id)}"
        receivable = send.relay_now + timedelta(seconds=send.delay)
        if receivable < send.available_at:
            early = f"{text}: receivable {receivable}, available {send.available_at}"
            self._violate_id("nothing is early", early, send.schedule_id)
        for stop in self.stops[send.schedule_id]:
            if not self._may_follow(send, stop):
                late = (
                    f"{text} after {stop.call.kind} ({stop.call.mark}) as of "
                    f"{stop.as_of}, answered {stop.call.answered}; was "
                    f"{stop.call.states.get(send.occurrence_id)} then"
                )
                self._violate_id(self._kind(send, stop), late, send.schedule_id)
        self.sent.add(send.occurrence_id)

    def _kind(self, send: Send, stop: Stop) -> str:
        """Return which promise a message after a stop breaks."""
        state = stop.call.states.get(send.occurrence_id)
        if state == "CANCELED" and send.time > stop.as_of:
            return "what stands runs"
        return "a later stop stops too" if self._stood(send, stop) else STOPS

    def _stood(self, send: Send, stop: Stop) -> bool:
        """Whether an earlier stop than this one let an outbox record stand."""
        return any(
            each.is_stopped and each.ends_at < send.time
            for each in self.world.version_log(send.schedule_id)
            if send.version <= each.version < stop.version
        )

    def _may_follow(self, send: Send, stop: Stop) -> bool:
        """Whether an answered pause or cancel lets a message pass.

        What a relay had in hand when the call was answered, or had sent before; of
        UNTRACKED versions, the outbox records of times after as_of;
        what was asked for by hand since.
        """
        call = stop.call
        assert call.answered is not None
        if send.version > stop.version or send.task_began < call.answered:
            return True
        if send.occurrence_id in self.sent:
            return True
        row = self.world.store.by_schedule[send.schedule_id][send.occurrence_id]
        if row.asked_at is not None:
            return bool(row.asked_at > stop.as_of)
        if send.time <= stop.as_of:
            return False
        if not stop.finished:
            return True
        tracked = self.is_tracked(send.schedule_id)
        return not tracked and call.states.get(send.occurrence_id) == "SCHEDULED"

    def _violate(self, invariant: str, text: str, call: Call) -> None:
        self._violate_id(invariant, text, call.schedule_id)

    def _violate_id(self, invariant: str, text: str, schedule: str | None) -> None:
        self.world.log.violate(invariant, self.world.steps, text, schedule)


def _told(call: Call) -> str:
    answer = call.answer
    if call.kind in CHANGES:
        return (
            f"version {answer.schedule.version} {answer.schedule.state}, "
            f"changed={answer.changed} finished={answer.finished} "
            f"already {[each.split('.', 1)[1] for each in answer.already_dispatched]}"
        )
    if call.kind == "backfill":
        return str([f"{i.scheduled_for:%d %H:%M} {i.outcome}" for i in answer.items])
    return "done"
