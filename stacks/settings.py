"""What a deployment may choose, read from the CDK context (`-c name=value`)."""

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from aws_cdk import RemovalPolicy
from constructs import Node

ROOT = Path(__file__).resolve().parent.parent

PRINCIPAL = r"arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:[a-z-]+/[A-Za-z0-9_+=,.@/-]+"
TENANT_ID = r"[a-z][a-z0-9-]{1,62}"
EMAIL = r"[^@\s,]+@[^@\s,]+\.[^@\s,]+"
QUEUE_PATTERN = r"arn:aws[a-z-]*:sqs:[a-z0-9*?-]+:[0-9]{12}:[A-Za-z0-9_*?-]+"
LONGEST_LANE = "flexible"
MAX_QUEUE_NAME = 80


class SettingError(Exception):
    """A context value is not one that the stacks understand."""


class Platform(StrEnum):
    """Where the functions run: decides which build of the dependency layer is used."""

    LAMBDA = "lambda"
    LOCAL = "local"


class Removal(StrEnum):
    """What becomes of tables, queues' failures and logs when a stack is deleted."""

    RETAIN = "retain"
    DESTROY = "destroy"


class Billing(StrEnum):
    """How the tables' throughput is paid."""

    ON_DEMAND = "on-demand"
    PROVISIONED = "provisioned"


class Encryption(StrEnum):
    """Whose key encrypts the tables; without one it is DynamoDB's own, at no charge."""

    OWNED = "owned"
    MANAGED = "managed"
    CUSTOMER = "customer"


@dataclass(frozen=True, slots=True)
class Settings:
    """One deployment. Every field is a context switch of the same name.

    docs/deploy.md describes them for people.

    Attributes:
        prefix: begins every physical name; one account and region may hold several.
        removal: empty means `retain` on Lambda, `destroy` on the local stack.
        warm_writes: write units a second that the timeline is warm for; 0 leaves it
            at DynamoDB's start value.
        warm_reads: the same for read units.
        min_capacity: with provisioned billing, units that are always there.
        max_capacity: with provisioned billing, where scaling stops.
        visibility_seconds: of the delivery queues, unless the consumer says otherwise.
        max_receives: after so many receives a delivery queue gives a message up.
        parallelization_factor: concurrent relays per stream shard, 1 to 10.
        relay_window_seconds: how long the relay may wait to fill a batch, 0 to 300.
        sweep_concurrency: how many relays the sweep may occupy, at least 2.
        workers_concurrency: how many calls of workers are answered at once; 0: as many
            as the account has room for.
        allowed_accounts: other accounts that may call the API, separated by commas.
        platform_principals: ARNs of the roles and users that administer tenants,
            separated by commas.
        dedicated_tenants: ids of tenants that get queues of their own, separated by
            commas.
        external_queue_arns: patterns of ARNs of other queues that handlers may be
            routed to, separated by commas.
        api_log_role: whether to set the account's role for API Gateway's logs.
        alarms: whether there are alarms; never on the local stack.
        alarm_emails: addresses that are told of alarms, separated by commas.
        dependencies_layer: folder of a built dependency layer; empty means the build
            of `platform`.
    """

    prefix: str = "hourbell"
    platform: Platform = Platform.LAMBDA
    removal: str = ""
    billing: Billing = Billing.ON_DEMAND
    encryption: Encryption = Encryption.OWNED
    warm_writes: int = 0
    warm_reads: int = 0
    min_capacity: int = 5
    max_capacity: int = 40_000
    shards: int = 16
    shard_groups: int = 4
    horizon_seconds: int = 180
    visibility_seconds: int = 120
    max_receives: int = 30
    parallelization_factor: int = 4
    relay_window_seconds: int = 0
    sweep_concurrency: int = 10
    workers_concurrency: int = 0
    allowed_accounts: str = ""
    platform_principals: str = ""
    dedicated_tenants: str = ""
    external_queue_arns: str = ""
    api_rate: int = 1_000
    api_burst: int = 500
    api_metrics: bool = False
    api_log_role: bool = True
    tracing: bool = False
    log_retention_days: int = 30
    termination_protection: bool = False
    alarms: bool = True
    alarm_emails: str = ""
    dependencies_layer: str = ""

    @classmethod
    def from_context(cls, node: Node) -> Self:
        """Read every switch that is set.

        Raises:
            SettingError: a value has the wrong type or is out of range.
        """
        values = {
            field.name: _parsed(field.name, field.type, value)
            for field in fields(cls)
            if (value := node.try_get_context(field.name)) is not None
        }
        settings = cls(**values)
        settings._check()
        return settings

    def _check(self) -> None:
        if self.removal:
            _parsed("removal", Removal, self.removal)
        ranges = {
            "shards": (1, 4_096),
            "shard_groups": (1, min(self.shards, 1_000)),
            "horizon_seconds": (60, 840),
            "visibility_seconds": (1, 43_200),
            "max_receives": (1, 1_000),
            "parallelization_factor": (1, 10),
            "relay_window_seconds": (0, 300),
            "sweep_concurrency": (2, 1_000),
            "workers_concurrency": (0, 100_000),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= most:
                msg = f"context {name}={value}: allowed are {least} to {most}"
                raise SettingError(msg)
        self._check_words("platform_principals", self.operators, PRINCIPAL)
        self._check_words("dedicated_tenants", self.tenants, TENANT_ID)
        self._check_words("external_queue_arns", self.external_queues, QUEUE_PATTERN)
        self._check_words("alarm_emails", self.watchers, EMAIL)
        for tenant in self.tenants:
            if len(self.name(f"tenant-{tenant}-{LONGEST_LANE}-dlq")) > MAX_QUEUE_NAME:
                msg = f"context dedicated_tenants: {tenant} makes queue names too long"
                raise SettingError(msg)

    @staticmethod
    def _check_words(name: str, words: list[str], allowed: str) -> None:
        for word in words:
            if not re.fullmatch(allowed, word):
                msg = f"context {name}: {word} is none ({allowed})"
                raise SettingError(msg)

    @property
    def keeps_data(self) -> bool:
        """Whether tables and logs outlive their stack."""
        if self.removal:
            return self.removal == Removal.RETAIN
        return self.platform is Platform.LAMBDA

    @property
    def removal_policy(self) -> RemovalPolicy:
        """What CloudFormation does with tables and logs when their stack goes."""
        return RemovalPolicy.RETAIN if self.keeps_data else RemovalPolicy.DESTROY

    @property
    def enforces_tls(self) -> bool:
        """Whether queues refuse plain HTTP: it is all that the local engine speaks."""
        return self.platform is Platform.LAMBDA

    @property
    def has_alarms(self) -> bool:
        """Whether somebody is told of what goes wrong."""
        return self.alarms and self.platform is Platform.LAMBDA

    @property
    def watchers(self) -> list[str]:
        """The addresses that are told of alarms."""
        return _words(self.alarm_emails)

    @property
    def accounts(self) -> list[str]:
        """The other accounts that may call the API."""
        return _words(self.allowed_accounts)

    @property
    def operators(self) -> list[str]:
        """The ARNs of those who administer tenants."""
        return _words(self.platform_principals)

    @property
    def tenants(self) -> list[str]:
        """The tenants that get queues of their own."""
        return _words(self.dedicated_tenants)

    @property
    def external_queues(self) -> list[str]:
        """The patterns of queues of others that the relay may send to."""
        return _words(self.external_queue_arns)

    def stack_name(self, part: str) -> str:
        """Return a stack's name: `HourbellData` for the default prefix."""
        return "".join(word.capitalize() for word in self.prefix.split("-")) + part

    def name(self, logical: str) -> str:
        """Return a physical name: `<prefix>-<logical>`."""
        return f"{self.prefix}-{logical}"


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    return list(dict.fromkeys(word for word in words if word))


def _parsed(name: str, kind: Any, value: Any) -> Any:  # noqa: ANN401 (context is JSON)
    if kind is bool:
        words = {"true": True, "false": False}
        if (word := str(value).lower()) in words:
            return words[word]
        msg = f"context {name}={value}: allowed are true and false"
        raise SettingError(msg)
    try:
        return kind(value)
    except ValueError as error:
        values = list(kind) if issubclass(kind, StrEnum) else ["whole numbers"]
        msg = f"context {name}={value}: allowed are {', '.join(values)}"
        raise SettingError(msg) from error
