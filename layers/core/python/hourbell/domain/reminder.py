"""A reminder: when to see whether an open job has lost its message, or its worker."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.job import Job, JobState

UNTOLD: Final = timedelta(minutes=5)
"""How long a job may be PENDING before its worker is told of it again."""

UNHEARD: Final = timedelta(minutes=55)
"""How long a RUNNING job may show no progress.

Its queue gives a message up after 50 minutes of receives; until then it brings the
message again by itself.
"""

LONGEST: Final = timedelta(hours=6)
"""How long after having told a worker in vain it is told again at the latest."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """That an open job is to be seen after.

    Attributes:
        due_at: when.
        job_id: which one.
        step: the job's when it was made or resumed; each time has its own reminder.
        expires_at: the job's.
        tries: how often its worker was told since it last showed progress.
    """

    due_at: datetime
    job_id: str
    step: int
    expires_at: datetime
    tries: int = 0

    @property
    def place(self) -> str:
        """Where it stands among others: later ones sort after it."""
        return f"{place_at(self.due_at)}#{self.job_id}#{self.step}"

    def untouched(self, due_at: datetime) -> "Reminder":
        """Return the next one of a job that gets on."""
        return replace(self, due_at=due_at, tries=0)

    def in_vain(self, now: datetime) -> "Reminder":
        """Return the next one of a job that does not: later each time."""
        # No job is kept so long that more doublings would count.
        wait = min(UNTOLD * 2 ** min(self.tries, 10), LONGEST)
        return replace(self, due_at=now + wait, tries=self.tries + 1)


def place_at(due_at: datetime) -> str:
    """Return what the places of reminders that are due at an instant begin with."""
    return f"{due_at:%Y%m%dT%H%M%S%f}Z"


def first_reminder(job: Job) -> Reminder:
    """Return the reminder of a job that becomes PENDING."""
    due_at = job.updated_at + UNTOLD
    return Reminder(due_at, job.job_id, job.step, job.expires_at)


def silent_from(job: Job) -> datetime:
    """Return from when on an open job is taken to have lost its message."""
    patience = UNTOLD if job.state is JobState.PENDING else UNHEARD
    return job.updated_at + patience
