"""Which policy values a world's occurrences went by."""

from typing import Any

from tests.simulation.history import History
from tests.simulation.specs import values_of


def covered(world: Any, histories: dict[str, History]) -> set[str]:
    """Return the values of all versions of which an occurrence was decided."""
    found: set[str] = set()
    for schedule_id, history in histories.items():
        rows = world.store.by_schedule[schedule_id].values()
        for number in {row.version for row in rows if row.state != "PLANNED"}:
            owner = history.owners.get(number)
            if owner is None:
                continue
            found |= values_of(owner.spec)
            zone = owner.spec.rule.zone
            if zone == world.zone and world.change is not None:
                found |= _changes(world, rows, number)
    return found


def _changes(world: Any, rows: Any, number: int) -> set[str]:
    """Return whether a version's occurrences lie on both sides of a change."""
    times = [row.scheduled_for for row in rows if row.version == number]
    if not min(times) < world.change <= max(times):
        return set()
    return {f"clocks go {world.way}"}
