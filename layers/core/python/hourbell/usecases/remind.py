"""Put jobs on their queue again whose message was lost, or never got there."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hourbell.domain.errors import HourbellError, Unreadable
from hourbell.domain.reminder import Reminder, silent_from
from hourbell.usecases.jobs import Office
from hourbell.usecases.ports import Clock

MOST: Final = 500
"""Reminders that one call reads: many jobs at once are seen after in few of them."""


@dataclass(slots=True)
class Reminded:
    """What one call did.

    Attributes:
        told: the jobs that were put on their queue.
        faults: what kept it from seeing after a job; a later call does.
    """

    told: list[str] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)


def remind(office: Office, clock: Clock, *, deadline: datetime) -> Reminded:
    """See after the jobs whose reminders are due.

    The reminder of a job is stored with it, and moves on only after its message is in
    the queue; so whatever ends the caller of `start_job`, this, or a worker, the job is
    done. A message too many does no harm, since of two workers one loses.

    Args:
        office: the ports.
        clock: the wall clock.
        deadline: no further job is seen after from then on; the next call does.

    Raises:
        Transient: the reminders could not be read.
    """
    report, now = Reminded(), clock.now()
    if now >= deadline:
        return report
    due = office.jobs.reminders(now, limit=MOST)
    latest = {each.job_id: each.step for each in sorted(due, key=lambda it: it.step)}
    for reminder in due:
        if clock.now() >= deadline:
            break
        try:
            if reminder.step == latest[reminder.job_id]:
                _see_after(office, report, reminder, now)
            else:
                # Of a job that is resumed time and again, one is enough.
                office.jobs.replace_reminder(reminder, None)
        except Exception as fault:  # noqa: BLE001 - one job's trouble must not keep others waiting
            report.faults.append(fault)
            if not isinstance(fault, HourbellError):
                _put_off(office, report, reminder, now)
    return report


def _put_off(
    office: Office, report: Reminded, reminder: Reminder, now: datetime
) -> None:
    """Let a job wait at which our own code broke: in a minute it would break again."""
    try:
        office.jobs.replace_reminder(reminder, reminder.in_vain(now))
    except Exception as fault:  # noqa: BLE001 - as in `remind`
        report.faults.append(fault)


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
