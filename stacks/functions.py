"""How every function of Hourbell is made: layers, role, logs, environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import Duration, IgnoreMode, Stack, SymlinkFollowMode
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import tables
from stacks.acknowledge import acknowledge
from stacks.data import DataStack
from stacks.logs import log_group
from stacks.settings import ROOT, SettingError, Settings

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64
UNPACKAGED = ["**/__pycache__", "**/*.egg-info", "**/.*"]
# For people at a terminal; no function imports them.
UNPACKAGED_CORE = [*UNPACKAGED, "python/hourbell/cli", "python/hourbell/local"]

# DynamoDB actions without their prefix, by logical table name. A function is told the
# names of all these tables, also of one that it may do nothing to.
Access = Mapping[str, Sequence[str]]

# The table that has indexes.
INDEXED = "schedules"

# What DynamoDB asks of a caller of a table under a customer's key.
KEY_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


class Functions(Construct):
    """The maker of one stack's functions, and its two layers.

    Each stack has layers of its own, from the same assets: a function that took its
    layer from another stack would run old code until its own stack is deployed again.
    """

    def __init__(
        self, scope: Construct, construct_id: str, settings: Settings, data: DataStack
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._data = data
        self._layers = [self._core_layer(), self._dependencies_layer()]

    def _core_layer(self) -> lambda_.LayerVersion:
        code = lambda_.Code.from_asset(
            str(ROOT / "layers" / "core"),
            exclude=UNPACKAGED_CORE,
            ignore_mode=IgnoreMode.GLOB,
            follow_symlinks=SymlinkFollowMode.ALWAYS,  # tables.json
        )
        return self._layer("Core", code, "Hourbell's domain, use cases and adapters")

    def _dependencies_layer(self) -> lambda_.LayerVersion:
        folder = dependencies_folder(self._settings)
        stamp = folder.with_name(f"{folder.name}.stamp")
        code = lambda_.Code.from_asset(
            str(folder),
            # The builder's stamp names the content; hashing it again takes seconds.
            asset_hash=stamp.read_text(encoding="utf-8") if stamp.exists() else None,
            exclude=UNPACKAGED,
            ignore_mode=IgnoreMode.GLOB,
        )
        return self._layer("Dependencies", code, "Third-party packages, pinned")

    def _layer(
        self, construct_id: str, code: lambda_.Code, description: str
    ) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            construct_id,
            code=code,
            description=description,
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )

    def make(
        self,
        name: str,
        *,
        timeout: Duration,
        memory_mb: int,
        access: Access,
        environment: Mapping[str, str],
        concurrency: int | None = None,
    ) -> lambda_.Function:
        """Make the function of functions/<name>.

        Args:
            name: of the folder; also of the function, after the prefix.
            timeout: must end well before the watermark's lag.
            memory_mb: in MiB; the share of a processor grows with it.
            access: what it may do to which table.
            environment: what it needs to know besides tables, shards and horizon.
            concurrency: how many calls it gets at once, which are kept for it; None
                for what the account has room for.
        """
        scope = Stack.of(self)
        construct_id = name.capitalize()
        logs = log_group(scope, f"{construct_id}Logs", self._settings)
        role = self._role(scope, construct_id, access)
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[logs.log_group_arn],
            )
        )
        function = lambda_.Function(
            scope,
            construct_id,
            function_name=self._settings.name(name),
            description=f"Hourbell: {name}",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.handler",
            code=lambda_.Code.from_asset(
                str(ROOT / "functions" / name),
                exclude=UNPACKAGED,
                ignore_mode=IgnoreMode.GLOB,
            ),
            layers=self._layers,
            role=role,
            timeout=timeout,
            memory_size=memory_mb,
            reserved_concurrent_executions=concurrency,
            log_group=logs,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=self._tracing(),
            environment=self._environment(name, access) | dict(environment),
        )
        acknowledge(
            function,
            "AwsSolutions-L1",
            "The dependency layer's compiled wheels are built for this runtime.",
        )
        return function

    def _tracing(self) -> lambda_.Tracing:
        on = self._settings.tracing
        return lambda_.Tracing.ACTIVE if on else lambda_.Tracing.DISABLED

    def _role(self, scope: Construct, construct_id: str, access: Access) -> iam.Role:
        role = iam.Role(
            scope,
            f"{construct_id}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"Hourbell: execution of {construct_id.lower()}",
        )
        granted = {table: actions for table, actions in access.items() if actions}
        for table, actions in granted.items():
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=[f"dynamodb:{action}" for action in actions],
                    resources=[self._data.tables[table].table_arn],
                )
            )
        if self._data.key is not None and granted:
            role.add_to_policy(
                iam.PolicyStatement(
                    actions=list(KEY_ACTIONS), resources=[self._data.key.key_arn]
                )
            )
        if self._settings.tracing:
            acknowledge(
                role,
                "AwsSolutions-IAM5[Resource::*]",
                "X-Ray's write actions know no resources.",
            )
        return role

    def _environment(self, name: str, access: Access) -> dict[str, str]:
        tables = {
            f"HOURBELL_TABLE_{table.upper()}": self._data.tables[table].table_name
            for table in access
        }
        return {
            **tables,
            "HOURBELL_SHARDS": str(self._settings.shards),
            "HOURBELL_SHARD_GROUPS": str(self._settings.shard_groups),
            "HOURBELL_HORIZON_SECONDS": str(self._settings.horizon_seconds),
            "POWERTOOLS_SERVICE_NAME": self._settings.name(name),
            "POWERTOOLS_METRICS_NAMESPACE": "Hourbell",
            # Said, not left to the default: an engine's own LOG_LEVEL is inherited.
            "POWERTOOLS_LOG_LEVEL": "INFO",
        }


def dependencies_folder(settings: Settings) -> Path:
    """Return the built dependency layer's folder.

    Raises:
        SettingError: it has not been built.
    """
    if settings.dependencies_layer:
        folder = Path(settings.dependencies_layer)
    else:
        folder = ROOT / "layers" / "dependencies" / "build" / settings.platform.value
    if not (folder / "python").is_dir():
        msg = f"no dependency layer in {folder}: run `python3 dev.py layers` first"
        raise SettingError(msg)
    return folder


def allow_send(function: lambda_.Function, queues: Sequence[sqs.IQueue]) -> None:
    """Let a function send to queues, and do nothing else to them."""
    function.add_to_role_policy(
        iam.PolicyStatement(
            actions=["sqs:SendMessage"], resources=[queue.queue_arn for queue in queues]
        )
    )


def allow_indexes(function: lambda_.Function, data: DataStack) -> None:
    """Let a function list schedules: rights to a table are none to its indexes."""
    table_arn = data.tables[INDEXED].table_arn
    function.add_to_role_policy(
        iam.PolicyStatement(
            actions=["dynamodb:Query"],
            resources=[
                f"{table_arn}/index/{index.name}"
                for index in tables.load()[INDEXED].indexes
            ],
        )
    )


def allow_external(function: lambda_.Function, settings: Settings) -> None:
    """Let a function send to the queues of others that the deployment may reach.

    A queue of another account has to allow it as well.
    """
    if not settings.external_queues:
        return
    function.add_to_role_policy(
        iam.PolicyStatement(
            actions=["sqs:SendMessage"], resources=settings.external_queues
        )
    )
    for pattern in settings.external_queues:
        if "*" in pattern:
            acknowledge(
                Stack.of(function),
                f"AwsSolutions-IAM5[Resource::{pattern}]",
                "Which queues tenants register is not known when this is deployed.",
            )


def allow_receive(function: lambda_.Function, queue: sqs.IQueue) -> None:
    """Let Lambda receive from a queue on behalf of a function."""
    function.add_to_role_policy(
        iam.PolicyStatement(
            actions=[
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ReceiveMessage",
            ],
            resources=[queue.queue_arn],
        )
    )
