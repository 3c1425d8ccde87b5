"""What a local stack starts with: a tenant that can schedule, and who administers."""

import dataclasses
from typing import TYPE_CHECKING, Final

from hourbell.local import iam
from hourbell.local.directory import StackDirectory, write_private
from hourbell.local.errors import LocalStackError
from hourbell.local.state import (
    Credentials,
    StackState,
    environment_lines,
    render_environment,
)

if TYPE_CHECKING:
    import boto3

TENANT: Final = "local"
HANDLER: Final = "report"
TABLES: Final = ("schedules", "timeline", "control")


def seed(
    directory: StackDirectory,
    state: StackState,
    session: "boto3.Session",
    operator: Credentials,
) -> None:
    """Create the tenant `local` with its handler, and the platform role's user.

    The operator calls for the tenant; who administers tenants is a user of its own,
    whose keys are in `platform.env`. A stack without Hourbell's tables gets neither.

    Args:
        directory: of the stack.
        state: the stack, deployed.
        session: the engine's root, for making a user.
        operator: the user that `.local/env` names.

    Raises:
        LocalStackError: the tables did not take the tenant.
    """
    if not set(TABLES) <= set(state.tables):
        return
    _create_tenant(state, session, operator)
    platform = iam.create_user(session, iam.PLATFORM, iam.invoke_api_policy())
    lines = environment_lines(dataclasses.replace(state, operator=platform))
    write_private(directory.platform_file, render_environment(lines))


def _create_tenant(
    state: StackState, session: "boto3.Session", operator: Credentials
) -> None:
    # They load boto3 and the models, which other commands do without.
    from hourbell.adapters.clock import SystemClock  # noqa: PLC0415
    from hourbell.adapters.dynamodb import (  # noqa: PLC0415
        DynamoDirectory,
        TableNames,
        connect,
    )
    from hourbell.domain.definition import Handler, Tenant, Tier  # noqa: PLC0415
    from hourbell.domain.errors import HourbellError  # noqa: PLC0415
    from hourbell.usecases.tenants import Registrar, create_tenant  # noqa: PLC0415

    tables = TableNames(**{name: state.tables[name] for name in TABLES})
    database = connect(tables, session=session, endpoint_url=state.endpoint_url)
    tenants = DynamoDirectory(database, SystemClock())
    try:
        create_tenant(Registrar(tenants), Tenant(TENANT, Tier.STANDARD), [operator.arn])
        tenants.register_handler(Handler(TENANT, HANDLER))
    except HourbellError as error:
        raise LocalStackError(f"The tenant {TENANT} is refused: {error}") from error
