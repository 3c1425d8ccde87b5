"""What must be there when all is quiet: a recomputation from calls, rules and sends."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.actions import CHANGES
from tests.simulation.history import History, Owner
from tests.simulation.log import Call, Send
from tests.simulation.misfires import Misfires
from tests.simulation.rules import INSTANT, available_at, spelled

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HORIZON = 180 * SECOND
DAY = timedelta(days=1)
WORKED = {
    *("RUNNING", "SUCCEEDED", "RETRY_WAIT", "WAITING_OVERLAP", "SKIPPED_OVERLAP"),
    "DEAD",
}
UNCLAIMED = {"NEVER_CLAIMED", "DEADLINE_PASSED"}
DISPATCHED = "already_dispatched tells what runs"


class Model:
    """Judges a world at its end."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.log = world.log
        self.store = world.store
        self.now: datetime = world.now
        self.sends: dict[str, list[Send]] = defaultdict(list)
        for send in self.log.sends:
            self.sends[send.occurrence_id].append(send)
        self.histories = {
            each: History(world, each) for each in sorted(self.store.schedules)
        }

    def judge(self) -> None:
        """Note every violation in the log."""
        for call in self.log.calls:
            self._judge_call(call)
        for schedule_id, history in self.histories.items():
            history.judge_intervals()
            rows = self.store.by_schedule[schedule_id]
            due = history.due(self.now)
            self._judge_due(history, due, rows)
            self._judge_rows(history, due, rows)
            self._judge_ids(history, self._first(rows))
            self._judge_end(history, rows)
            self._judge_dispatched(history)
            Misfires(self.world, history, due, self._first(rows)).judge()
        self.world.workbook.judge()
        self._judge_leftovers()
        self._judge_quota()
        self.world.sharding.judge()
        if self.log.calm:
            self._judge_punctuality()

    def _violate(self, invariant: str, text: str, history: History | None) -> None:
        name = f"{history.name}: " if history else ""
        schedule = history.schedule_id if history else None
        self.log.violate(invariant, self.world.steps, name + text, schedule)

    def _first(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Return the rows, where a place was taken anew with what expired there.

        A stop that finds a row after weeks puts its gap row where what ran has expired.
        What was decided and sent before then is judged by the row of then.
        """
        return {name: self.store.expired.get(name, row) for name, row in rows.items()}

    # --- every due time is accounted for ----------------------------------------

    def _judge_due(
        self, history: History, due: dict[datetime, int], rows: dict[str, Any]
    ) -> None:
        first = self._first(rows).values()
        gaps = [row for row in first if row.decision is not None]
        for time, number in due.items():
            name = f"{history.schedule_id}.v{number}.{spelled(time)}"
            row = rows.get(name)
            if row is None:
                self._judge_covered(history, time, number, gaps)
            else:
                self._judge_fate(history, row)

    def _judge_covered(
        self, history: History, time: datetime, number: int, gaps: list[Any]
    ) -> None:
        found = [
            gap
            for gap in gaps
            if gap.version == number and gap.scheduled_for <= time <= gap.decision.last
        ]
        text = f"v{number} {time:%d %H:%M:%S}"
        if not found:
            invariant = "every due time is accounted for"
            # A later change can be the earlier one by another clock.
            stops = [stop.entry.ends_at + 4 * SECOND for stop in history.stops(number)]
            if any(stop >= time for stop in stops):
                invariant = "a stop accounts for what it cuts off"
            self._violate(invariant, f"{text}: nothing", history)
        elif len(found) > 1:
            self._violate("no time has two accounts", f"{text}: two gap rows", history)
        elif found[0].state != "CANCELED":
            first = found[0].decision.runs_from
            if found[0].state == "PLANNED" or (first is not None and time >= first):
                text += f": no row, gap row {found[0].state}, runs from {first}"
                self._violate("every due time is accounted for", text, history)

    def _judge_fate(self, history: History, row: Any) -> None:
        """Judge the row of a time that its version owns."""
        sent = row.occurrence_id in self.sends
        text = f"v{row.version} {row.scheduled_for:%d %H:%M:%S} is {row.state}"
        if row.state == "ENQUEUED" or self._is_worked(row):
            if not sent:
                self._violate("ENQUEUED means sent", text, history)
        elif row.state == "CANCELED":
            if not self._is_stopped(history, row):
                text += f" ({row.reason}), and nobody stopped it"
                self._violate("every due time is accounted for", text, history)
        elif row.state == "DEFERRED":
            self._judge_deferred(history, row)
        elif row.state not in {"MISSED", "DEAD"}:
            self._violate("every due time is accounted for", text, history)
        unsent = row.state in {"MISSED", "DEAD", "DEFERRED", "PLANNED"}
        by_work = row.attempt or row.waits or row.reason in UNCLAIMED
        if sent and unsent and row.backfilled_at is None and not by_work:
            self._violate("what was sent is ENQUEUED", text, history)

    def _is_worked(self, row: Any) -> bool:
        """Whether workers had to do with a row."""
        return self.world.is_tracked(row.schedule_id) and row.state in WORKED

    def _is_stopped(self, history: History, row: Any) -> bool:
        """Whether somebody canceled it, or stopped its version."""
        asked = row.occurrence_id in self.world.workbook.cancels
        return asked or bool(history.stops(row.version))

    def _judge_deferred(self, history: History, row: Any) -> None:
        if row.available_at <= self.now - MINUTE:
            text = f"{row.occurrence_id.split('.', 1)[1]}, {row.available_at}"
            self._violate("nothing stays deferred", text, history)

    def _judge_rows(
        self, history: History, due: dict[datetime, int], rows: dict[str, Any]
    ) -> None:
        """Judge rows that no version owns, and what was asked for by hand."""
        for name, row in rows.items():
            time, text = row.scheduled_for, f"{name.split('.', 1)[1]} is {row.state}"
            if row.run is not None or row.backfilled_at is not None:
                self._judge_by_hand(history, due, row)
                continue
            owner = history.owners.get(row.version)
            if owner is None or time not in owner.spec.rule.times(time, time):
                self._violate("no row without a due time", text, history)
            elif time <= self.now and due.get(time) != row.version:
                if row.state != "CANCELED":
                    text += ", and not its version's time"
                    self._violate("only owners run", text, history)
                elif name in self.sends and not owner.spec.tracked:
                    text += ", and was sent"
                    self._violate("only owners run", text, history)
                elif self._overcounted(history, owner, row):
                    self._violate("no row without a due time", text, history)

    def _overcounted(self, history: History, owner: Owner, row: Any) -> bool:
        """Whether it is of its version's own times, and over its count."""
        entry = owner.entry
        inside = entry.effective_from and entry.effective_from <= row.scheduled_for
        if entry.effective_to is not None and row.scheduled_for >= entry.effective_to:
            inside = False
        return bool(
            inside and owner.state == "ACTIVE" and not history.stops(row.version)
        )

    def _judge_by_hand(
        self, history: History, due: dict[datetime, int], row: Any
    ) -> None:
        text = f"{row.occurrence_id.split('.', 1)[1]} is {row.state}"
        if row.state == "CANCELED":
            if not self._is_stopped(history, row):
                self._violate("what was asked for runs", text, history)
        elif row.state == "DEFERRED":
            self._judge_deferred(history, row)
        elif row.occurrence_id not in self.sends or not (
            row.state == "ENQUEUED" or self._is_worked(row)
        ):
            self._violate("what was asked for runs", text, history)
        if row.run is None:
            rule = history.owners[row.version].spec.rule
            owner = due.get(row.scheduled_for)
            if owner not in {None, row.version}:
                text += f", and v{owner} owns that time"
                self._violate("a backfill leaves times to their owners", text, history)
            if not rule.times(row.scheduled_for, row.scheduled_for):
                self._violate("no row without a due time", text, history)

    def _judge_ids(self, history: History, rows: dict[str, Any]) -> None:
        """One id for each time, by which it was sent or may still be claimed."""
        by_time: dict[datetime, list[str]] = defaultdict(list)
        for name, row in rows.items():
            if row.run is None and name in self.sends:
                by_time[row.scheduled_for].append(name)
        for time, names in by_time.items():
            live = names
            if self.world.is_tracked(history.schedule_id):
                live = [name for name in names if rows[name].state != "CANCELED"]
            if len(live) > 1:
                text = f"{time:%d %H:%M} was sent as {live}"
                self._violate("one id for each time", text, history)
        for name, sends in self.sends.items():
            if name in rows:
                self._judge_messages(history, rows[name], sends)

    def _judge_messages(self, history: History, row: Any, sends: list[Send]) -> None:
        spec = history.owners[row.version].spec
        text = f"{row.occurrence_id.split('.', 1)[1]}"
        if any(each.payload != {"n": spec.payload} for each in sends):
            text += f" carried {sends[0].payload}, not {spec.payload}"
            self._violate("a message carries its version's payload", text, history)
        lane = "flexible" if spec.window else "strict"
        tier = self.world.tenants[row.tenant_id].tier
        if row.misfire or row.backfilled_at is not None:
            lane = "catchup"
        queues = {
            "ring": f"{tier}-{lane}",
            "own": f"arn:aws:sqs:us-east-1:1:dedicated-{lane}",
            "far": "arn:aws:sqs:us-east-1:1:external",
        }
        right = queues[spec.handler]
        if row.run is None and any(each.queue != right for each in sends):
            text += f" went to {sends[0].queue}, not {right}"
            self._violate("a message goes to its lane", text, history)
        if row.run is None and row.backfilled_at is None and not row.misfire:
            when = available_at(row.occurrence_id, row.scheduled_for, spec.window)
            first = sends[:1] if spec.tracked else sends
            if any(each.available_at != when for each in first):
                text += f" available {sends[0].available_at}, not {when}"
                self._violate("an occurrence has its own time", text, history)

    # --- what is left at the end ------------------------------------------------

    def _judge_end(self, history: History, rows: dict[str, Any]) -> None:
        schedule = self.store.schedules[history.schedule_id]
        last = history.owners[max(history.owners)]
        planned = [row for row in rows.values() if row.state == "PLANNED"]
        # What a slow pass planned for a version that ends before is canceled when due.
        planned = [row for row in planned if not _is_stray(history, row)]
        planned = self._without_spare(planned)
        times = [f"v{row.version} {row.scheduled_for:%d %H:%M:%S}" for row in planned]
        following, state = history.goes_on(self.now), last.state
        if _is_just_over(history, self.now, following):
            return
        if state == "ACTIVE" and following is None:
            state = "COMPLETED"
        if schedule.state != state or schedule.handover:
            text = f"{schedule.state} handover={schedule.handover}, should be {state}"
            self._violate("a schedule is in its state", text, history)
        if state != "ACTIVE":
            if planned:
                self._violate("exactly one chain", f"{state}, planned {times}", history)
            return
        cursor = planned[0].scheduled_for if planned else self.now + DAY
        due = history.due(cursor + MINUTE)
        left = [time for time in due if self.now < time < cursor]
        names = [f"{history.schedule_id}.v{due[t]}.{spelled(t)}" for t in left]
        if any(row.version != last.number for row in planned[:1]) or len(planned) > 1:
            text = f"planned {times}, the next time is {following}"
            self._violate("exactly one chain", text, history)
        elif (planned and cursor not in due) or any(name not in rows for name in names):
            text = f"planned {times}, due before it: {left}"
            self._violate("exactly one chain", text, history)

    def _without_spare(self, planned: list[Any]) -> list[Any]:
        """Leave out what was planned for a cancel of the row before that failed."""
        planned = sorted(planned, key=lambda row: row.scheduled_for)
        asked = self.world.workbook.cancels
        return [
            row
            for before, row in zip([None, *planned], planned, strict=False)
            if before is None or before.occurrence_id not in asked
        ]

    def _judge_leftovers(self) -> None:
        # What is parked comes up later; not what waits for a row that is gone.
        parked = {
            key
            for (_, key), each in self.store.parked.items()
            if each.reason != "TARGET_UNREADABLE"
        }
        for row in self.store.all_rows():
            when = f"{row.occurrence_id} available {row.available_at}"
            late = row.scheduled_for <= self.now
            if row.state == "PLANNED" and late:
                self._violate("nothing is left PLANNED in the past", when, None)
            if row.state == "SCHEDULED":
                self._violate("everything unacknowledged is relayed", when, None)
        for each in self.store.all_dispatches():
            if each.key in parked:
                continue
            if each.is_open and each.due <= self.now - 3 * MINUTE:
                self._violate("every dispatch row is settled", each.key.sort, None)

    def _judge_quota(self) -> None:
        counted = Counter(
            each.tenant_id
            for each in self.store.schedules.values()
            if each.state in {"ACTIVE", "PAUSED"}
        )
        for tenant in self.world.tenants:
            told = self.world.schedules.count(tenant)
            if told != counted[tenant] or told > self.world.quota:
                text = f"{tenant}: counted {told}, there are {counted[tenant]}"
                self._violate("the quota counts what counts", text, None)

    def _judge_punctuality(self) -> None:
        """Judge a run without faults: what was known ahead was sent ahead."""
        for history in self.histories.values():
            for time, number in history.due(self.now).items():
                owner = history.owners[number]
                known = owner.call.answered
                name = f"{history.schedule_id}.v{number}.{spelled(time)}"
                if known is None or time < known + HORIZON + MINUTE:
                    continue
                row = self.store.by_schedule[history.schedule_id].get(name)
                if row is None or row.state == "CANCELED" or row.backfilled_at:
                    continue
                sends = self.sends.get(name)
                if row.state != "DEFERRED" and not (
                    sends and sends[0].at < sends[0].available_at
                ):
                    text = f"v{number} {time:%d %H:%M}: {row.state} {sends}"
                    self._violate("on time without faults", text, history)

    # --- what calls answered ----------------------------------------------------

    def _judge_call(self, call: Call) -> None:
        if call.refused is not None or call.answer is None or call.kind == "job":
            return
        history = self.histories[call.schedule_id or ""]
        rows = self.store.by_schedule[call.schedule_id]
        if call.kind in CHANGES and call.answer.changed:
            marks = [owner.call.number for owner in history.owners.values()]
            if marks.count(call.number) != 1:
                text = f"{call.mark} {call.kind}: in the log {marks}"
                self._violate("an answered change is in the log", text, history)
        if call.kind == "run":
            self._judge_run(call, history)
        if call.kind == "backfill":
            for item in call.answer.items:
                if str(item.outcome) == "created" and item.occurrence_id not in rows:
                    text = f"{call.mark} created {item.occurrence_id}, there is no row"
                    self._violate("a backfill does what it says", text, history)

    def _judge_run(self, call: Call, history: History) -> None:
        same = [
            each.answer.occurrence.occurrence_id
            for each in self.log.calls
            if (each.kind, each.name, each.key) == ("run", call.name, call.key)
            and each.answer is not None
        ]
        runs = [run for run in self.store.runs if run[0] == history.schedule_id]
        keys = {
            each.key
            for each in self.log.calls
            if (each.kind, each.name) == ("run", call.name)
        }
        if len(set(same)) != 1 or len(runs) > len(keys):
            text = f"{call.key}: {set(same)}, {len(runs)} runs of {len(keys)} keys"
            self._violate("one run for each key", text, history)

    def _later(self, history: History) -> set[str]:
        """Return the ids of occurrences whose time to run is yet to come."""
        rows = self.store.by_schedule[history.schedule_id]
        return {
            name
            for name, row in rows.items()
            if row.state == "DEFERRED" and row.available_at > self.now - MINUTE
        }

    def _canceled_by_hand(self, history: History) -> set[str]:
        """Return the ids of occurrences that somebody canceled by their own names."""
        rows = self.store.by_schedule[history.schedule_id]
        return {
            name
            for name, row in rows.items()
            if (row.state, row.reason) == ("CANCELED", "CANCELED")
        }

    def _own_sends(self, history: History) -> dict[str, list[Send]]:
        own = history.schedule_id + ".v"
        return {name: each for name, each in self.sends.items() if name.startswith(own)}

    def _judge_dispatched(self, history: History) -> None:
        """What a change says that it lets run is what runs."""
        for number, owner in history.owners.items():
            call, ended = owner.call, history.owners.get(number - 1)
            if ended is None or call.answer is None or not call.answer.finished:
                continue
            if not call.answer.changed:
                continue  # An earlier attempt changed it, and nobody was told.
            told = set(call.answer.already_dispatched)
            assert call.answered is not None
            for name, sends in self._own_sends(history).items():
                row = self.store.by_schedule[history.schedule_id][name]
                ours = row.version < number and row.asked_at is None
                begun = sends[0].task_began < call.answered
                tracked = owner.spec.tracked or (begun and row.version < number - 1)
                after = row.scheduled_for > ended.entry.ends_at + INSTANT
                if ours and after and name not in told and not tracked:
                    text = f"{call.mark} {call.kind} told {sorted(told)}, {name} ran"
                    known = row.state == "CANCELED"
                    invariant = "what stands runs" if known else DISPATCHED
                    self._violate(invariant, text, history)
            unsent = told - set(self.sends) - self._later(history)
            # What was out of order, and overdue when it came, is the policy's to judge.
            rows = self.store.by_schedule[history.schedule_id]
            unsent = {name for name in unsent if rows[name].state != "MISSED"}
            for name in unsent - self._canceled_by_hand(history):
                if not history.stops(number) and not owner.spec.tracked:
                    text = f"{call.mark} {call.kind} told {name}, which never ran"
                    self._violate("what stands runs", text, history)


def _is_just_over(history: History, now: datetime, following: datetime | None) -> bool:
    """Whether the last time of all is so near that clocks differ about it."""
    if following is not None:
        return following <= now + 3 * SECOND
    last = max(history.due(now), default=None)
    return last is not None and last >= now - 3 * MINUTE


def _is_stray(history: History, row: Any) -> bool:
    """Whether a row lies after the end of its version."""
    end = history.owners[row.version].entry.effective_to
    return end is not None and row.scheduled_for >= end
