"""Creation of the tables without CDK: for tests and local seeding.

In an account the data stack makes them, from the same document.
"""

from typing import TYPE_CHECKING, Any

from hourbell.adapters.dynamodb.layout import DOCUMENT, TableNames

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


def create_tables(client: "DynamoDBClient", prefix: str) -> TableNames:
    """Create all tables, on demand, with index, stream and TTL.

    Args:
        client: of the service to create them in.
        prefix: physical names are `<prefix>-<logical name>`.
    """
    for logical, table in DOCUMENT["tables"].items():
        name = f"{prefix}-{logical}"
        client.create_table(**_description(name, table))
        client.get_waiter("table_exists").wait(
            TableName=name, WaiterConfig={"Delay": 1}
        )
        if "ttl" in table:
            client.update_time_to_live(
                TableName=name,
                TimeToLiveSpecification={
                    "Enabled": True,
                    "AttributeName": table["ttl"],
                },
            )
    return TableNames.with_prefix(prefix)


def _description(name: str, table: dict[str, Any]) -> dict[str, Any]:
    keyed = [table, *table["indexes"].values()]
    types = {
        key["name"]: key["type"]
        for each in keyed
        for key in (each["partition_key"], each["sort_key"])
    }
    description: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema(table),
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": letter}
            for attribute, letter in types.items()
        ],
    }
    if table["indexes"]:
        description["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index_name,
                "KeySchema": _key_schema(index),
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": index["include"],
                },
            }
            for index_name, index in table["indexes"].items()
        ]
    if "stream" in table:
        description["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": table["stream"],
        }
    return description


def _key_schema(keyed: dict[str, Any]) -> list[dict[str, str]]:
    return [
        {"AttributeName": keyed["partition_key"]["name"], "KeyType": "HASH"},
        {"AttributeName": keyed["sort_key"]["name"], "KeyType": "RANGE"},
    ]
