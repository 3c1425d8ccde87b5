"""What jobs need of the outside world, on the terms of `ports`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from hourbell.domain.definition import NewSchedule
from hourbell.domain.job import Job, Result, Target
from hourbell.domain.reminder import Reminder
from hourbell.usecases.port_values import Write

JobItem: TypeAlias = NewSchedule | Target
"""What one item of a job is: a schedule to create, or one to change."""


class Jobs(Protocol):
    """Jobs, their items and their results."""

    def create(self, job: Job, items: Sequence[JobItem]) -> Write:
        """Store a job, its items and its reminder, all or nothing, in one transaction.

        Args:
            job: as it begins.
            items: of one kind, up to 1,000; none when a walk finds them.

        Returns:
            APPLIED, or EXISTS when the job_id is taken.
        """
        ...

    def find(self, job_id: str) -> Job | None:
        """Return a job by a consistent read."""
        ...

    def of_tenant(
        self, tenant_id: str, *, before: str | None, limit: int
    ) -> tuple[Job, ...]:
        """Return the tenant's jobs before the `place` of one, the newest first.

        One that cannot be read is left out; fewer than `limit` only at the end.
        """
        ...

    def items(self, job_id: str, start: int) -> tuple[JobItem, ...]:
        """Return items from an index on to the end of its chunk of 25.

        Returns:
            none only beyond the last item.
        """
        ...

    def advance(self, job: Job, results: Sequence[Result], *, before: Job) -> Write:
        """Store results and what changed of a job, in one transaction.

        A job that is PENDING by it, at another step, gets a reminder, too.

        Args:
            job: as it shall be.
            results: of up to 25 items, with indexes that have none yet.
            before: as it was read: its state and step must be stored still.

        Returns:
            APPLIED, or LOST when another one was first; then nothing is stored.
        """
        ...

    def results(self, job_id: str, *, start: int, limit: int) -> tuple[Result, ...]:
        """Return results in order from an index on.

        One that cannot be read is left out; fewer than `limit` only at the end.
        """
        ...

    def reminders(self, now: datetime, *, limit: int) -> tuple[Reminder, ...]:
        """Return reminders that are due, the oldest first, by a consistent read."""
        ...

    def replace_reminder(self, reminder: Reminder, later: Reminder | None) -> Write:
        """Put a later reminder in the place of one, or none, in one transaction.

        Returns:
            APPLIED, or LOST when it is not there any more; then nothing is stored.
        """
        ...


class JobQueue(Protocol):
    """From whoever makes or resumes a job to its worker."""

    def put(self, job_id: str) -> None:
        """Enqueue a job.

        Raises:
            Transient: it was not accepted after retries.
        """
        ...
