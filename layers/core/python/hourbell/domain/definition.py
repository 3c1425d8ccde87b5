"""What a schedule is: its definition, its versions, and whose it is."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from hourbell.domain.misfire import USUAL_MISFIRE, Misfire
from hourbell.domain.occurrence import Lane
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import MAX_ATTEMPTS, USUAL_RETRY, Retry
from hourbell.domain.schedule import Timing, under


class Tier(StrEnum):
    """Class of service of a tenant; each has queues of its own."""

    PREMIUM = "premium"
    STANDARD = "standard"
    BASIC = "basic"


class TenantState(StrEnum):
    """Whether a tenant may do anything."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"


class ScheduleState(StrEnum):
    """Where a schedule stands."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"


class Tracking(StrEnum):
    """Whether the consumer reports back. UNTRACKED ends at ENQUEUED."""

    TRACKED = "TRACKED"
    UNTRACKED = "UNTRACKED"


class Routing(StrEnum):
    """Whose queue a handler's messages go to.

    SHARED: the lane queues of the tenant's tier, read by the platform's consumers.
    DEDICATED: lane queues of the tenant's own, provisioned by the platform.
    EXTERNAL: a queue in the tenant's account, named by its ARN.
    """

    SHARED = "shared"
    DEDICATED = "dedicated"
    EXTERNAL = "external"


class HandlerState(StrEnum):
    """Whether schedules may name the handler. A retired one serves those it has."""

    ACTIVE = "ACTIVE"
    RETIRED = "RETIRED"


@dataclass(frozen=True, slots=True)
class Quotas:
    """What a tenant may use.

    Attributes:
        schedules: how many ACTIVE and PAUSED schedules; never exceeded.
        payload_bytes: the largest payload, as JSON text.
        min_interval_seconds: the least time between two times of one schedule.
        catch_up_per_minute: how many overdue occurrences a minute may run.
        triggers_per_minute: how many occurrences at all may become receivable in a
            minute; None for any number.
        running: how many TRACKED occurrences may be worked on at the same time; None
            for any number.
        retries_per_minute: how many retries of TRACKED occurrences may begin in a
            minute; None for any number.
        retry_attempts: how many attempts a retry policy may give an occurrence.
        retry_deadline_seconds: the longest deadline that a retry policy may have; None
            for any, and for none.
    """

    schedules: int = 5_000
    payload_bytes: int = 65_536
    min_interval_seconds: int = 60
    catch_up_per_minute: int = 600
    triggers_per_minute: int | None = None
    running: int | None = None
    retries_per_minute: int | None = None
    retry_attempts: int = MAX_ATTEMPTS
    retry_deadline_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Tenant:
    """Owner of schedules, handlers and quotas.

    Attributes:
        weight: its share of a pass against other tenants'.
        revision: grows with every change; what `If-Match` compares.
        reason: why the state was changed last, in the platform's words.
    """

    tenant_id: str
    tier: Tier
    state: TenantState = TenantState.ACTIVE
    quotas: Quotas = Quotas()
    weight: int = 1
    revision: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Handler:
    """What a consumer of the tenant is to do, and which queue it goes to.

    Attributes:
        queue_arn: of an EXTERNAL handler's queue; verified by a test message.
        dead_letter_queue_arn: of an EXTERNAL handler's dead-letter queue; verified
            likewise. None for none: letters are kept in the store only.
        dispatch_rate: messages a second that its target can take; None for any.
        revision: grows with every change; what `If-Match` compares.
    """

    tenant_id: str
    name: str
    routing: Routing = Routing.SHARED
    state: HandlerState = HandlerState.ACTIVE
    queue_arn: str | None = None
    dispatch_rate: int | None = None
    description: str = ""
    revision: int = 1
    dead_letter_queue_arn: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """Timing, policy, handler and payload: a change of any makes a new version.

    Attributes:
        payload_json: the payload as compact JSON text.
        flexible_window_seconds: `available_at` is spread over this many seconds.
    """

    timing: Timing
    handler: str
    payload_json: str = "null"
    tracking: Tracking = Tracking.UNTRACKED
    flexible_window_seconds: int = 0
    misfire: Misfire = USUAL_MISFIRE
    overlap: Overlap = Overlap.ALLOW
    retry: Retry = USUAL_RETRY

    @property
    def lane(self) -> Lane:
        """The lane of its on-time occurrences."""
        return Lane.FLEXIBLE if self.flexible_window_seconds else Lane.STRICT


@dataclass(frozen=True, slots=True, order=True)
class VersionRef:
    """Which version of which schedule."""

    schedule_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Version:
    """An entry of the version log.

    Attributes:
        name: the schedule's name, the `subject` of its messages.
        effective_from: first instant that this version owns; None until the handover
            from the version before is done.
        effective_to: first instant that it no longer owns; None while it is current
            or its handover is under way.
        tzdb: release of the zone database that its times are computed by.
        body_hash: SHA-256 of the creating request, for idempotent creates.
        created_by: ARN of the caller, or `system`.
        source: where the change came from: `api` and the caller's address.
        state: ACTIVE, or what the schedule became with this version; only an ACTIVE
            version produces times.
        base_sequence: how many times earlier versions counted.
        ends_at: `as_of` of the change that ends it; None while it is current.
        ends_as: the state of the version after it.
    """

    schedule_id: str
    version: int
    tenant_id: str
    name: str
    definition: Definition
    effective_from: datetime | None
    tzdb: str
    created_at: datetime
    created_by: str
    effective_to: datetime | None = None
    source: str = "api"
    reason: str | None = None
    body_hash: str | None = None
    state: ScheduleState = ScheduleState.ACTIVE
    base_sequence: int = 0
    ends_at: datetime | None = None
    ends_as: ScheduleState | None = None

    @property
    def ref(self) -> VersionRef:
        """Which version this is."""
        return VersionRef(self.schedule_id, self.version)

    @property
    def timing(self) -> Timing:
        """When it runs, by the rules of its own release of the zone database."""
        return under(self.definition.timing, self.tzdb)

    def owns(self, instant: datetime) -> bool:
        """Whether a time belongs to this version: [effective_from, effective_to)."""
        if self.effective_from is None or instant < self.effective_from:
            return False
        return self.effective_to is None or instant < self.effective_to

    def holds(self, instant: datetime) -> bool:
        """Whether a row of this time must be left alone until a handover is done.

        An update leaves times up to `ends_at` to this version; a pause or a cancel
        reaches every unsent row. Until it has taken over, all of it waits.
        """
        if self.effective_from is None:
            return True
        if self.ends_at is None or self.effective_to is not None:
            return False
        return self.is_stopped or instant > self.ends_at

    def holds_sent(self, instant: datetime) -> bool:
        """Whether a row of this time that was sent must wait for a handover.

        A pause takes back nothing that was sent for times up to `ends_at`. To let it
        wait would make it unsent again, and so lose it to the pause.
        """
        if self.effective_from is None or self.ends_at is None:
            return self.holds(instant)
        stands = self.ends_as is ScheduleState.PAUSED and instant <= self.ends_at
        return not stands and self.holds(instant)

    @property
    def is_stopped(self) -> bool:
        """Whether a pause or a cancel ends it, and so all that is unsent of it."""
        return self.ends_as in {ScheduleState.PAUSED, ScheduleState.CANCELED}


@dataclass(frozen=True, slots=True)
class Schedule:
    """The current definition of a schedule, as its owner sees it.

    Attributes:
        version: grows with timing, policy, handler and payload.
        revision: grows with every change at all; what `If-Match` compares.
        generation: reserved for regional failover.
        handover: True while the change to `version` is not finished.
    """

    schedule_id: str
    tenant_id: str
    name: str
    definition: Definition
    state: ScheduleState
    version: int
    revision: int
    created_at: datetime
    updated_at: datetime
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    home_region: str = ""
    generation: int = 1
    handover: bool = False

    @property
    def ref(self) -> VersionRef:
        """The version in force."""
        return VersionRef(self.schedule_id, self.version)


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """What the caller asks for, valid in its form.

    Attributes:
        timing: without a rate's anchor, which follows from the time of creation.
        body_hash: SHA-256 of the request; equal for equal requests.
        idempotency_key: names the request, so that repeating it creates once.
    """

    name: str
    timing: Timing
    handler: str
    body_hash: str
    payload_json: str = "null"
    tracking: Tracking = Tracking.UNTRACKED
    flexible_window_seconds: int = 0
    misfire: Misfire = USUAL_MISFIRE
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    overlap: Overlap = Overlap.ALLOW
    retry: Retry = USUAL_RETRY


def derived_schedule_id(tenant_id: str, idempotency_key: str) -> str:
    """Return the id that a create with this key has, today and on every retry.

    The tenant is part of it: the same key of two tenants makes two schedules.
    """
    digest = hashlib.sha256(f"{tenant_id}\n{idempotency_key}".encode()).digest()
    return schedule_id_from(digest)


def schedule_id_from(entropy: bytes) -> str:
    """Spell 16 bytes as a schedule id: `sch` and 26 characters of base 32."""
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    number = int.from_bytes(entropy[:16])
    letters = [alphabet[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "sch" + "".join(letters)
