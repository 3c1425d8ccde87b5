"""Put jobs on their queue again whose message was lost, or never got there."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hourbell.domain.errors import HourbellError, Unreadable
from hourbell.domain.reminder import Reminder, silent_from
from hourbell.usecases.jobs import Office

MOST: Final = 25
"""Reminders that one call takes: one call a minute is enough for all others."""


@dataclass(slots=True)
class Reminded:
    """What one call did.

    Attributes:
        told: the jobs that were put on their queue.
        faults: what kept it from seeing after a job; the next call does.
    """

    told: list[str] = field(default_factory=list)
    faults: list[HourbellError] = field(default_factory=list)


def remind(office: Office, now: datetime) -> Reminded:
    """See after the jobs whose reminders are due.

    The reminder of a job is stored with it, and moves on only after its message is in
    the queue; so whatever ends the caller of `start_job`, this, or a worker, the job is
    done. A message too many does no harm, since of two workers one loses.

    Raises:
        Transient: the reminders could not be read.
    """
    report = Reminded()
    for reminder in office.jobs.reminders(now, limit=MOST):
        try:
            _see_after(office, report, reminder, now)
        except HourbellError as fault:
            # One job's trouble must not keep others waiting.
            report.faults.append(fault)
    return report


def _see_after(
    office: Office, report: Reminded, reminder: Reminder, now: datetime
) -> None:
    try:
        job = office.jobs.find(reminder.job_id)
    except Unreadable as fault:
        # Another release may have written it, which is there again soon.
        report.faults.append(fault)
        office.jobs.replace_reminder(reminder, reminder.in_vain(now))
        return
    if job is None or not job.is_open:
        office.jobs.replace_reminder(reminder, None)
        return
    silent = silent_from(job)
    if now < silent:
        office.jobs.replace_reminder(reminder, reminder.untouched(silent))
        return
    office.queue.put(job.job_id)
    report.told.append(job.job_id)
    office.jobs.replace_reminder(reminder, reminder.in_vain(now))
