"""Jobs in memory."""

from collections.abc import Sequence
from datetime import datetime

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.job import CHUNK, Job, JobState, Result
from hourbell.domain.reminder import Reminder, first_reminder
from hourbell.usecases.job_ports import JobItem
from hourbell.usecases.ports import Write


class MemoryJobs:
    """The `Jobs` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._jobs = store.jobs
        self._items = store.job_items
        self._results = store.job_results
        self._reminders = store.reminders

    def create(self, job: Job, items: Sequence[JobItem]) -> Write:
        """Store a job, its items and its reminder, if its id is free."""
        if job.job_id in self._jobs:
            return Write.EXISTS
        self._jobs[job.job_id] = job
        self._items[job.job_id] = tuple(items)
        self._results[job.job_id] = []
        self._remind(job)
        return Write.APPLIED

    def find(self, job_id: str) -> Job | None:
        """Return a job."""
        return self._jobs.get(job_id)

    def of_tenant(
        self, tenant_id: str, *, before: str | None, limit: int
    ) -> tuple[Job, ...]:
        """Return the tenant's jobs before the `place` of one, the newest first."""
        found = [job for job in self._jobs.values() if job.tenant_id == tenant_id]
        found.sort(key=lambda job: job.place, reverse=True)
        left = [job for job in found if before is None or job.place < before]
        return tuple(left[:limit])

    def items(self, job_id: str, start: int) -> tuple[JobItem, ...]:
        """Return items from an index on to the end of its chunk of 25."""
        end = start - start % CHUNK + CHUNK
        return self._items.get(job_id, ())[start:end]

    def advance(self, job: Job, results: Sequence[Result], *, before: Job) -> Write:
        """Store results and what changed of a job, if nobody was first."""
        stored = self._jobs.get(job.job_id)
        if stored is None or (stored.state, stored.step) != (before.state, before.step):
            return Write.LOST
        known = self._results[job.job_id]
        if results and known and results[0].index <= known[-1].index:
            return Write.LOST
        self._jobs[job.job_id] = job
        known.extend(results)
        if job.state is JobState.PENDING:
            self._remind(job)
        return Write.APPLIED

    def results(self, job_id: str, *, start: int, limit: int) -> tuple[Result, ...]:
        """Return results in order from an index on."""
        found = [each for each in self._results.get(job_id, []) if each.index >= start]
        return tuple(found[:limit])

    def reminders(self, now: datetime, *, limit: int) -> tuple[Reminder, ...]:
        """Return reminders that are due, the oldest first."""
        due = [place for place, each in self._reminders.items() if each.due_at <= now]
        return tuple(self._reminders[place] for place in sorted(due)[:limit])

    def replace_reminder(self, reminder: Reminder, later: Reminder | None) -> Write:
        """Put a later reminder in the place of one, or none."""
        if self._reminders.pop(reminder.place, None) is None:
            return Write.LOST
        if later is not None:
            self._reminders[later.place] = later
        return Write.APPLIED

    def _remind(self, job: Job) -> None:
        reminder = first_reminder(job)
        self._reminders[reminder.place] = reminder
