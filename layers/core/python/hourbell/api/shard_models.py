"""Bodies and answers of the routes of the shard count."""

from typing import Annotated, Literal

from pydantic import Field

from hourbell.api.documents import Answer, Optional, WholeBody, judged
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.shards import MAX_SHARDS, Epoch, Phase
from hourbell.usecases.reshard import MAX_GROUPS, Plan
from hourbell.usecases.shard_ports import Epochs

Shards = Annotated[int, Field(ge=1, le=MAX_SHARDS)]
Groups = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_GROUPS,
        description="At least as many as there are, and not more than shards.",
    ),
]
Since = Annotated[
    str,
    Field(
        json_schema_extra={"format": "date-time"},
        description="A whole minute, 10 minutes to 30 days ahead; the earliest"
        " possible when left out.",
    ),
    judged(lambda text: parse_instant(text, field="")),
]
PhaseName = Literal["ANNOUNCED", "MOVING", "SETTLED"]


class ChangeShards(WholeBody):
    """The body of POST /v1/admin/shards."""

    shards: Shards
    groups: Optional[Groups] = None
    since: Optional[Since] = None

    def to_domain(self) -> Plan:
        """Return what the use case takes."""
        since = None if self.since is None else parse_instant(self.since, field="since")
        return Plan(self.shards, self.groups, since)


class EpochAnswer(Answer):
    """From which bucket on a shard count holds."""

    since: str | None = Field(description="Null: from the beginning.")
    shards: int
    groups: int
    phase: PhaseName


class MoveAnswer(Answer):
    """How far moving the rows of the last epoch has come."""

    round: int = Field(description="Walks through the timeline so far.")
    segments: int = Field(description="Into how many parts a walk is split.")
    done: int = Field(description="The parts that this walk is through with.")
    moved: int = Field(description="Rows that were moved, in all walks.")
    left: int = Field(description="Rows that this walk had to leave for the next.")


class ShardsAnswer(Answer):
    """The shard count of every bucket."""

    epochs: list[EpochAnswer]
    changed_at: str = Field(description="When the last epoch entered its phase.")
    requested_by: str | None
    move: MoveAnswer


def shards_answer(epochs: Epochs) -> ShardsAnswer:
    """Tell of the epochs."""
    progress = epochs.progress
    return ShardsAnswer(
        epochs=list(map(_told, epochs.shard_map.epochs)),
        changed_at=format_instant(epochs.changed_at),
        requested_by=epochs.requested_by,
        move=MoveAnswer(
            round=progress.round,
            segments=progress.segments,
            done=len(progress.done),
            moved=progress.moved,
            left=progress.left,
        ),
    )


def _told(epoch: Epoch) -> EpochAnswer:
    since = None if epoch.since is None else format_instant(epoch.since)
    return EpochAnswer(
        since=since, shards=epoch.shards, groups=epoch.groups, phase=_named(epoch.phase)
    )


def _named(phase: Phase) -> PhaseName:
    return phase.value
