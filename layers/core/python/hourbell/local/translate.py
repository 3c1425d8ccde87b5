"""Fit a synthesized template to the engine, and note what the engine leaves out.

The synthesized template stays as it is for AWS. What is deployed here is a copy:

- stream mappings are switched off, since the pump does their work; their resolved
  settings come back through outputs that this module adds;
- roles that may use PartiQL or SQS get the engine's own names for those actions;
- what the engine's CloudFormation drops (time to live, point-in-time recovery, a
  function's dead-letter queue and reserved concurrency) is returned as repairs.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
FUNCTION_TYPE = "AWS::Lambda::Function"
TABLE_TYPES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
POLICY_TYPES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
ROLE_TYPE = "AWS::IAM::Role"
PARTIQL = "dynamodb:PartiQL"
ENGINE_PARTIQL = ("dynamodb:BatchExecuteStatement", "dynamodb:ExecuteStatement")
BATCHED = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
OUTPUT_PREFIX = "HourbellLocal"


@dataclass(frozen=True, slots=True)
class StreamMapping:
    """A stream mapping of the template, its references still open.

    Attributes:
        logical_id: its name in the template.
        settings: its properties as written, references replaced by output names.
    """

    logical_id: str
    settings: Json

    def resolve(self, outputs: Mapping[str, str]) -> Json:
        """Return the settings with every output name replaced by its value."""
        resolved: Json = _replace(self.settings, outputs)
        return resolved


@dataclass(frozen=True, slots=True)
class Repairs:
    """What must be set by API calls after the deployment, by logical id.

    Attributes:
        ttl_attribute: table -> attribute that holds the expiry.
        recovery: tables with point-in-time recovery.
        concurrency: function -> reserved concurrent executions.
        dead_letter: function -> name of the output that holds the target's ARN.
    """

    ttl_attribute: dict[str, str]
    recovery: tuple[str, ...]
    concurrency: dict[str, int]
    dead_letter: dict[str, str]


@dataclass(frozen=True, slots=True)
class Translation:
    """The engine's copy of a template, and what else there is to do."""

    template: Json
    mappings: tuple[StreamMapping, ...]
    repairs: Repairs


def translate(template: Mapping[str, Any]) -> Translation:
    """Return the engine's copy of a synthesized template; the input is not changed."""
    result: Json = copy.deepcopy(dict(template))
    resources: Json = result.get("Resources", {})
    outputs: Json = {}
    mappings = tuple(
        _switch_off(logical_id, resource["Properties"], outputs)
        for logical_id, resource in _of_type(resources, MAPPING_TYPE)
        if is_stream_mapping(resource["Properties"])
    )
    for document in _policy_documents(resources):
        add_engine_actions(document)
    repairs = _repairs(resources, outputs)
    if outputs:
        result["Outputs"] = {**result.get("Outputs", {}), **outputs}
    return Translation(result, mappings, repairs)


def is_stream_mapping(properties: Mapping[str, Any]) -> bool:
    """Return whether a mapping reads a stream: only those have a starting position."""
    return "StartingPosition" in properties


def add_engine_actions(document: Json) -> None:
    """Allow the engine's own actions wherever a document allows AWS's.

    On AWS a statement is checked as PartiQLInsert, PartiQLUpdate ... on its table;
    the engine checks the call itself, on no table in particular. And AWS checks
    SQS's batch calls as their single ones, the engine by their own names.
    """
    statements = document.get("Statement", [])
    statements = statements if isinstance(statements, list) else [statements]
    for statement in statements:
        _add_batch_actions(statement)
    if any(_allows_partiql(statement) for statement in statements):
        document["Statement"] = [
            *statements,
            {"Effect": "Allow", "Action": list(ENGINE_PARTIQL), "Resource": "*"},
        ]


def _add_batch_actions(statement: Json) -> None:
    actions = statement.get("Action", [])
    named = [actions] if isinstance(actions, str) else list(actions)
    batched = [f"{action}Batch" for action in named if action in BATCHED]
    if batched:
        statement["Action"] = [*named, *batched]


def _allows_partiql(statement: Mapping[str, Any]) -> bool:
    actions = statement.get("Action", [])
    named = [actions] if isinstance(actions, str) else actions
    allowed = statement.get("Effect", "Allow") == "Allow"
    return allowed and any(str(action).startswith(PARTIQL) for action in named)


def _switch_off(logical_id: str, properties: Json, outputs: Json) -> StreamMapping:
    enabled = properties.get("Enabled", True) not in (False, "false")
    settings: Json = _externalize(properties, f"{OUTPUT_PREFIX}{logical_id}", outputs)
    properties["Enabled"] = False
    return StreamMapping(logical_id, {**settings, "Enabled": enabled})


def _externalize(value: Any, name: str, outputs: Json) -> Any:
    """Replace each intrinsic function by the name of an output that resolves it."""
    if _is_intrinsic(value):
        outputs[name] = {"Value": value}
        return f"output:{name}"
    if isinstance(value, dict):
        return {
            key: _externalize(member, f"{name}{_letters(key)}", outputs)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [
            _externalize(member, f"{name}{index}", outputs)
            for index, member in enumerate(value)
        ]
    return value


def _replace(value: Any, outputs: Mapping[str, str]) -> Any:
    if isinstance(value, str) and value.startswith("output:"):
        return outputs[value.removeprefix("output:")]
    if isinstance(value, dict):
        return {key: _replace(member, outputs) for key, member in value.items()}
    if isinstance(value, list):
        return [_replace(member, outputs) for member in value]
    return value


def _is_intrinsic(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    name = str(next(iter(value)))
    return name == "Ref" or name.startswith("Fn::")


def _repairs(resources: Mapping[str, Any], outputs: Json) -> Repairs:
    functions = dict(_of_type(resources, FUNCTION_TYPE))
    tables = dict(_of_type(resources, *TABLE_TYPES))
    dead_letter = {}
    for logical_id, resource in functions.items():
        target = resource["Properties"].get("DeadLetterConfig", {}).get("TargetArn")
        if target:
            name = f"{OUTPUT_PREFIX}{logical_id}DeadLetter"
            outputs[name] = {"Value": target}
            dead_letter[logical_id] = name
    return Repairs(
        ttl_attribute={
            logical_id: ttl["AttributeName"]
            for logical_id, resource in tables.items()
            if (ttl := resource["Properties"].get("TimeToLiveSpecification"))
            and ttl.get("Enabled")
        },
        recovery=tuple(
            logical_id
            for logical_id, resource in tables.items()
            if _has_recovery(resource["Properties"])
        ),
        concurrency={
            logical_id: int(resource["Properties"]["ReservedConcurrentExecutions"])
            for logical_id, resource in functions.items()
            if "ReservedConcurrentExecutions" in resource["Properties"]
        },
        dead_letter=dead_letter,
    )


def _has_recovery(properties: Mapping[str, Any]) -> bool:
    places: Sequence[Mapping[str, Any]] = [properties, *properties.get("Replicas", ())]
    return any(
        place.get("PointInTimeRecoverySpecification", {}).get(
            "PointInTimeRecoveryEnabled"
        )
        for place in places
    )


def _policy_documents(resources: Mapping[str, Any]) -> Iterator[Json]:
    for _, resource in _of_type(resources, *POLICY_TYPES):
        yield resource["Properties"]["PolicyDocument"]
    for _, resource in _of_type(resources, ROLE_TYPE):
        for inline in resource["Properties"].get("Policies", ()):
            yield inline["PolicyDocument"]


def _of_type(
    resources: Mapping[str, Any], *types: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical_id, resource in resources.items():
        if resource["Type"] in types:
            yield logical_id, {"Properties": {}, **resource}


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())
