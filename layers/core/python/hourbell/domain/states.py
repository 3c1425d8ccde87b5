"""The states of an occurrence, and the table of its moves.

`TRANSITIONS` names every move once; adapters and use cases ask it and nothing else.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where an occurrence stands."""

    PLANNED = "PLANNED"
    SCHEDULED = "SCHEDULED"
    ENQUEUED = "ENQUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    RETRY_WAIT = "RETRY_WAIT"
    DEAD = "DEAD"
    DEFERRED = "DEFERRED"
    WAITING_OVERLAP = "WAITING_OVERLAP"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    SKIPPED_OVERLAP = "SKIPPED_OVERLAP"


TERMINAL = frozenset(
    {
        State.SUCCEEDED,
        State.DEAD,
        State.MISSED,
        State.CANCELED,
        State.SKIPPED_OVERLAP,
    }
)

# States that hold the watermark back: somebody still has to act on the row, and no
# dispatch row would bring it up again.
OPEN = frozenset({State.PLANNED, State.SCHEDULED})

# A dispatch row of kind `release` speaks for a row in one of these.
WAITING = frozenset({State.DEFERRED, State.RETRY_WAIT, State.WAITING_OVERLAP})

# A message of the occurrence may be with a consumer, and no worker has it.
CLAIMABLE = frozenset({State.SCHEDULED, State.ENQUEUED})


class Transition(StrEnum):
    """The name of a move in the state table."""

    SCHEDULE = "schedule"
    ACKNOWLEDGE = "acknowledge"
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    RECALL = "recall"
    REFUSE = "refuse"
    DEFER = "defer"
    MISS = "miss"
    RELEASE = "release"
    BACKFILL = "backfill"
    CLAIM = "claim"
    RECLAIM = "reclaim"
    EXTEND = "extend"
    SUCCEED = "succeed"
    RETRY = "retry"
    BURY = "bury"
    GIVE_UP = "give_up"
    HOLD = "hold"
    QUEUE = "queue"
    SKIP = "skip"
    WAKE = "wake"
    REPLAY = "replay"
    ABORT = "abort"
    ASK_TO_STOP = "ask_to_stop"
    STOP = "stop"
    REDRIVE = "redrive"
    TELL = "tell"


@dataclass(frozen=True, slots=True)
class Move:
    """What a transition requires and writes.

    Attributes:
        sources: states in which it is allowed; the store's condition.
        target: the state it leads to.
        writes: fields of `Occurrence` that it stores besides `state`.
    """

    sources: frozenset[State]
    target: State
    writes: tuple[str, ...]


_ENDING = ("reason", "finished_at", "expires_at")
_LEASE = (
    *("attempt", "lease_token", "lease_expires_at"),
    *("worker", "started_at", "begun_at", "slot", "sends"),
)

TRANSITIONS: dict[Transition, Move] = {
    Transition.SCHEDULE: Move(
        frozenset({State.PLANNED}),
        State.SCHEDULED,
        ("available_at", "lane", "queue", "scheduled_at", "misfire"),
    ),
    Transition.ACKNOWLEDGE: Move(
        frozenset({State.SCHEDULED}),
        State.ENQUEUED,
        ("enqueued_at", "visible_at", "sends", "expires_at"),
    ),
    # Due beyond the queue's longest delay: a dispatch row brings it up again.
    Transition.DEFER: Move(
        frozenset({State.PLANNED}),
        State.DEFERRED,
        ("available_at", "lane", "queue", "misfire"),
    ),
    # Reached too late for its policy.
    Transition.MISS: Move(
        frozenset({State.PLANNED}), State.MISSED, (*_ENDING, "misfire")
    ),
    # What waited goes, when its dispatch row is due.
    Transition.RELEASE: Move(WAITING, State.SCHEDULED, ("scheduled_at",)),
    # Somebody wants a missed time to run after all; a dispatch row brings it up.
    Transition.BACKFILL: Move(
        frozenset({State.MISSED}),
        State.DEFERRED,
        ("backfilled_at", "overlap", "available_at", "lane", "queue", *_ENDING),
    ),
    # By the relay: only what it was given, and its version does not stand behind.
    Transition.CANCEL: Move(frozenset({State.SCHEDULED}), State.CANCELED, _ENDING),
    # By a pass, a release or a handover. UNTRACKED: only what cannot have been sent.
    Transition.WITHDRAW: Move(
        frozenset({State.PLANNED}) | WAITING, State.CANCELED, _ENDING
    ),
    # By a handover. TRACKED: whatever no worker has claimed; the claim refuses it.
    Transition.RECALL: Move(
        frozenset({State.PLANNED, State.DEFERRED}) | CLAIMABLE,
        State.CANCELED,
        _ENDING,
    ),
    # A message that the queue refuses for good: visible as DEAD, open to a replay.
    Transition.REFUSE: Move(frozenset({State.SCHEDULED}), State.DEAD, _ENDING),
    # A worker takes it. SCHEDULED, too: that there is a message proves the send.
    Transition.CLAIM: Move(CLAIMABLE, State.RUNNING, _LEASE),
    # Another worker takes it from one whose lease has run out.
    Transition.RECLAIM: Move(frozenset({State.RUNNING}), State.RUNNING, _LEASE),
    Transition.EXTEND: Move(
        frozenset({State.RUNNING}), State.RUNNING, ("lease_expires_at",)
    ),
    Transition.SUCCEED: Move(frozenset({State.RUNNING}), State.SUCCEEDED, _ENDING),
    # The attempt failed, or its worker died; a dispatch row brings it up again.
    Transition.RETRY: Move(
        frozenset({State.RUNNING}),
        State.RETRY_WAIT,
        ("available_at", "waits", "failure"),
    ),
    # The attempt failed, and it was the last one.
    Transition.BURY: Move(
        frozenset({State.RUNNING}), State.DEAD, ("failure", *_ENDING)
    ),
    # Claimed when its deadline had passed.
    Transition.GIVE_UP: Move(CLAIMABLE, State.DEAD, _ENDING),
    # Claimed too early, or when its tenant runs as much as it may.
    Transition.HOLD: Move(
        CLAIMABLE, State.DEFERRED, ("available_at", "waits", "begun_at", "sends")
    ),
    # Claimed while another occurrence of its schedule runs.
    Transition.QUEUE: Move(
        CLAIMABLE, State.WAITING_OVERLAP, ("available_at", "waits", "begun_at", "sends")
    ),
    Transition.SKIP: Move(CLAIMABLE, State.SKIPPED_OVERLAP, _ENDING),
    # The one that ran before it is over.
    Transition.WAKE: Move(
        frozenset({State.WAITING_OVERLAP}),
        State.SCHEDULED,
        ("available_at", "scheduled_at"),
    ),
    # Attempts and deadline start anew; a dispatch row brings it up.
    Transition.REPLAY: Move(
        frozenset({State.DEAD}),
        State.DEFERRED,
        (
            *("available_at", "lane", "queue", "waits", "replayed_at"),
            *("attempts_before", "begun_at", "told_at", "cancel_requested_at"),
            *_ENDING,
        ),
    ),
    # Somebody cancels the occurrence itself.
    Transition.ABORT: Move(WAITING | CLAIMABLE, State.CANCELED, _ENDING),
    Transition.ASK_TO_STOP: Move(
        frozenset({State.RUNNING}), State.RUNNING, ("cancel_requested_at",)
    ),
    # Its worker stopped, or died, after it was asked to.
    Transition.STOP: Move(
        frozenset({State.RUNNING}), State.CANCELED, ("failure", *_ENDING)
    ),
    # Nobody claimed it: its message was received too often, or is there no more.
    Transition.REDRIVE: Move(frozenset({State.ENQUEUED}), State.DEAD, _ENDING),
    # Its dead letter has been sent.
    Transition.TELL: Move(frozenset({State.DEAD}), State.DEAD, ("told_at",)),
}
