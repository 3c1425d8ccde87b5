"""The engine's copy of a template differs where it must, and nowhere else."""

import copy
from typing import Any

import pytest
from hourbell.local.translate import (
    ENGINE_PARTIQL,
    add_engine_actions,
    is_stream_mapping,
    translate,
)

STREAM = {"Fn::ImportValue": "data:stream"}


def template() -> dict[str, Any]:
    return {
        "Resources": {
            "Relay": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "ReservedConcurrentExecutions": 7,
                    "DeadLetterConfig": {"TargetArn": {"Fn::GetAtt": ["Dlq", "Arn"]}},
                },
            },
            "Dlq": {"Type": "AWS::SQS::Queue"},
            "StreamToRelay": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {
                    "EventSourceArn": STREAM,
                    "FunctionName": {"Ref": "Relay"},
                    "StartingPosition": "LATEST",
                    "BatchSize": 25,
                    "FilterCriteria": {"Filters": [{"Pattern": '{"a":["b"]}'}]},
                    "DestinationConfig": {
                        "OnFailure": {"Destination": {"Fn::GetAtt": ["Dlq", "Arn"]}}
                    },
                },
            },
            "WorkToRelay": {
                "Type": "AWS::Lambda::EventSourceMapping",
                "Properties": {
                    "EventSourceArn": {"Fn::GetAtt": ["Dlq", "Arn"]},
                    "FunctionName": {"Ref": "Relay"},
                },
            },
            "Timeline": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {
                    "TimeToLiveSpecification": {
                        "AttributeName": "ttl",
                        "Enabled": True,
                    },
                    "PointInTimeRecoverySpecification": {
                        "PointInTimeRecoveryEnabled": True
                    },
                },
            },
            "Replicated": {
                "Type": "AWS::DynamoDB::GlobalTable",
                "Properties": {
                    "Replicas": [
                        {
                            "PointInTimeRecoverySpecification": {
                                "PointInTimeRecoveryEnabled": True
                            }
                        }
                    ]
                },
            },
            "Plain": {"Type": "AWS::DynamoDB::Table", "Properties": {}},
        },
        "Outputs": {"ApiUrl": {"Value": "x"}},
    }


def test_only_the_stream_mapping_is_switched_off() -> None:
    resources = translate(template()).template["Resources"]
    assert resources["StreamToRelay"]["Properties"]["Enabled"] is False
    assert "Enabled" not in resources["WorkToRelay"]["Properties"]


def test_the_input_stays_as_it_was() -> None:
    given = template()
    before = copy.deepcopy(given)
    translate(given)
    assert given == before


def test_references_of_the_mapping_come_back_through_outputs() -> None:
    translation = translate(template())
    (mapping,) = translation.mappings
    outputs = translation.template["Outputs"]
    values = {
        name: f"resolved {output['Value']}"
        for name, output in outputs.items()
        if name != "ApiUrl"
    }
    resolved = mapping.resolve(values)
    assert mapping.logical_id == "StreamToRelay"
    assert resolved["EventSourceArn"] == f"resolved {STREAM}"
    assert resolved["FunctionName"] == "resolved {'Ref': 'Relay'}"
    assert resolved["DestinationConfig"]["OnFailure"]["Destination"].startswith("res")
    assert resolved["FilterCriteria"] == {"Filters": [{"Pattern": '{"a":["b"]}'}]}
    assert (resolved["BatchSize"], resolved["Enabled"]) == (25, True)
    assert all(name.isalnum() for name in outputs)


@pytest.mark.parametrize("written", [False, "false"])
def test_a_mapping_that_is_off_in_the_template_stays_off(written: Any) -> None:
    given = template()
    given["Resources"]["StreamToRelay"]["Properties"]["Enabled"] = written
    (mapping,) = translate(given).mappings
    assert mapping.settings["Enabled"] is False


def test_what_the_engine_drops_is_noted() -> None:
    translation = translate(template())
    repairs = translation.repairs
    assert repairs.ttl_attribute == {"Timeline": "ttl"}
    assert repairs.recovery == ("Timeline", "Replicated")
    assert repairs.concurrency == {"Relay": 7}
    name = repairs.dead_letter["Relay"]
    target = {"Value": {"Fn::GetAtt": ["Dlq", "Arn"]}}
    assert translation.template["Outputs"][name] == target


def test_a_template_without_anything_to_fit_is_deployed_as_it_is() -> None:
    given = {"Resources": {"Dlq": {"Type": "AWS::SQS::Queue"}}}
    assert translate(given).template == given


@pytest.mark.parametrize(
    "action", ["dynamodb:PartiQLInsert", ["dynamodb:Query", "dynamodb:PartiQLUpdate"]]
)
def test_partiql_rights_are_given_under_the_engines_names_too(action: Any) -> None:
    statement = {"Effect": "Allow", "Action": action, "Resource": "table"}
    document: dict[str, Any] = {"Statement": [statement]}
    add_engine_actions(document)
    first, added = document["Statement"]
    assert first == statement
    assert added["Action"] == list(ENGINE_PARTIQL)


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": "*"},
        {"Effect": "Deny", "Action": ["dynamodb:PartiQLInsert"], "Resource": "*"},
        {"Effect": "Allow", "NotAction": "sqs:*", "Resource": "*"},
    ],
)
def test_nobody_else_gets_them(statement: dict[str, Any]) -> None:
    document = {"Statement": [statement]}
    add_engine_actions(document)
    assert document == {"Statement": [statement]}


@pytest.mark.parametrize(
    "place",
    [
        {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": None}},
        {
            "Type": "AWS::IAM::Role",
            "Properties": {"Policies": [{"PolicyDocument": None}]},
        },
    ],
)
def test_policies_are_found_wherever_a_template_keeps_them(
    place: dict[str, Any],
) -> None:
    allowed = {"Effect": "Allow", "Action": "dynamodb:PartiQLInsert", "Resource": "t"}
    document = {"Statement": allowed}
    properties = place["Properties"]
    if "Policies" in properties:
        properties["Policies"][0]["PolicyDocument"] = document
    else:
        properties["PolicyDocument"] = document
    result = translate({"Resources": {"It": place}}).template
    assert str(ENGINE_PARTIQL[0]) in str(result)


def test_only_mappings_with_a_starting_position_read_streams() -> None:
    assert is_stream_mapping({"StartingPosition": "LATEST"})
    assert not is_stream_mapping({"BatchSize": 1})
