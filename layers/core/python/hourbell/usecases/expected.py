"""Which revisions of a resource a caller's change is meant for (`If-Match`)."""

from dataclasses import dataclass
from typing import Final

from hourbell.usecases.revisions import another, stale


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be stored for a change to go on.

    A name leads to another schedule after a cancel and a create, whose revisions begin
    at 1 again; a tag that names its schedule tells the two apart.

    Attributes:
        revisions: any of these; None when whatever exists will do.
        tagged: or any of these, each of the schedule with this id.
    """

    revisions: frozenset[int] | None = None
    tagged: frozenset[tuple[int, str]] = frozenset()

    def check(self, current: int, schedule_id: str | None = None) -> int | None:
        """Return the revision that must still be stored when the change is written.

        Args:
            current: the revision that is stored.
            schedule_id: of the schedule that has it; None of what is no schedule.

        Raises:
            PreconditionFailed: the current revision is none of those, or another
                schedule's.
        """
        if self.revisions is None:
            return None
        if current in self.revisions or (current, schedule_id) in self.tagged:
            return current
        if any(current == revision for revision, _ in self.tagged):
            raise another(current)
        raise stale(current)


ANY: Final = Expected()
