"""Values that the suite writes and reads back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hourbell.domain.definition import (
    Definition,
    Schedule,
    ScheduleState,
    Tracking,
    Version,
    derived_schedule_id,
)
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import Lane, Occurrence, State, Transition, bucket_of
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import Change, Succession

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


def withdrawing(row: Occurrence) -> Change:
    """Return the change by which a handover cancels an untracked row."""
    return Change(canceling(row, "SUPERSEDED").row, Transition.WITHDRAW)


def recalling(row: Occurrence) -> Change:
    """Return the change by which a handover cancels a tracked row."""
    return Change(canceling(row, "SUPERSEDED").row, Transition.RECALL)


def dispatch(label: object = "one", due: datetime = DUE, number: int = 2) -> Dispatch:
    """Return a dispatch row as a handover writes it."""
    return Dispatch(
        DispatchKind.HANDOVER, schedule_id(label), number, "acme", due, SHARD, NOW
    )


def definition(payload_json: str = '{"greeting":"grüß dich 👋"}') -> Definition:
    """Return a definition."""
    timing = Timing("30 7 * * MON-FRI", zone="Europe/Berlin", end_at=DUE + 99 * MINUTE)
    return Definition(timing, "reports", payload_json, flexible_window_seconds=60)


def name_of(label: object) -> str:
    """Return the name of the schedule that belongs to a label."""
    return f"früh/report #{label}"


def schedule(label: object = "one") -> Schedule:
    """Return a current definition with every field filled."""
    return Schedule(
        schedule_id=schedule_id(label),
        tenant_id="acme",
        name=name_of(label),
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
        name=name_of(label),
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


def current(label: object = "one") -> Version:
    """Return the first version of a schedule as a create stores it."""
    return replace(version(label), effective_to=None)


def succession(
    label: object = "one",
    state: ScheduleState = ScheduleState.ACTIVE,
    *,
    to: int = 2,
    revision: int | None = None,
) -> Succession:
    """Return the change of a schedule to version `to`, with other timing and tags."""
    stands = to - 1 if revision is None else revision
    timing = Timing("0 9 * * *")
    changed = Definition(timing, "letters", tracking=Tracking.TRACKED)
    later = NOW + to * MINUTE
    return Succession(
        schedule=replace(
            schedule(label),
            definition=changed,
            state=state,
            version=to,
            revision=stands + 1,
            updated_at=later,
            description="",
            tags={},
            home_region="",
            handover=True,
        ),
        version=replace(
            current(label),
            version=to,
            definition=changed,
            effective_from=None,
            created_at=later,
            body_hash=None,
            state=state,
        ),
        ended=replace(current(label), version=to - 1, ends_at=later, ends_as=state),
        dispatch=dispatch(label, number=to),
        revision=stands,
    )
