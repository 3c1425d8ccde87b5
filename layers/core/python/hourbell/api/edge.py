"""What every route has in common: the call being answered, and how it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router

from hourbell.usecases.identify import (
    Caller,
    Identity,
    Operator,
    admit_operator,
    admit_tenant,
)

JSON: Final = "application/json"
ADMIN: Final = "/v1/admin/"


@dataclass(frozen=True, slots=True)
class Call:
    """The request being answered.

    Attributes:
        identity: who is calling, admitted to the route.
        now: when it came; the one clock reading that all of it goes by.
    """

    request_id: str
    identity: Identity
    now: datetime

    @property
    def caller(self) -> Caller:
        """The tenant's caller.

        Raises:
            Forbidden: it is the platform role.
        """
        return admit_tenant(self.identity)

    @property
    def operator(self) -> Operator:
        """The platform role's caller.

        Raises:
            Forbidden: it is a tenant.
        """
        return admit_operator(self.identity)

    @property
    def tenant_id(self) -> str:
        """Whose call it is."""
        return self.caller.tenant.tenant_id


def admit(identity: Identity, path: str) -> None:
    """Let the platform role to its own routes only, and tenants to all others.

    Raises:
        Forbidden: the path is the other one's.
    """
    if f"{path}/".startswith(ADMIN):
        admit_operator(identity)
    else:
        admit_tenant(identity)


def current_call(router: Router) -> Call:
    """Return the call that a router's route is answering."""
    return cast("Call", router.context["call"])


def answer(
    status: int, text: str, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """Answer with a JSON text."""
    return Response(int(status), JSON, text, dict(headers or {}))


def entity_tag(revision: int, schedule_id: str | None = None) -> dict[str, str]:
    """Return the header that names a revision, for `If-Match` to come back with.

    That of a schedule names it, since by its name another one may be found later.
    """
    tag = revision if schedule_id is None else f"{revision}.{schedule_id}"
    return {"ETag": f'"{tag}"'}
