"""A small cloud assembly in the shape of `cdk synth`'s, without the CDK's seconds.

Two stacks, the second importing from the first: a table with a stream, queues, a
function with a stream mapping and a queue mapping, a rule, and an API with IAM.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
TABLE, QUEUE, FAILURES = "probe-timeline", "probe-work", "probe-stream-failures"
STREAM_FUNCTION, QUEUE_FUNCTION = "probe-stream", "probe-queue"


def write_assembly(
    folder: Path,
    seen: Path,
    *,
    mapping: dict[str, Any] | None = None,
    raises: bool = False,
    break_it: bool = False,
) -> Path:
    """Write the assembly.

    Args:
        folder: where to.
        seen: the file that the functions write to.
        mapping: properties of the stream mapping, over the usual ones.
        raises: functions raise where they would report a failed record.
        break_it: add a resource that the engine refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    code = HERE / "function"
    digest = hashlib.sha256((code / "handler.py").read_bytes()).hexdigest()
    variables = {"PROBE_SEEN": str(seen)} | ({"PROBE_RAISES": "1"} if raises else {})
    data, app = data_stack(), app_stack(f"{digest}.zip", variables, mapping or {})
    if break_it:
        app["Resources"]["Broken"] = {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": "probe-broken",
                "Layers": ["arn:aws:lambda:us-east-1:000000000000:layer:none:1"],
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            },
        }
    files = {
        digest: {
            "source": {"path": str(code), "packaging": "zip"},
            "destinations": {
                "here": {"bucketName": BUCKET, "objectKey": f"{digest}.zip"}
            },
        }
    }
    artifacts = {
        "ProbeApp": stack_artifact("ProbeApp", ["ProbeData"]),
        "ProbeData": stack_artifact("ProbeData", []),
    }
    put(folder / "ProbeData.template.json", data)
    put(folder / "ProbeApp.template.json", app)
    put(folder / "ProbeApp.assets.json", {"version": "1", "files": files})
    put(folder / "manifest.json", {"version": "1", "artifacts": artifacts})
    return folder


def stack_artifact(name: str, dependencies: list[str]) -> dict[str, Any]:
    return {
        "type": "aws:cloudformation:stack",
        "properties": {"templateFile": f"{name}.template.json"},
        "dependencies": dependencies,
    }


def data_stack() -> dict[str, Any]:
    table = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "TableName": TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
            "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        },
    }
    return {
        "Resources": {"Timeline": table},
        "Outputs": {
            "Stream": export("stream", {"Fn::GetAtt": ["Timeline", "StreamArn"]}),
            "Table": export("table", {"Fn::GetAtt": ["Timeline", "Arn"]}),
        },
    }


def app_stack(
    code: str, variables: dict[str, str], mapping: dict[str, Any]
) -> dict[str, Any]:
    resources = {
        "Role": role(),
        "Work": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": QUEUE}},
        "Failures": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": FAILURES}},
        "StreamFunction": function(STREAM_FUNCTION, code, variables),
        "QueueFunction": function(QUEUE_FUNCTION, code, variables),
        "StreamMapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": stream_mapping() | mapping,
        },
        "QueueMapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": {"Fn::GetAtt": ["Work", "Arn"]},
                "FunctionName": {"Ref": "QueueFunction"},
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            },
        },
        **api(),
    }
    url = "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/${Stage}/"
    return {
        "Parameters": {
            "BootstrapVersion": {
                "Type": "AWS::SSM::Parameter::Value<String>",
                "Default": "/cdk-bootstrap/hnb659fds/version",
            }
        },
        "Resources": resources,
        "Outputs": {"ApiUrl": {"Value": {"Fn::Sub": url}}},
    }


def stream_mapping() -> dict[str, Any]:
    return {
        "EventSourceArn": {"Fn::ImportValue": "probe-stream"},
        "FunctionName": {"Fn::GetAtt": ["StreamFunction", "Arn"]},
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 10,
        "MaximumRetryAttempts": 2,
        "BisectBatchOnFunctionError": True,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "FilterCriteria": {
            "Filters": [
                {"Pattern": json.dumps({"eventName": ["INSERT", "MODIFY"]})},
            ]
        },
        "DestinationConfig": {
            "OnFailure": {"Destination": {"Fn::GetAtt": ["Failures", "Arn"]}}
        },
    }


def function(name: str, code: str, extra: dict[str, str]) -> dict[str, Any]:
    variables = {
        **extra,
        "HOURBELL_TABLE_TIMELINE": TABLE,
        "HOURBELL_QUEUE_URLS": {
            "Fn::Sub": '{"basic-strict": "${Work}"}',
        },
    }
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "FunctionName": name,
            "Runtime": "python3.13",
            "Handler": "handler.handler",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Timeout": 10,
            "Code": {"S3Bucket": {"Fn::Sub": BUCKET}, "S3Key": code},
            "Environment": {"Variables": variables},
            "ReservedConcurrentExecutions": 5,
            "DeadLetterConfig": {"TargetArn": {"Fn::GetAtt": ["Failures", "Arn"]}},
        },
    }


def role() -> dict[str, Any]:
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "lambda.amazonaws.com"},
    }
    statement = {
        "Effect": "Allow",
        "Action": ["dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"],
        "Resource": {"Fn::ImportValue": "probe-table"},
    }
    policy = {"PolicyName": "rows", "PolicyDocument": {"Statement": [statement]}}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Statement": [trust]},
            "Policies": [policy],
        },
    }


def api() -> dict[str, Any]:
    uri = (
        "arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/"
        "${QueueFunction.Arn}/invocations"
    )
    return {
        "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Name": "probe"}},
        "Ping": {
            "Type": "AWS::ApiGateway::Resource",
            "Properties": {
                "RestApiId": {"Ref": "Api"},
                "ParentId": {"Fn::GetAtt": ["Api", "RootResourceId"]},
                "PathPart": "ping",
            },
        },
        "GetPing": {
            "Type": "AWS::ApiGateway::Method",
            "Properties": {
                "RestApiId": {"Ref": "Api"},
                "ResourceId": {"Ref": "Ping"},
                "HttpMethod": "GET",
                "AuthorizationType": "AWS_IAM",
                "Integration": {
                    "Type": "AWS_PROXY",
                    "IntegrationHttpMethod": "POST",
                    "Uri": {"Fn::Sub": uri},
                },
            },
        },
        "Deployment": {
            "Type": "AWS::ApiGateway::Deployment",
            "DependsOn": ["GetPing"],
            "Properties": {"RestApiId": {"Ref": "Api"}},
        },
        "Stage": {
            "Type": "AWS::ApiGateway::Stage",
            "Properties": {
                "RestApiId": {"Ref": "Api"},
                "DeploymentId": {"Ref": "Deployment"},
                "StageName": "prod",
            },
        },
        "Permission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "Action": "lambda:InvokeFunction",
                "FunctionName": {"Ref": "QueueFunction"},
                "Principal": "apigateway.amazonaws.com",
            },
        },
    }


def export(name: str, value: Any) -> dict[str, Any]:
    return {"Value": value, "Export": {"Name": f"probe-{name}"}}


def put(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
