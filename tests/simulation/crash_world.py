"""A world without chance, in which one process stops at one port call."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hourbell.domain.definition import Tenant
from hourbell.domain.errors import HourbellError
from hourbell.usecases.backfill_values import BackfillRequest

from tests.simulation.afterwards import Afterwards
from tests.simulation.consumers import Scripted
from tests.simulation.faults import Crash
from tests.simulation.lives import BEGIN, MINUTE, SECOND, TENANT, Act, Life
from tests.simulation.log import Call
from tests.simulation.model import Model
from tests.simulation.shards import Sharding
from tests.simulation.world import World

REPEATED = 6 * SECOND
# What every pass calls, whatever it finds; other lives stop there.
PASSED_OVER = {"page", "parked", "acquire", "release"}


class CrashWorld(World):
    """Lives one life, and stops a process where it is told to.

    Attributes:
        life: what happens.
        point: at which port call, counted from 1; None for nowhere.
        after: whether the call takes effect first.
        calls: how many port calls there were so far, by name.
        names: of these calls, in order.
        last_write: number of the call in which something was stored last.
        moves: the transitions that were made.
    """

    shard_count, group_count = 1, 1
    # Nobody orders anew what a mover was stopped at: its order comes again.
    has_operator = False

    def __init__(
        self, life: Life, point: int | None = None, *, after: bool = False
    ) -> None:
        self.life, self.point, self.after = life, point, after
        self.calls: Counter[str] = Counter()
        self.names: list[str] = []
        self.made = self.last_write = 0
        self.moves: set[str] = set()
        self.where = ""
        super().__init__(0)
        self.log.calm = life.is_calm
        self.callers.closed = True
        self._made: dict[int, Call] = {}
        self._handlers_gone: dict[Any, Any] = {}
        for number, act in enumerate(life.acts, start=1):
            self.at(BEGIN + act.after, "act", (number, act))
        for kind, span in (
            ("ticks", life.outage),
            ("handler", life.without_handler),
        ):
            if span is not None:
                self.at(BEGIN + span[0], f"{kind} end", span[1])
                self.at(BEGIN + span[1], f"{kind} begin")

    patience = 0 * SECOND

    def _make_consumers(self) -> Scripted:
        found = Scripted(self, self.life.work, self.life.others)
        found.messages.lost_from = self.life.lost_from
        return found

    def _limited(self, tenant: Tenant) -> Tenant:
        quotas = replace(tenant.quotas, running=self.life.running)
        return replace(tenant, quotas=quotas)

    def _shard(self) -> Sharding:
        return Sharding(self, self.life.counts)

    def _draw_rates(self) -> dict[str, float]:
        self.now = self.start = BEGIN
        return {}

    def reached(self, name: str, *, after: bool) -> None:
        """Stop the process if this is where.

        Raises:
            Crash: it is.
        """
        if self.life.passes_are_many and name in PASSED_OVER:
            return
        if not after:
            self.made += 1
            self.calls[name] += 1
            self.names.append(name)
        if self.made == self.point and after == self.after and not self.where:
            self.where = f"{'after' if after else 'before'} {name}"
            raise Crash

    def note(self, text: str) -> None:
        """Write a line, and remember where something was stored last."""
        if text.startswith(("row ", "dispatch ", "version ", "epoch ")):
            self.last_write = self.made
            if " -> " in text:
                self.moves.add(_move(text))
        super().note(text)

    def live(self) -> None:
        """Let all of it happen, and judge it."""
        end = BEGIN + self.life.lasts
        while self._heap[0][0] <= end:
            self._next()
        self.now = end
        self.callers.jobs.settle()
        Model(self).judge()
        if self.life.lost_from is not None:
            Afterwards(self).live()

    def _handlers(self) -> dict[str, Any]:
        return super()._handlers() | {
            "act": self._act,
            "announce again": lambda _: self.sharding.announce_once(),
            "ticks end": self._end_ticks,
            "ticks begin": self.calendar.end_outage,
            "handler end": self._end_handlers,
            "handler begin": self._begin_handlers,
        }

    def _end_handlers(self, _: Any) -> None:
        for key in [key for key in self.store.handlers if key[0] == TENANT]:
            self._handlers_gone[key] = self.store.handlers.pop(key)

    def _begin_handlers(self, _: Any) -> None:
        self.store.handlers.update(self._handlers_gone)

    def _end_ticks(self, until: timedelta) -> None:
        self.calendar.down = dict.fromkeys(self.life.down, BEGIN + until)
        self.calendar.since = (self.life.down[0], self.now)

    def _act(self, what: tuple[int, Act]) -> None:
        number, act = what
        if act.kind == "shards":
            self.sharding.announce_once()
            return
        if act.kind in {"replay", "cancel one"}:
            self._meddle(what)
            return
        call = self._made.get(number) or self._new(number, act)
        self._made[number] = call

        def make(process: Any, attempt: str) -> None:
            self.callers.perform(process, attempt, call)

        try:
            self.task("caller", call.kind, make)
        except HourbellError as error:
            self.note(f"call failed: {error}")
        if call.answered is None:
            self.at(self.now + REPEATED, "act", what)

    def _meddle(self, what: tuple[int, Act]) -> None:
        """Replay what is DEAD, or cancel what runs."""
        is_replay = what[1].kind == "replay"
        state = "DEAD" if is_replay else "RUNNING"
        rows = [row for row in self.store.all_rows() if row.state == state]
        ask = self.consumers.replay if is_replay else self.consumers.cancel
        if not rows or not ask(rows[0]):
            self.at(self.now + REPEATED, "act", what)

    def _new(self, number: int, act: Act) -> Call:
        schedules = list(self.store.schedules.values())
        if act.kind == "create":
            call = Call(number, "create", f"{TENANT}-{number}", self.now, act.spec)
            call.key = act.key
            self.callers.by_name[call.name] = call
        elif act.kind.startswith("job "):
            call = self.callers.jobs.scripted(
                number, act.kind.removeprefix("job "), act.spec, schedules
            )
        else:
            call = Call(number, act.kind, schedules[0].name, self.now, act.spec)
            call.schedule_id, call.key = schedules[0].schedule_id, act.key
            call.request = _backfill(self.now) if act.kind == "backfill" else None
        self.log.calls.append(call)
        return call


def _backfill(now: datetime) -> BackfillRequest:
    """Return a request for times that were MISSED and times before the schedule."""
    return BackfillRequest(now - 13 * MINUTE, None, limit=10, per_minute=60)


def _move(text: str) -> str:
    """Return the transition that a line about a row tells."""
    words = text.split()
    place = words.index("->")
    before = words[place - 1]
    return f"{before if before.isupper() else 'none'} -> {words[place + 1]}"
