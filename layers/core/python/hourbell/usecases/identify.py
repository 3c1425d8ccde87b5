"""Tell from a caller's IAM identity who is calling: a tenant, or the platform."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from hourbell.domain.definition import Tenant, TenantState
from hourbell.domain.errors import Forbidden, InvalidInput
from hourbell.usecases.ports import Directory

# arn:<partition>:<iam or sts>::<account>:<kind>/<rest>. A root ARN has no slash, so
# that the account's root user, which cannot be told from its keys, never matches.
_ARN = re.compile(r"arn:aws[a-z-]*:(iam|sts)::([0-9]{12}):([a-z-]+)/(.+)")

# What IAM allows in names and paths; so no wildcard, which would match nobody.
_NAMES = re.compile(r"[A-Za-z0-9_+=,.@/-]{1,576}")
_NORMALIZED = re.compile(
    r"[0-9]{12}:(?:role/[^/]+|user/(?:[^/]+/)*[^/]+|federated-user/[^/]+)"
)

_UNKNOWN = "The caller's IAM identity is not registered with a tenant."


@dataclass(frozen=True, slots=True)
class Caller:
    """A tenant's caller.

    Attributes:
        principal: the normalized identity, as it is registered on the tenant.
        arn: the identity as IAM reported it, with a role's session name.
        source: where the call came from, for the version log: `api <address>`.
    """

    tenant: Tenant
    principal: str
    arn: str
    source: str = "api"


@dataclass(frozen=True, slots=True)
class Operator:
    """The platform's own caller, which administers tenants and is none.

    Attributes:
        principal: the normalized identity, as the deployment names it.
        arn: the identity as IAM reported it, with a role's session name.
        source: where the call came from: `api <address>`.
    """

    principal: str
    arn: str
    source: str = "api"


Identity: TypeAlias = Caller | Operator
"""Whoever may call at all."""


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


def registered_form(text: str, *, field: str = "principal") -> str:
    """Return the normalized form of a principal that is to be registered.

    Args:
        text: an ARN, or the normalized form itself.
        field: where it stands in the request.

    Raises:
        InvalidInput: `invalid_principal`: it is neither, or nobody can sign as it (a
            whole account, its root user, a wildcard).
    """
    try:
        normalized = text if _NORMALIZED.fullmatch(text) else normalize_principal(text)
    except Forbidden:
        normalized = ""
    name = normalized.partition("/")[2]
    if _NORMALIZED.fullmatch(normalized) and _NAMES.fullmatch(name):
        return normalized
    message = (
        "Allowed is the ARN of one IAM role, user or federated user; "
        "no wildcard, no root user."
    )
    raise InvalidInput.of(field, "invalid_principal", message, found=text)


def account_of(principal: str) -> str:
    """Return the account of a normalized principal."""
    return principal.partition(":")[0]


def identify(
    directory: Directory,
    arn: str | None,
    source: str = "api",
    operators: AbstractSet[str] = frozenset(),
) -> Identity:
    """Return who is calling.

    Args:
        directory: where the tenants' principals are registered.
        arn: `requestContext.identity.userArn`; None for an unsigned request.
        source: where the call came from.
        operators: normalized principals of the platform role. Such a caller is no
            tenant, whatever is registered.

    Raises:
        Forbidden: nobody registered this identity, or its tenant is suspended.
    """
    if not arn:
        raise Forbidden("The request carries no IAM identity.")
    principal = normalize_principal(arn)
    if principal in operators:
        return Operator(principal, arn, source)
    tenant = directory.tenant_of(principal)
    if tenant is None:
        raise Forbidden(_UNKNOWN)
    if tenant.state is TenantState.SUSPENDED:
        raise Forbidden("The tenant is suspended.", code="tenant_suspended")
    return Caller(tenant, principal, arn, source)


def admit_tenant(identity: Identity) -> Caller:
    """Return the caller of a tenant's route.

    Raises:
        Forbidden: it is the platform role, which has no schedules of its own.
    """
    if isinstance(identity, Caller):
        return identity
    raise Forbidden("The platform role is no tenant; it administers tenants only.")


def admit_operator(identity: Identity) -> Operator:
    """Return the caller of a route of the platform role.

    Raises:
        Forbidden: it is a tenant.
    """
    if isinstance(identity, Operator):
        return identity
    raise Forbidden("Only the platform role may administer tenants.")
