"""Values that the suite writes and reads back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hourbell.domain.definition import (
    Definition,
    Schedule,
    ScheduleState,
    Version,
    derived_schedule_id,
)
from hourbell.domain.occurrence import Lane, Occurrence, State, Transition, bucket_of
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import Change

DUE = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
NOW = datetime(2026, 3, 9, 6, 28, 17, 250_000, tzinfo=UTC)
BUCKET = bucket_of(DUE)
SHARD = 3
MINUTE = timedelta(minutes=1)


def schedule_id(label: object) -> str:
    """Return the id that belongs to a label."""
    return derived_schedule_id("samples", str(label))


def planned(label: object = "one", due: datetime = DUE) -> Occurrence:
    """Return a row as it is planned."""
    return Occurrence(
        schedule_id=schedule_id(label),
        version=1,
        scheduled_for=due,
        shard=SHARD,
        tenant_id="acme",
        sequence=7,
        tzdb="2026.6",
        planned_at=NOW,
    )


def scheduling(row: Occurrence) -> Change:
    """Return the change that makes an outbox record of a row."""
    target = replace(
        row,
        state=State.SCHEDULED,
        available_at=row.scheduled_for + timedelta(seconds=4),
        lane=Lane.FLEXIBLE,
        queue="standard-flexible",
        scheduled_at=NOW + timedelta(seconds=1),
        misfire=True,
    )
    return Change(target, Transition.SCHEDULE)


def acknowledging(row: Occurrence) -> Change:
    """Return the change that acknowledges a row's send."""
    target = replace(
        row,
        state=State.ENQUEUED,
        enqueued_at=NOW + timedelta(seconds=2),
        visible_at=row.scheduled_for + timedelta(seconds=4),
        sends=row.sends + 1,
        expires_at=DUE + timedelta(days=15),
    )
    return Change(target, Transition.ACKNOWLEDGE)


def canceling(row: Occurrence, reason: str = "PAUSED") -> Change:
    """Return the change that cancels a row."""
    target = replace(
        row,
        state=State.CANCELED,
        reason=reason,
        finished_at=NOW + timedelta(seconds=3),
        expires_at=DUE + timedelta(days=15),
    )
    return Change(target, Transition.CANCEL)


def definition(payload_json: str = '{"greeting":"grüß dich 👋"}') -> Definition:
    """Return a definition."""
    timing = Timing("30 7 * * MON-FRI", zone="Europe/Berlin", end_at=DUE + 99 * MINUTE)
    return Definition(timing, "reports", payload_json, flexible_window_seconds=60)


def schedule(label: object = "one") -> Schedule:
    """Return a current definition with every field filled."""
    return Schedule(
        schedule_id=schedule_id(label),
        tenant_id="acme",
        name="früh/report #1",
        definition=definition(),
        state=ScheduleState.ACTIVE,
        version=1,
        revision=1,
        created_at=NOW,
        updated_at=NOW,
        description="every working day",
        tags={"team": "finanzen €", "empty": ""},
        home_region="eu-central-1",
    )


def version(label: object = "one", number: int = 1) -> Version:
    """Return an entry of the version log with every field filled."""
    return Version(
        schedule_id=schedule_id(label),
        version=number,
        tenant_id="acme",
        name="früh/report #1",
        definition=definition(),
        effective_from=NOW,
        tzdb="2026.6",
        created_at=NOW,
        created_by="arn:aws:iam::123456789012:role/acme",
        effective_to=DUE,
        source="api 192.0.2.1",
        reason="first",
        body_hash="ab" * 32,
    )
