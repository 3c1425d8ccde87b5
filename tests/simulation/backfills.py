"""Whether a backfill took the right times, and did with each what docs/api.md says."""

from datetime import datetime, timedelta
from typing import Any

from tests.simulation.history import History
from tests.simulation.log import Call
from tests.simulation.rules import INSTANT, spelled

# What was created is told as it was written, and may be released in the same call.
WRITTEN = ("created", "DEFERRED")
SECOND = timedelta(seconds=1)
UNSETTLED = 20 * SECOND


class Backfills:
    """Judges one answered backfill, which nothing else came in between of."""

    def __init__(self, world: Any, call: Call) -> None:
        self.world = world
        self.call = call
        self.history = History(world, call.schedule_id or "")
        self.rows: dict[str, Any] = world.store.by_schedule[call.schedule_id]
        self.now = call.nows[-1]
        self.made: set[datetime] = {
            time for owner, time in world.store.backfills if owner == call.schedule_id
        }

    def judge(self) -> None:
        """Note what is wrong with the answer."""
        answer = self.call.answer
        listed = [item.scheduled_for for item in answer.items]
        wanted = self._wanted(self.call.request.first, answer.last)
        if answer.next_from is not None:
            wanted = [time for time in wanted if time < answer.next_from]
        if answer.skipped_before is None:
            missing = sorted(set(wanted) - set(listed))
            foreign = sorted(set(listed) - set(wanted) - self.made)
            if missing or foreign or listed != sorted(listed):
                self._violate(f"left out {missing}, took {foreign}")
        for item in answer.items:
            self._judge_item(item)

    def _violate(self, text: str) -> None:
        self.world.log.violate(
            "a backfill does what it says",
            self.world.steps,
            f"{self.history.name}: {self.call.mark}: {text}",
            self.history.schedule_id,
        )

    def _owner(self, time: datetime) -> int | None:
        """Return the ACTIVE version whose interval a time lies in."""
        for number, owner in self.history.owners.items():
            start, end = owner.entry.effective_from, owner.entry.effective_to
            if owner.state != "ACTIVE" or start is None:
                continue
            if start <= time and (end is None or time < end):
                return number
        return None

    def _wanted(self, first: datetime, last: datetime) -> list[datetime]:
        """Return the range's times: each owner's, and nobody's by the last rule."""
        newest = max(self.history.owners)
        found = []
        for number, owner in self.history.owners.items():
            for time in owner.spec.rule.times(first, last - INSTANT):
                holder = self._owner(time)
                if holder == number or (holder is None and number == newest):
                    found.append(time)
        return sorted(set(found))

    def _judge_item(self, item: Any) -> None:
        time, outcome = item.scheduled_for, str(item.outcome)
        number = self._owner(time)
        label = f"{time:%d %H:%M:%S} {outcome} {item.state}"
        if outcome == "skipped":
            recent = time > self.now - UNSETTLED - 5 * SECOND
            if number is None and not recent:
                self._violate(f"{label}, though nobody owns it")
            return
        row = self.rows.get(item.occurrence_id or "")
        if row is None or row.scheduled_for != time:
            if not self._is_covered(number, time):
                self._violate(f"{label}, without a row")
        elif row.state != item.state and (outcome, item.state) != WRITTEN:
            self._violate(f"{label}, and its row is {row.state}")
        elif row.state == "MISSED":
            self._violate(f"{label}, and stays missed")
        elif outcome == "created":
            self._judge_created(row, label)

    def _judge_created(self, row: Any, label: str) -> None:
        if row.backfilled_at is None:
            self._violate(f"{label}, and its row knows nothing of it")
        usual = self.history.owners[row.version].spec.overlap
        wanted, got = self.call.request.overlap or usual, row.overlap or usual
        if wanted != got:
            self._violate(f"{label} under {got}, not {wanted}")

    def _is_covered(self, number: int | None, time: datetime) -> bool:
        """Whether a canceled gap row speaks for a time."""
        if number is None:
            return False
        name = f"{self.history.schedule_id}.v{number}.{spelled(time)}"
        return name not in self.rows and any(
            row.version == number and row.covers(time) and row.state != "MISSED"
            for row in self.rows.values()
        )
