"""The DynamoDB implementations of the ports.

`connect` opens a `Database`; the adapters take it.
"""

from hourbell.adapters.dynamodb.client import Database, connect
from hourbell.adapters.dynamodb.directory import DynamoDirectory
from hourbell.adapters.dynamodb.groups import DynamoShardGroups
from hourbell.adapters.dynamodb.jobs import DynamoJobs
from hourbell.adapters.dynamodb.layout import TableNames
from hourbell.adapters.dynamodb.ledger import DynamoLedger
from hourbell.adapters.dynamodb.loads import DynamoLoads
from hourbell.adapters.dynamodb.parking import DynamoParking
from hourbell.adapters.dynamodb.rates import DynamoRates
from hourbell.adapters.dynamodb.schedules import DynamoSchedules
from hourbell.adapters.dynamodb.timeline import DynamoTimeline

__all__ = [
    "Database",
    "DynamoDirectory",
    "DynamoJobs",
    "DynamoLedger",
    "DynamoLoads",
    "DynamoParking",
    "DynamoRates",
    "DynamoSchedules",
    "DynamoShardGroups",
    "DynamoTimeline",
    "TableNames",
    "connect",
]
