"""`hourbell tenants`: administer tenants, as the platform role.

Whose keys sign, the environment says, as for all commands. Without HOURBELL_API_URL
the local stack is meant, and its platform role.
"""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hourbell.cli.client import (
    PLATFORM_ENV_FILE,
    Answer,
    AsJson,
    Revision,
    command_group,
    connect_api,
    current_tag,
    given,
    pages,
    show,
)
from hourbell.cli.tables import print_facts, print_table

TENANTS = "/v1/admin/tenants"

app = command_group("Administer tenants, as the platform role.")
principals = command_group("Who may call for a tenant.")
app.add_typer(principals, name="principals")

TenantId = Annotated[str, typer.Argument(metavar="TENANT_ID")]
Arn = Annotated[str, typer.Argument(metavar="ARN", help="Of a role or user.")]
Tier = Annotated[str | None, typer.Option(help="premium, standard or basic.")]
Weight = Annotated[
    int | None, typer.Option(help="Share of a pass against other tenants', 1 to 100.")
]
Schedules = Annotated[int | None, typer.Option(help="How many schedules at most.")]
PayloadBytes = Annotated[int | None, typer.Option(help="The largest payload.")]
Interval = Annotated[
    int | None, typer.Option(help="The least time between two times of a schedule.")
]
CatchUp = Annotated[
    int | None,
    typer.Option(help="Overdue occurrences that a minute may run."),
]
Triggers = Annotated[
    int | None, typer.Option(help="Occurrences at all that a minute may run.")
]

Running = Annotated[
    int | None, typer.Option(help="TRACKED occurrences worked on at the same time.")
]
Retries = Annotated[int | None, typer.Option(help="Retries that a minute may begin.")]
RetryAttempts = Annotated[
    int | None, typer.Option(help="Attempts that a retry policy may give.")
]
RetryDeadline = Annotated[
    int | None, typer.Option(help="The longest deadline of a retry policy, in seconds.")
]
# What a tenant may use any number of.
LIFTABLE = (
    *("triggers_per_minute", "running", "retries_per_minute"),
    "retry_deadline_seconds",
)


@app.command()
def create(  # noqa: PLR0913 - one option for each field
    tenant_id: TenantId,
    *,
    tier: Tier = None,
    principal: Annotated[
        list[str] | None,
        typer.Option(metavar="ARN", help="Who may call for it; may be repeated."),
    ] = None,
    weight: Weight = None,
    schedules: Schedules = None,
    payload_bytes: PayloadBytes = None,
    min_interval_seconds: Interval = None,
    catch_up_per_minute: CatchUp = None,
    triggers_per_minute: Triggers = None,
    running: Running = None,
    retries_per_minute: Retries = None,
    retry_attempts: RetryAttempts = None,
    retry_deadline_seconds: RetryDeadline = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant."""
    quotas = given(
        {
            "schedules": schedules,
            "payload_bytes": payload_bytes,
            "min_interval_seconds": min_interval_seconds,
            "catch_up_per_minute": catch_up_per_minute,
            "triggers_per_minute": triggers_per_minute,
            "running": running,
            "retries_per_minute": retries_per_minute,
            "retry_attempts": retry_attempts,
            "retry_deadline_seconds": retry_deadline_seconds,
        }
    )
    body = given(
        {
            "tenant_id": tenant_id,
            "tier": tier,
            "principals": principal,
            "weight": weight,
            "quotas": quotas or None,
        }
    )
    show(_send("POST", TENANTS, body), _print_tenant, as_json=as_json)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List all tenants."""
    listed = pages(connect_api(PLATFORM_ENV_FILE), TENANTS, "tenants")
    show(listed, _print_tenants, as_json=as_json)


@app.command()
def get(tenant_id: TenantId, *, as_json: AsJson = False) -> None:
    """Show a tenant, its quotas and its state."""
    show(_send("GET", tenant_path(tenant_id)), _print_tenant, as_json=as_json)


@app.command()
def change(  # noqa: PLR0913 - one option for each field
    tenant_id: TenantId,
    *,
    tier: Tier = None,
    weight: Weight = None,
    schedules: Schedules = None,
    payload_bytes: PayloadBytes = None,
    min_interval_seconds: Interval = None,
    catch_up_per_minute: CatchUp = None,
    triggers_per_minute: Triggers = None,
    running: Running = None,
    retries_per_minute: Retries = None,
    retry_attempts: RetryAttempts = None,
    retry_deadline_seconds: RetryDeadline = None,
    any_triggers: Annotated[
        bool, typer.Option("--any-triggers", help="Lift the limit of triggers.")
    ] = False,
    any_running: Annotated[
        bool, typer.Option("--any-running", help="Lift the limit of running ones.")
    ] = False,
    any_retries: Annotated[
        bool, typer.Option("--any-retries", help="Lift the limit of retries.")
    ] = False,
    any_deadline: Annotated[
        bool, typer.Option("--any-deadline", help="Lift the limit of deadlines.")
    ] = False,
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Change a tenant's tier, weight or quotas."""
    quotas = given(
        {
            "schedules": schedules,
            "payload_bytes": payload_bytes,
            "min_interval_seconds": min_interval_seconds,
            "catch_up_per_minute": catch_up_per_minute,
            "triggers_per_minute": triggers_per_minute,
            "running": running,
            "retries_per_minute": retries_per_minute,
            "retry_attempts": retry_attempts,
            "retry_deadline_seconds": retry_deadline_seconds,
        }
    )
    said = (any_triggers, any_running, any_retries, any_deadline)
    lifted = dict(zip(LIFTABLE, said, strict=True))
    quotas |= {name: None for name, is_lifted in lifted.items() if is_lifted}
    body = given({"tier": tier, "weight": weight, "quotas": quotas or None})
    if not body:
        raise typer.BadParameter("name something to change")
    _change(tenant_id, body, revision, as_json=as_json)


@app.command()
def suspend(
    tenant_id: TenantId,
    *,
    reason: Annotated[str, typer.Option(help="Why.")],
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Refuse every call of a tenant; what it has scheduled goes on."""
    body = {"state": "SUSPENDED", "reason": reason}
    _change(tenant_id, body, revision, as_json=as_json)


@app.command()
def activate(
    tenant_id: TenantId,
    *,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Take a suspension back."""
    body = {"state": "ACTIVE", "reason": reason}
    _change(tenant_id, body, revision, as_json=as_json)


@principals.command("list")
def list_principals(tenant_id: TenantId, *, as_json: AsJson = False) -> None:
    """List who may call for a tenant."""
    answer = _send("GET", f"{tenant_path(tenant_id)}/principals")
    show(answer, _print_principals, as_json=as_json)


@principals.command()
def add(tenant_id: TenantId, arn: Arn, *, as_json: AsJson = False) -> None:
    """Let one more role or user call for a tenant."""
    answer = _send("PUT", _principal_path(tenant_id, arn))
    show(answer, _print_principal, as_json=as_json)


@principals.command()
def remove(tenant_id: TenantId, arn: Arn, *, as_json: AsJson = False) -> None:
    """Let a role or user no longer call for a tenant."""
    answer = _send("DELETE", _principal_path(tenant_id, arn))
    show(answer, _print_principal, as_json=as_json)


def _send(method: str, path: str, body: object = None) -> Answer:
    return connect_api(PLATFORM_ENV_FILE).send(method, path, body)


def _change(
    tenant_id: str, body: Mapping[str, Any], revision: int | None, *, as_json: bool
) -> None:
    api, path = connect_api(PLATFORM_ENV_FILE), tenant_path(tenant_id)
    headers = {"If-Match": current_tag(api, path, revision, as_json=as_json)}
    answer = api.send("PATCH", path, body, headers)
    show(answer, _print_tenant, as_json=as_json)


def tenant_path(tenant_id: str) -> str:
    """Return the path of a tenant."""
    return f"{TENANTS}/{quote(tenant_id, safe='')}"


def _principal_path(tenant_id: str, arn: str) -> str:
    return f"{tenant_path(tenant_id)}/principals/{quote(arn, safe='')}"


def _print_tenant(tenant: Mapping[str, Any]) -> None:
    quotas = tenant["quotas"]
    why = f": {tenant['reason']}" if tenant["reason"] else ""
    print_facts(
        ("tenant", tenant["tenant_id"]),
        ("tier", tenant["tier"]),
        ("state", f"{tenant['state']}{why}"),
        ("schedules", quotas["schedules"]),
        ("payload", f"{quotas['payload_bytes']} bytes"),
        ("least interval", f"{quotas['min_interval_seconds']} s"),
        ("catch-up", f"{quotas['catch_up_per_minute']} a minute"),
        ("triggers", _any_or(quotas["triggers_per_minute"])),
        ("running", "any number" if quotas["running"] is None else quotas["running"]),
        ("retries", _any_or(quotas["retries_per_minute"])),
        ("attempts", quotas["retry_attempts"]),
        ("retry deadline", _any_or(quotas["retry_deadline_seconds"], "s")),
        ("weight", tenant["weight"]),
        ("revision", tenant["revision"]),
    )


def _any_or(limit: int | None, unit: str = "a minute") -> str:
    return "any number" if limit is None else f"{limit} {unit}"


def _print_tenants(listed: Mapping[str, Any]) -> None:
    columns = ("tenant_id", "tier", "state", "weight", "revision")
    rows = [[each[name] for name in columns] for each in listed["tenants"]]
    print_table(columns, rows)


def _print_principals(listed: Mapping[str, Any]) -> None:
    for each in listed["principals"]:
        typer.echo(each)


def _print_principal(registered: Mapping[str, Any]) -> None:
    typer.echo(registered["principal"])
