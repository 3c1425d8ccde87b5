"""Tell from a caller's IAM identity which tenant is calling."""

import re
from dataclasses import dataclass

from hourbell.domain.definition import Tenant, TenantState
from hourbell.domain.errors import Forbidden
from hourbell.usecases.ports import Directory

# arn:<partition>:<iam or sts>::<account>:<kind>/<rest>. A root ARN has no slash, so
# that the account's root user, which cannot be told from its keys, never matches.
_ARN = re.compile(r"arn:aws[a-z-]*:(iam|sts)::([0-9]{12}):([a-z-]+)/(.+)")

_UNKNOWN = "The caller's IAM identity is not registered with a tenant."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, on whose behalf.

    Attributes:
        principal: the normalized identity, as it is registered on the tenant.
        arn: the identity as IAM reported it, with a role's session name.
        source: where the call came from, for the version log: `api <address>`.
    """

    tenant: Tenant
    principal: str
    arn: str
    source: str = "api"


def normalize_principal(arn: str) -> str:
    """Return the form of an IAM identity under which tenants register it.

    A role is `<account>:role/<name>`, whether seen as the role or as a session of it:
    a session's ARN has lost the role's path, so the path never counts. A user is
    `<account>:user/<path and name>`, a federated user
    `<account>:federated-user/<name>`.

    Raises:
        Forbidden: the text is none of these; so is the account's root user.
    """
    match = _ARN.fullmatch(arn)
    if match is None:
        raise Forbidden(_UNKNOWN)
    service, account, kind, rest = match.groups()
    if (service, kind) == ("sts", "assumed-role"):
        return f"{account}:role/{rest.split('/', 1)[0]}"
    if (service, kind) == ("iam", "role"):
        return f"{account}:role/{rest.rsplit('/', 1)[-1]}"
    if (service, kind) in {("iam", "user"), ("sts", "federated-user")}:
        return f"{account}:{kind}/{rest}"
    raise Forbidden(_UNKNOWN)


def identify(directory: Directory, arn: str | None, source: str = "api") -> Caller:
    """Return the caller with its tenant.

    Args:
        directory: where principals are registered.
        arn: `requestContext.identity.userArn`; None for an unsigned request.
        source: where the call came from.

    Raises:
        Forbidden: nobody registered this identity, or its tenant is suspended.
    """
    if not arn:
        raise Forbidden("The request carries no IAM identity.")
    principal = normalize_principal(arn)
    tenant = directory.tenant_of(principal)
    if tenant is None:
        raise Forbidden(_UNKNOWN)
    if tenant.state is TenantState.SUSPENDED:
        raise Forbidden("The tenant is suspended.", code="tenant_suspended")
    return Caller(tenant, principal, arn, source)
