"""The tables are those of schemas/tables.json, encrypted, and protected from loss."""

from typing import Any

import orjson
import pytest

from stacks.settings import ROOT
from tests.infrastructure.templates import Assembly, Resource

pytestmark = pytest.mark.xdist_group("infrastructure")

TABLE = "AWS::DynamoDB::GlobalTable"
DOCUMENT = orjson.loads((ROOT / "schemas" / "tables.json").read_bytes())["tables"]
LOGICAL = sorted(DOCUMENT)


def table(assembly: Assembly, logical: str) -> Resource:
    return assembly.one(TABLE, TableName=f"hourbell-{logical}")


def key_schema(spec: dict[str, Any]) -> list[dict[str, str]]:
    return [
        {"AttributeName": spec["partition_key"]["name"], "KeyType": "HASH"},
        {"AttributeName": spec["sort_key"]["name"], "KeyType": "RANGE"},
    ]


def test_there_are_no_other_tables(assembly: Assembly) -> None:
    names = {each.properties["TableName"] for each in assembly.of_type(TABLE)}
    assert names == {f"hourbell-{logical}" for logical in LOGICAL}


@pytest.mark.parametrize("logical", LOGICAL)
def test_keys_stream_and_ttl_are_the_documents(
    assembly: Assembly, logical: str
) -> None:
    spec, found = DOCUMENT[logical], table(assembly, logical).properties
    ttl, stream = spec.get("ttl"), spec.get("stream")
    assert found["KeySchema"] == key_schema(spec)
    assert found.get("TimeToLiveSpecification") == (
        {"AttributeName": ttl, "Enabled": True} if ttl else None
    )
    assert found.get("StreamSpecification") == (
        {"StreamViewType": stream} if stream else None
    )


@pytest.mark.parametrize("logical", LOGICAL)
def test_indexes_are_the_documents(assembly: Assembly, logical: str) -> None:
    expected = [
        {
            "IndexName": name,
            "KeySchema": key_schema(index),
            "Projection": {
                "NonKeyAttributes": index["include"],
                "ProjectionType": "INCLUDE",
            },
        }
        for name, index in DOCUMENT[logical]["indexes"].items()
    ]
    found = table(assembly, logical).properties.get("GlobalSecondaryIndexes", [])
    assert found == expected


@pytest.mark.parametrize("logical", LOGICAL)
def test_tables_are_on_demand_recoverable_and_kept(
    assembly: Assembly, logical: str
) -> None:
    found = table(assembly, logical)
    (replica,) = found.properties["Replicas"]
    assert found.properties["BillingMode"] == "PAY_PER_REQUEST"
    assert replica["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True
    }
    assert replica["DeletionProtectionEnabled"] is True
    assert found.raw["DeletionPolicy"] == "Retain"
    assert found.raw["UpdateReplacePolicy"] == "Retain"


def test_tables_of_the_local_stack_go_with_it(local_assembly: Assembly) -> None:
    for found in local_assembly.of_type(TABLE):
        (replica,) = found.properties["Replicas"]
        assert found.raw["DeletionPolicy"] == "Delete"
        assert replica["DeletionProtectionEnabled"] is False


def test_a_customers_key_encrypts_every_table_and_rotates(
    large_assembly: Assembly,
) -> None:
    key = large_assembly.one("AWS::KMS::Key")
    assert key.properties["EnableKeyRotation"] is True
    for found in large_assembly.of_type(TABLE):
        (replica,) = found.properties["Replicas"]
        assert found.properties["SSESpecification"] == {
            "SSEEnabled": True,
            "SSEType": "KMS",
        }
        used = replica["SSESpecification"]["KMSMasterKeyId"]
        assert used == f"{key.logical_id}.Arn"


def test_provisioned_tables_scale_from_what_was_chosen(
    large_assembly: Assembly,
) -> None:
    for found in large_assembly.of_type(TABLE):
        assert found.properties["BillingMode"] == "PROVISIONED"
        scaling = found.properties["WriteProvisionedThroughputSettings"]
        limits = scaling["WriteCapacityAutoScalingSettings"]
        assert (limits["MinCapacity"], limits["MaxCapacity"]) == (100, 40_000)


def test_only_the_timeline_is_warmed(large_assembly: Assembly) -> None:
    warm = {
        each.properties["TableName"]: each.properties["WarmThroughput"]
        for each in large_assembly.of_type(TABLE)
        if "WarmThroughput" in each.properties
    }
    assert warm == {"hourbell-timeline": {"WriteUnitsPerSecond": 40_000}}
