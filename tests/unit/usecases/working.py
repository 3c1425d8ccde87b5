"""A worker in the small world: messages are received, claimed and worked on."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hourbell.domain.definition import Quotas, Tracking
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import USUAL_RETRY, ErrorClass, Failure, Retry
from hourbell.domain.schedule import Timing
from hourbell.usecases.claim import claim
from hourbell.usecases.finish import complete_work, fail_work
from hourbell.usecases.heartbeat import heartbeat
from hourbell.usecases.work_values import (
    Answer,
    Beat,
    Claimed,
    ClaimOrder,
    Failed,
    Finished,
    Held,
)

from tests.unit.usecases.world import MINUTE, World

LEASE = 60
BOOM = Failure(ErrorClass.RETRYABLE, "Boom", "it broke")


@dataclass
class Shop:
    """A world with a schedule whose occurrences are tracked.

    Attributes:
        first: the first row, as it was planned.
    """

    expression: str = "* * * * *"
    overlap: Overlap = Overlap.ALLOW
    retry: Retry = USUAL_RETRY
    tracking: Tracking = Tracking.TRACKED
    quotas: Quotas = field(default_factory=Quotas)
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        tenant = self.world.directory.find_tenant("acme")
        assert tenant is not None
        self.world.store.tenants["acme"] = type(tenant)(
            "acme", tenant.tier, quotas=self.quotas
        )
        self.first = self.world.add(
            Timing(self.expression),
            tracking=self.tracking,
            overlap=self.overlap,
            retry=self.retry,
        )

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def names(self) -> list[str]:
        """Return the occurrence ids of all rows, by time."""
        return [row.occurrence_id for row in self.world.rows()]

    def until(self, instant: datetime) -> None:
        """Let the minutes pass, with a tick and a relay in each."""
        while self.now < instant:
            self.tick()
            self.world.clock.set(min(self.now + MINUTE, instant))
        self.tick()

    def after(self, span: timedelta) -> None:
        self.until(self.now + span)

    def tick(self) -> None:
        self.world.scan()
        self.world.relay_stream()
        self.world.relay_sweep()

    def due(self, minutes: int = 1) -> str:
        """Let the first occurrence become due; return its id."""
        self.until(self.first.scheduled_for + (minutes - 1) * MINUTE)
        return self.first.occurrence_id

    def claim(
        self,
        *names: str,
        token: str | None = None,
        seconds: int = LEASE,
        send: int | None = None,
    ) -> list[Claimed]:
        orders = [ClaimOrder(name, token, send) for name in names]
        place = self.world.workplace
        return claim(place, "acme", orders, worker="w1", lease_seconds=seconds)

    def run(self, name: str, *, seconds: int = LEASE) -> str:
        """Claim an occurrence that is free; return the lease's token."""
        (answer,) = self.claim(name, seconds=seconds)
        assert answer.answer is Answer.RUN, answer
        assert answer.lease_token is not None
        return answer.lease_token

    def complete(self, name: str, token: str) -> Finished:
        (answer,) = complete_work(self.world.workplace, "acme", [Held(name, token)])
        return answer

    def fail(self, name: str, token: str, failure: Failure = BOOM) -> Finished:
        said = [Failed(name, token, failure)]
        (answer,) = fail_work(self.world.workplace, "acme", said)
        return answer

    def beat(self, name: str, token: str, seconds: int = LEASE) -> Beat:
        held = [Held(name, token)]
        place = self.world.workplace
        (answer,) = heartbeat(place, "acme", held, lease_seconds=seconds)
        return answer

    def row(self, name: str) -> Occurrence:
        """Return the row of an occurrence as it is stored."""
        row = self.world.store.row(self.world.workplace.key_of(name))
        assert row is not None
        return row

    def pending(self, kind: DispatchKind) -> list[Dispatch]:
        return [
            each
            for each in self.world.store.all_dispatches()
            if each.kind is kind and each.is_open
        ]

    def sent(self, name: str) -> int:
        """Return how many messages of an occurrence were sent."""
        return sum(name in each.entry.body for each in self.world.queues.accepted)
