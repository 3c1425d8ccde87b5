"""Who owned which times, recomputed from the calls and the version log."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.log import Call, Log, Spec
from tests.simulation.rules import INSTANT, ceil_second

_FAR = timedelta(days=6)


@dataclass(frozen=True)
class Owner:
    """A version as the model knows it.

    Attributes:
        call: the call that made it.
        entry: the store's entry of the version log; only its numbers and intervals
            count here.
        spec: what the calls say that it says.
        state: what the calls say that the schedule became with it.
    """

    call: Call
    entry: Any
    spec: Spec
    state: str

    @property
    def number(self) -> int:
        """The version's number."""
        return int(self.entry.version)


class History:
    """All versions of one schedule."""

    def __init__(self, world: Any, schedule_id: str) -> None:
        self.world = world
        self.log: Log = world.log
        self.schedule_id = schedule_id
        self.name: str = world.store.schedules[schedule_id].name
        self.owners: dict[int, Owner] = {}
        for entry in world.version_log(schedule_id):
            self._add(entry)

    def _violate(self, invariant: str, text: str) -> None:
        full = f"{self.name}: {text}"
        self.log.violate(invariant, self.world.steps, full, self.schedule_id)

    def _add(self, entry: Any) -> None:
        if entry.version == 1:
            found = [
                call
                for call in self.log.calls
                if call.kind == "create" and call.name == self.name
            ]
        else:
            found = [
                call
                for call in self.log.calls
                if call.mark == entry.reason and call.name == self.name
            ]
        if len(found) != 1:
            self._violate("a version has its call", f"v{entry.version} {entry.reason}")
            return
        call = found[0]
        before = self.owners.get(entry.version - 1)
        # What an earlier attempt wrote may take effect after the last one's refusal.
        born = self.world.store.born(entry.ref)
        known = born <= (call.answered or born)
        retried = call.refused == "tenant_suspended" and len(call.nows) > 1
        if call.refused is not None and known and not retried:
            self._violate("what is refused is not stored", f"{call.mark} {call.kind}")
        owner = Owner(
            call, entry, self._spec(call, entry, before), _state(call, before)
        )
        if owner.state != entry.state:
            text = f"v{entry.version} is {entry.state}, {call.mark} makes {owner.state}"
            self._violate("a version is what its call made", text)
        self.owners[entry.version] = owner

    def _spec(self, call: Call, entry: Any, before: Owner | None) -> Spec:
        if before is None:
            assert call.spec is not None
            rule = call.spec.rule
            begun = ceil_second(rule.start or entry.created_at)
            anchor = begun if rule.kind == "rate" else None
            return replace(call.spec, rule=replace(rule, anchor=anchor))
        if call.spec is None:
            return before.spec
        return call.spec.following(before.spec, entry.created_at)

    def judge_intervals(self) -> None:
        """Each time has at most one owner, and no change owns what was before it."""
        for number, owner in self.owners.items():
            entry, before = owner.entry, self.owners.get(number - 1)
            if entry.effective_from is None:
                self._violate("a handover ends", f"v{number} has not taken over")
            elif before is None:
                starts = {now + INSTANT for now in owner.call.nows}
                if entry.effective_from not in starts:
                    text = f"v1 begins {entry.effective_from}, created {starts}"
                    self._violate("a schedule begins after its creation", text)
            elif before.entry.effective_to != entry.effective_from:
                text = (
                    f"v{number - 1} ends {before.entry.effective_to}, v{number} begins "
                    f"{entry.effective_from}"
                )
                self._violate("intervals meet", text)
            elif before.entry.ends_at not in owner.call.nows:
                text = f"v{number}: as_of {before.entry.ends_at}, {owner.call.nows}"
                self._violate("as_of is when the call was made", text)

    def due(self, until: datetime) -> dict[datetime, int]:
        """Return every time up to an instant that an ACTIVE version owns, with it.

        Where `most` counts, over all versions, the rest is nobody's.
        """
        found: dict[datetime, int] = {}
        for number, owner in sorted(self.owners.items()):
            entry = owner.entry
            if owner.state != "ACTIVE" or entry.effective_from is None:
                continue
            last = until
            if entry.effective_to is not None:
                last = min(until, entry.effective_to - INSTANT)
            for time in owner.spec.rule.times(entry.effective_from, last):
                most = owner.spec.rule.most
                if most is None or len(found) < most:
                    found[time] = number
        return found

    def goes_on(self, until: datetime) -> datetime | None:
        """Return the first time after an instant, if there is one within days."""
        after = [each for each in self.due(until + _FAR) if each > until]
        return min(after, default=None)

    def stops(self, number: int) -> list[Owner]:
        """Return the versions from this one on that a pause or cancel ended."""
        return [
            owner
            for later, owner in self.owners.items()
            if later >= number
            and (heir := self.owners.get(later + 1)) is not None
            and heir.state in {"PAUSED", "CANCELED"}
        ]


def _state(call: Call, before: Owner | None) -> str:
    fixed = {
        "create": "ACTIVE",
        "pause": "PAUSED",
        "resume": "ACTIVE",
        "cancel": "CANCELED",
    }
    return fixed.get(call.kind) or (before.state if before else "ACTIVE")
