"""Which revisions of a resource a caller's change is meant for (`If-Match`)."""

from dataclasses import dataclass
from typing import Final

from hourbell.usecases.revisions import stale


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be stored for a change to go on.

    Attributes:
        revisions: any of these; None when whatever exists will do.
    """

    revisions: frozenset[int] | None = None

    def check(self, current: int) -> int | None:
        """Return the revision that must still be stored when the change is written.

        Raises:
            PreconditionFailed: the current revision is none of those.
        """
        if self.revisions is None:
            return None
        if current not in self.revisions:
            raise stale(current)
        return current


ANY: Final = Expected()
