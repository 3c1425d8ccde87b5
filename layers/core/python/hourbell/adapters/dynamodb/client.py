"""Opening of the low-level clients.

One kind of client serves every call, so that timeouts, retries, metering and the
translation of errors exist once. Items come from the PynamoDB models by the codec.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from boto3.session import Session
from botocore.config import Config

from hourbell.adapters.backoff import Allowance, Backoff
from hourbell.adapters.dynamodb.layout import TableNames

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

    from hourbell.adapters.metering import CapacityMeter

CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 5
_POOL_CONNECTIONS = 16

CONTENDED = Backoff(attempts=100, cap_seconds=0.4, deadline_seconds=8.0)


@dataclass(frozen=True, slots=True)
class Database:
    """The tables and the clients that reach them.

    Attributes:
        client: retries by itself; for everything that may be done twice.
        single: never retries, since a hidden retry of a conditional update would
            make its own success look like another writer's.
        backoff: for what the adapters retry themselves.
        contended: for transactions that many callers run at one item, such as a
            tenant's counter; as long as a request may take.
    """

    tables: TableNames
    client: "DynamoDBClient"
    single: "DynamoDBClient"
    backoff: Backoff = field(default_factory=Backoff)
    contended: Backoff = field(default_factory=lambda: CONTENDED)


def client_config(attempts: int) -> Config:
    """Return the settings of a client that tries a call this often."""
    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=_POOL_CONNECTIONS,
        tcp_keepalive=True,
        parameter_validation=False,
    )


def connect(
    tables: TableNames,
    *,
    meter: "CapacityMeter | None" = None,
    session: Session | None = None,
    endpoint_url: str | None = None,
    backoff: Backoff | None = None,
    allowance: Allowance | None = None,
) -> Database:
    """Open the clients.

    Args:
        tables: physical names.
        meter: counts calls and consumed capacity when there is one.
        session: region and credentials; the environment's when None.
        endpoint_url: where the service is; AWS_ENDPOINT_URL_DYNAMODB or
            AWS_ENDPOINT_URL, else AWS itself, when None.
        backoff: the adapters' own retries.
        allowance: what bounds them for each request, where requests are answered.
    """
    opened = session or Session()
    client, single = (
        opened.client(
            "dynamodb", endpoint_url=endpoint_url, config=client_config(attempts)
        )
        for attempts in (3, 1)
    )
    if meter is not None:
        meter.attach(client)
        meter.attach(single)
    own, contended = (
        replace(each, allowance=allowance) for each in (backoff or Backoff(), CONTENDED)
    )
    return Database(tables, client, single, own, contended)
