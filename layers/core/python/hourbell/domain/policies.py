"""Decisions on an occurrence that depend on the clock, as functions of it."""

from datetime import datetime, timedelta

from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.retention import QUEUE_RETENTION, RETENTION

# A due time reached later than this after its scheduled_for is a misfire.
MISFIRE_THRESHOLD = timedelta(seconds=60)

# Writers (functions and their retries) are dead this long after they started, so a
# bucket that ended this long ago gets no new row.
WATERMARK_LAG = timedelta(minutes=2)

# How old what a process knows of the shard counts may be.
EPOCH_AGE = timedelta(seconds=30)

# After so long no process acts by what it knew before a change of the shard counts: its
# knowledge ages, and the functions that store a change, and act by the one before it,
# live half of WATERMARK_LAG each at most.
EPOCH_LAG = WATERMARK_LAG + EPOCH_AGE

# By how much two clocks may differ. A message that was received proves that the relay's
# clock has said it is due, so a claim may be so much early by its own.
CLOCK_SKEW = timedelta(seconds=2)

# How long after it may be received an occurrence that was sent keeps its place in its
# schedule's lane before it is claimed.
LANE_GRACE = timedelta(minutes=5)

# How often an occurrence that waits for another one is sent again, to look by itself.
OVERLAP_CHECK = timedelta(minutes=15)

# How old a bucket is when it is looked at once more: what a paused process or a wrong
# clock wrote behind the watermark is found then.
SECOND_LOOK = timedelta(minutes=20)

# How long after its queue has let go of a message nobody has it in hand any more who
# received it just before.
UNCLAIMED_GRACE = timedelta(hours=1)

# How old a bucket is when it is looked at for the last time: what our own queues have
# let go of is found then. What was in time may have been sent with a delay.
LAST_LOOK = QUEUE_RETENTION + 2 * UNCLAIMED_GRACE

# How many rows of a tenant, times its weight, a pass over a shard group takes before it
# has taken what is due of all other tenants.
PASS_CAP = 2_000

# SQS accepts no longer delay per message.
MAX_DELAY_SECONDS = 900

# A time further away than this is deferred: the relay gets to the record by another
# clock and some seconds later, and must be able to say the delay that is left.
DEFER_BEYOND = timedelta(seconds=MAX_DELAY_SECONDS - 60)

# How long the stream has before the sweep takes an outbox record for stuck.
SWEEP_MIN_AGE = timedelta(seconds=10)

# How long before its available_at a stuck record becomes urgent: one tick and a half.
SWEEP_NEAR = timedelta(seconds=90)

_MINUTE = timedelta(minutes=1)
_SWEEP_STEADY_MINUTES = 16


def is_misfire(scheduled_for: datetime, now: datetime, window_seconds: int = 0) -> bool:
    """Whether a due time reached now counts as a misfire.

    A flexible window is time that its owner left us, so it is not late within it.
    """
    late = now - scheduled_for - timedelta(seconds=window_seconds)
    return late > MISFIRE_THRESHOLD


def is_deferred(available_at: datetime, now: datetime) -> bool:
    """Whether a message that may be received then is too early to be sent now."""
    return available_at - now > DEFER_BEYOND


def delay_seconds(available_at: datetime, now: datetime) -> int:
    """Return the delay that makes a message receivable at `available_at`, not earlier.

    Rounded up to whole seconds, as SQS takes no others; 0 when the time has passed.
    """
    ahead = available_at - now
    if ahead <= timedelta(0):
        return 0
    whole = int(ahead.total_seconds())
    return whole if timedelta(seconds=whole) == ahead else whole + 1


def expires_at(finished_at: datetime) -> datetime:
    """Return when the row of a finished occurrence may be deleted."""
    return finished_at + RETENTION


def is_sweep_due(
    scheduled_at: datetime,
    available_at: datetime,
    now: datetime,
    previous: datetime | None,
) -> bool:
    """Whether this pass hands a still unacknowledged record to the relay.

    A record becomes eligible when the stream had its chance and its time is near;
    from then on it has turns in the minutes 0, 1, 3, 7, 15 and every 16 minutes
    after, so that a relay that is merely slow is not buried by its own backlog. A
    turn that no pass came to is made up for by the next pass.

    Args:
        scheduled_at: when it became an outbox record.
        available_at: when its message may be received.
        now: when this pass looks at it.
        previous: when the last finished pass before this one began, if there was one.
    """
    eligible = max(scheduled_at + SWEEP_MIN_AGE, available_at - SWEEP_NEAR)
    if now < eligible:
        return False
    seen = 0
    if previous is not None and previous >= eligible:
        seen = _turns((previous - eligible) // _MINUTE + 1)
    return _turns((now - eligible) // _MINUTE + 1) > seen


def is_stuck(row: Occurrence, now: datetime, previous: datetime | None) -> bool:
    """Whether a row is an outbox record that the stream did not get through.

    Args:
        row: of any state.
        now: the current instant.
        previous: when the last finished pass began.
    """
    return (
        row.state is State.SCHEDULED
        and row.scheduled_at is not None
        and row.available_at is not None
        and is_sweep_due(row.scheduled_at, row.available_at, now, previous)
    )


def _turns(minutes: int) -> int:
    """Return how many turns lie in the first minutes: at 1, 2, 4, 8, 16, 32, 48 ..."""
    if minutes < _SWEEP_STEADY_MINUTES:
        return minutes.bit_length()
    return _SWEEP_STEADY_MINUTES.bit_length() - 1 + minutes // _SWEEP_STEADY_MINUTES
