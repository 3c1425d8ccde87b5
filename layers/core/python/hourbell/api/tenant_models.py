"""Bodies and answers of the platform role's routes, and of the usage."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from hourbell.api.documents import (
    Answer,
    Body,
    Optional,
    WholeBody,
    judged,
    one_of,
)
from hourbell.domain.definition import Quotas, Tenant, TenantState, Tier
from hourbell.domain.names import TENANT_ID, check_tenant_id
from hourbell.domain.retry import (
    MAX_ATTEMPTS,
    MAX_DEADLINE_SECONDS,
    MIN_DEADLINE_SECONDS,
)
from hourbell.usecases.identify import registered_form
from hourbell.usecases.kept import Kept
from hourbell.usecases.tenants import (
    MAX_PRINCIPALS_AT_ONCE,
    QuotaChange,
    TenantChange,
    TenantPage,
)
from hourbell.usecases.usage import QuotaUse

MAX_SCHEDULES: Final = 20_000_000
MAX_PAYLOAD_BYTES: Final = 65_536
MIN_INTERVAL_SECONDS: Final = 60
MAX_INTERVAL_SECONDS: Final = 86_400
MAX_CATCH_UP_PER_MINUTE: Final = 60_000
MAX_TRIGGERS_PER_MINUTE: Final = 6_000_000
# A claim reads all places that are taken.
MAX_RUNNING: Final = 1_000
MAX_RETRIES_PER_MINUTE: Final = 6_000_000
MAX_WEIGHT: Final = 100
MAX_REASON: Final = 512

TierName = Literal["premium", "standard", "basic"]
Schedules = Annotated[int, Field(ge=1, le=MAX_SCHEDULES)]
PayloadBytes = Annotated[int, Field(ge=1, le=MAX_PAYLOAD_BYTES)]
Interval = Annotated[int, Field(ge=MIN_INTERVAL_SECONDS, le=MAX_INTERVAL_SECONDS)]
CatchUpRate = Annotated[int, Field(ge=1, le=MAX_CATCH_UP_PER_MINUTE)]
TriggerRate = Annotated[
    int,
    Field(ge=1, le=MAX_TRIGGERS_PER_MINUTE, description="Null: as many as there are."),
]
Running = Annotated[
    int,
    Field(ge=1, le=MAX_RUNNING, description="Null: as many as there are."),
]
RetryRate = Annotated[
    int,
    Field(ge=1, le=MAX_RETRIES_PER_MINUTE, description="Null: as many as there are."),
]
RetryAttempts = Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)]
RetryDeadline = Annotated[
    int,
    Field(
        ge=MIN_DEADLINE_SECONDS,
        le=MAX_DEADLINE_SECONDS,
        description="Null: as long as a policy says.",
    ),
]
Weight = Annotated[int, Field(ge=1, le=MAX_WEIGHT)]
TenantId = Annotated[
    str,
    Field(json_schema_extra={"pattern": TENANT_ID}),
    judged(lambda text: check_tenant_id(text, field="")),
]
Principal = Annotated[str, judged(lambda text: registered_form(text, field=""))]


class QuotaFields(Body):
    """The quotas of a tenant; what is left out stays as it is."""

    schedules: Optional[Schedules] = None
    payload_bytes: Optional[PayloadBytes] = None
    min_interval_seconds: Optional[Interval] = None
    catch_up_per_minute: Optional[CatchUpRate] = None
    triggers_per_minute: TriggerRate | None = None
    running: Running | None = None
    retries_per_minute: RetryRate | None = None
    retry_attempts: Optional[RetryAttempts] = None
    retry_deadline_seconds: RetryDeadline | None = None

    def to_domain(self) -> QuotaChange:
        """Return what the use case takes."""
        return QuotaChange(
            self.schedules,
            self.payload_bytes,
            self.min_interval_seconds,
            self.catch_up_per_minute,
            self._said("triggers_per_minute"),
            self._said("running"),
            self._said("retries_per_minute"),
            self.retry_attempts,
            self._said("retry_deadline_seconds"),
        )

    def _said(self, name: str) -> int | Kept | None:
        """Return a quota that may be lifted: null lifts it, left out it is kept."""
        if name not in self.model_fields_set:
            return Kept.KEPT
        limit: int | None = getattr(self, name)
        return limit


class CreateTenant(WholeBody):
    """The body of POST /v1/admin/tenants."""

    tenant_id: TenantId
    tier: TierName = "standard"
    quotas: QuotaFields = Field(default_factory=QuotaFields)
    weight: Weight = 1
    principals: Annotated[
        list[Principal],
        Field(
            default_factory=list,
            max_length=MAX_PRINCIPALS_AT_ONCE,
            description="ARNs of roles and users that may call for the tenant.",
        ),
    ]

    def to_domain(self) -> Tenant:
        """Return the tenant at its first revision."""
        return Tenant(
            self.tenant_id,
            Tier(self.tier),
            quotas=self.quotas.to_domain().applied_to(Quotas()),
            weight=self.weight,
        )


class ChangeTenant(Body):
    """The body of PATCH /v1/admin/tenants/{tenant_id}."""

    tier: Optional[TierName] = None
    state: Optional[Literal["ACTIVE", "SUSPENDED"]] = None
    reason: Annotated[
        Optional[Annotated[str, Field(max_length=MAX_REASON)]],
        Field(description="Why the state is changed; a suspension needs one."),
    ] = None
    quotas: Optional[QuotaFields] = None
    weight: Optional[Weight] = None

    def to_domain(self) -> TenantChange:
        """Return what the use case takes."""
        return TenantChange(
            tier=self.tier and Tier(self.tier),
            state=self.state and TenantState(self.state),
            reason=self.reason,
            quotas=self.quotas.to_domain() if self.quotas else QuotaChange(),
            weight=self.weight,
        )


class QuotasAnswer(Answer):
    """What a tenant may use."""

    schedules: int
    payload_bytes: int
    min_interval_seconds: int
    catch_up_per_minute: int
    triggers_per_minute: int | None
    running: int | None
    retries_per_minute: int | None
    retry_attempts: int
    retry_deadline_seconds: int | None


class TenantAnswer(Answer):
    """A tenant as the platform role sees it."""

    tenant_id: str
    tier: Annotated[str, one_of(Tier)]
    state: Annotated[str, one_of(TenantState)]
    reason: str
    quotas: QuotasAnswer
    weight: int
    revision: int


class TenantListAnswer(Answer):
    """A page of tenants, in order of id."""

    tenants: list[TenantAnswer]
    cursor: str | None


class PrincipalsAnswer(Answer):
    """Who may call for a tenant, in normalized form."""

    tenant_id: str
    principals: list[str]


class PrincipalAnswer(Answer):
    """A principal as it is registered."""

    tenant_id: str
    principal: str


class QuotaAnswer(Answer):
    """One quota; `limit` is null when there is none, `used` when it is not counted."""

    name: str
    limit: int | None
    used: int | None
    unit: str


class UsageAnswer(Answer):
    """Every quota of the tenant."""

    tenant_id: str
    tier: Annotated[str, one_of(Tier)]
    quotas: list[QuotaAnswer]


def tenant_answer(tenant: Tenant) -> TenantAnswer:
    """Return a tenant."""
    quotas = tenant.quotas
    return TenantAnswer(
        tenant_id=tenant.tenant_id,
        tier=tenant.tier,
        state=tenant.state,
        reason=tenant.reason,
        quotas=QuotasAnswer(
            schedules=quotas.schedules,
            payload_bytes=quotas.payload_bytes,
            min_interval_seconds=quotas.min_interval_seconds,
            catch_up_per_minute=quotas.catch_up_per_minute,
            triggers_per_minute=quotas.triggers_per_minute,
            running=quotas.running,
            retries_per_minute=quotas.retries_per_minute,
            retry_attempts=quotas.retry_attempts,
            retry_deadline_seconds=quotas.retry_deadline_seconds,
        ),
        weight=tenant.weight,
        revision=tenant.revision,
    )


def tenant_list_answer(page: TenantPage) -> TenantListAnswer:
    """Return a page of tenants."""
    return TenantListAnswer(
        tenants=[tenant_answer(each) for each in page.tenants], cursor=page.after
    )


def usage_answer(tenant: Tenant, quotas: Sequence[QuotaUse]) -> UsageAnswer:
    """Return the quotas of a tenant."""
    return UsageAnswer(
        tenant_id=tenant.tenant_id,
        tier=tenant.tier,
        quotas=[
            QuotaAnswer(
                name=each.name, limit=each.limit, used=each.used, unit=each.unit
            )
            for each in quotas
        ],
    )
