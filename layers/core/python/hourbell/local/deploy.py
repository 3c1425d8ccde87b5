"""Deploy a cloud assembly to the engine, and repair what the engine leaves out."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from hourbell.local import layers
from hourbell.local.assembly import Asset, SynthesizedStack, archive
from hourbell.local.directory import exclusive
from hourbell.local.errors import DeployFailed
from hourbell.local.imports import FunctionParts
from hourbell.local.translate import FUNCTION_TYPE, Repairs, StreamMapping, translate

if TYPE_CHECKING:
    import boto3

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = "30"
TEMPLATE_BUCKET = "hourbell-local-templates"
CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
DEPLOY_SECONDS = 120.0
NO_CHANGE = "No updates are to be performed"


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was deployed.

    Attributes:
        outputs: outputs of all stacks, except those that only other stacks read.
        mappings: resolved settings of the stream mappings, by logical id.
        resources: CloudFormation type -> physical ids.
        functions: the functions with their code and layers on this machine.
    """

    outputs: dict[str, str] = field(default_factory=dict)
    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    resources: dict[str, list[str]] = field(default_factory=dict)
    functions: list[FunctionParts] = field(default_factory=list)


class Deployer:
    """Puts stacks into the engine by its CloudFormation API.

    Attributes:
        session: the engine's root.
        cache: folder for archives and unpacked layers, shared by all stacks.
        python: the engine's interpreter, which runs the functions.
    """

    def __init__(self, session: "boto3.Session", cache: Path, python: Path) -> None:
        self._session = session
        self._cache = cache
        self._python = python
        self._s3 = session.client("s3")
        self._formation = session.client("cloudformation")
        self._buckets: set[str] = set()
        self._sources: dict[str, Path] = {}  # asset key -> folder on this machine

    def deploy(self, stacks: tuple[SynthesizedStack, ...]) -> Deployment:
        """Create or update the stacks in the order given.

        Raises:
            DeployFailed: names the stack, the resource, and the engine's reason.
        """
        try:
            return self._deploy(stacks)
        except (BotoCoreError, ClientError) as error:
            raise DeployFailed(f"The engine refused a call: {error}") from error

    def _deploy(self, stacks: tuple[SynthesizedStack, ...]) -> Deployment:
        self._session.client("ssm").put_parameter(
            Name=BOOTSTRAP_PARAMETER,
            Value=BOOTSTRAP_VERSION,
            Type="String",
            Overwrite=True,
        )
        self._cache.mkdir(parents=True, exist_ok=True)
        deployment = Deployment()
        for stack in stacks:
            for_layers = layers.layer_keys(stack.template)
            with exclusive(self._cache / "lock"):  # other stacks may start as well
                layers.prune(self._cache)
                for asset in stack.assets:
                    self._upload(asset, is_layer=asset.key in for_layers)
            self._deploy_stack(stack, deployment)
        return deployment

    def _upload(self, asset: Asset, *, is_layer: bool) -> None:
        if is_layer:
            folder = layers.unpacked(asset, self._cache, self._python)
            body = layers.pointing_archive(folder)
        else:
            folder = asset.source
            body = archive(asset, self._cache).read_bytes()
        self._sources[asset.key] = folder
        self._put(asset.bucket, asset.key, body)

    def _deploy_stack(self, stack: SynthesizedStack, deployment: Deployment) -> None:
        translation = translate(stack.template)
        self._submit(stack.name, translation.template)
        outputs = self._wait(stack.name)
        described = self._formation.describe_stack_resources(StackName=stack.name)
        physical: dict[str, str] = {}
        for resource in described["StackResources"]:
            name = resource.get("PhysicalResourceId", "")
            physical[resource["LogicalResourceId"]] = name
            deployment.resources.setdefault(resource["ResourceType"], []).append(name)
        self._repair(translation.repairs, physical, outputs)
        deployment.outputs.update(_for_people(stack.template, outputs))
        deployment.mappings.update(_resolve(translation.mappings, outputs))
        deployment.functions.extend(self._functions(stack.template, physical))

    def _submit(self, name: str, template: Mapping[str, Any]) -> None:
        """Create the stack, or update it when it exists."""
        # By way of S3: a body in the call may have 51,200 bytes only.
        key = f"{name}.template.json"
        self._put(TEMPLATE_BUCKET, key, json.dumps(template).encode())
        url = f"{self._s3.meta.endpoint_url}/{TEMPLATE_BUCKET}/{key}"
        client = self._formation
        try:
            client.create_stack(
                StackName=name,
                TemplateURL=url,
                Capabilities=list(CAPABILITIES),  # type: ignore[arg-type]
                DisableRollback=True,
            )
        except client.exceptions.AlreadyExistsException:
            self._update(name, url)
        except ClientError as error:
            raise DeployFailed(f"Stack {name} was refused: {_reason(error)}") from error

    def _update(self, name: str, url: str) -> None:
        try:
            self._formation.update_stack(
                StackName=name,
                TemplateURL=url,
                Capabilities=list(CAPABILITIES),  # type: ignore[arg-type]
            )
        except ClientError as error:
            # CloudFormation has no code of its own for this outcome.
            if NO_CHANGE not in _reason(error):
                raise DeployFailed(
                    f"The update of stack {name} was refused: {_reason(error)}"
                ) from error

    def _wait(self, name: str) -> dict[str, str]:
        """Wait for the stack and return its outputs."""
        deadline = time.monotonic() + DEPLOY_SECONDS
        while True:
            stack = self._formation.describe_stacks(StackName=name)["Stacks"][0]
            status = stack["StackStatus"]
            if status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
                return {
                    output.get("OutputKey", ""): output.get("OutputValue", "")
                    for output in stack.get("Outputs", [])
                }
            if not status.endswith("IN_PROGRESS"):
                raise DeployFailed(f"Stack {name}: {status}. {self._why(name)}")
            if time.monotonic() > deadline:
                raise DeployFailed(
                    f"Stack {name} is {status} after {DEPLOY_SECONDS:.0f} s."
                )
            time.sleep(0.05)

    def _why(self, name: str) -> str:
        """Return which resources failed, and the engine's reasons."""
        events = self._formation.describe_stack_events(StackName=name)["StackEvents"]
        reasons = [
            f"{event.get('LogicalResourceId')} ({event.get('ResourceType')}): "
            f"{event.get('ResourceStatusReason', 'no reason given')}"
            for event in reversed(events)
            if event.get("ResourceStatus", "").endswith("FAILED")
            and event.get("ResourceType") != "AWS::CloudFormation::Stack"
        ]
        return "; ".join(reasons) or "The engine gives no reason."

    def _repair(
        self, repairs: Repairs, physical: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        """Set by API what the engine's CloudFormation drops."""
        tables = self._session.client("dynamodb")
        for logical_id, attribute in repairs.ttl_attribute.items():
            tables.update_time_to_live(
                TableName=physical[logical_id],
                TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
            )
        for logical_id in repairs.recovery:
            tables.update_continuous_backups(
                TableName=physical[logical_id],
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
        functions = self._session.client("lambda")
        for logical_id, executions in repairs.concurrency.items():
            functions.put_function_concurrency(
                FunctionName=physical[logical_id],
                ReservedConcurrentExecutions=executions,
            )
        for logical_id, output in repairs.dead_letter.items():
            functions.update_function_configuration(
                FunctionName=physical[logical_id],
                DeadLetterConfig={"TargetArn": outputs[output]},
            )

    def _functions(
        self, template: Mapping[str, Any], physical: Mapping[str, str]
    ) -> list[FunctionParts]:
        """Return the stack's functions that are made of assets."""
        resources = template["Resources"]
        contents = {
            physical[logical_id]: self._sources[
                resource["Properties"]["Content"]["S3Key"]
            ]
            for logical_id, resource in resources.items()
            if resource["Type"] == layers.LAYER_TYPE
        }
        client = self._session.client("lambda")
        found = []
        for logical_id, resource in resources.items():
            code = resource.get("Properties", {}).get("Code", {}).get("S3Key")
            if resource["Type"] != FUNCTION_TYPE or code not in self._sources:
                continue
            config = client.get_function_configuration(
                FunctionName=physical[logical_id]
            )
            found.append(
                FunctionParts(
                    name=config["FunctionName"],
                    handler=config["Handler"],
                    code=self._sources[code],
                    layers=tuple(
                        contents[layer["Arn"]]
                        for layer in config.get("Layers", [])
                        if layer["Arn"] in contents
                    ),
                    environment=config.get("Environment", {}).get("Variables", {}),
                )
            )
        return found

    def _put(self, bucket: str, key: str, body: bytes) -> None:
        if bucket not in self._buckets:
            self._s3.create_bucket(Bucket=bucket)
            self._buckets.add(bucket)
        self._s3.put_object(Bucket=bucket, Key=key, Body=body)


def _resolve(
    mappings: tuple[StreamMapping, ...], outputs: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    return {mapping.logical_id: mapping.resolve(outputs) for mapping in mappings}


def _for_people(
    template: Mapping[str, Any], outputs: Mapping[str, str]
) -> dict[str, str]:
    """Return the template's own outputs, without those for other stacks."""
    return {
        name: outputs[name]
        for name, output in template.get("Outputs", {}).items()
        if "Export" not in output
    }


def _reason(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))
