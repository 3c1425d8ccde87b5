"""Synthesized stacks as the tests read them: references resolved, JSON elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

STACKS = (
    "HourbellData",
    "HourbellQueues",
    "HourbellScheduling",
    "HourbellApi",
    "HourbellObservability",
)


@dataclass(frozen=True)
class Resource:
    """A resource; its references to others are replaced by `<logical id>.<what>`."""

    stack: str
    logical_id: str
    type: str
    properties: dict[str, Any]
    raw: dict[str, Any]


class Assembly:
    """What one synthesis wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.templates: dict[str, Any] = {
            stack: orjson.loads((folder / f"{stack}.template.json").read_bytes())
            for stack in STACKS
            if (folder / f"{stack}.template.json").exists()
        }
        self._resources = [
            Resource(
                stack,
                logical_id,
                raw["Type"],
                self.resolve(stack, raw.get("Properties", {})),
                raw,
            )
            for stack, template in self.templates.items()
            for logical_id, raw in template["Resources"].items()
        ]

    def of_type(self, kind: str) -> list[Resource]:
        return [each for each in self._resources if each.type == kind]

    def one(self, kind: str, **properties: object) -> Resource:
        """Return the only resource of this type with these properties."""
        found = [
            each
            for each in self.of_type(kind)
            if properties.items() <= each.properties.items()
        ]
        assert len(found) == 1, f"{len(found)} of {kind} with {properties}"
        return found[0]

    def all(self) -> list[Resource]:
        return list(self._resources)

    def function(self, name: str) -> Resource:
        return self.one("AWS::Lambda::Function", FunctionName=f"hourbell-{name}")

    def functions(self) -> dict[str, Resource]:
        return {
            each.properties["FunctionName"].removeprefix("hourbell-"): each
            for each in self.of_type("AWS::Lambda::Function")
        }

    def queue(self, name: str) -> Resource:
        return self.one("AWS::SQS::Queue", QueueName=f"hourbell-{name}")

    def statements(self, name: str) -> list[dict[str, Any]]:
        """Return the statements of a function's role, with lists made of scalars."""
        role = self.function(name).properties["Role"].removesuffix(".Arn")
        return [
            statement
            for policy in self.of_type("AWS::IAM::Policy")
            if policy.properties["Roles"] == [f"{role}.Ref"]
            for statement in statements_of(policy)
        ]

    def resolve(self, stack: str, value: Any) -> Any:
        """Replace references by text, everywhere below a value."""
        if not isinstance(value, dict):
            many = isinstance(value, list)
            return [self.resolve(stack, each) for each in value] if many else value
        match value:
            case {"Ref": name}:
                return f"{name}.Ref"
            case {"Fn::GetAtt": parts}:
                return ".".join(parts)
            case {"Fn::Join": [separator, parts]}:
                return separator.join(self.resolve(stack, parts))
            case {"Fn::GetStackOutput": {"StackName": other, "OutputName": name}}:
                output = self.templates[other]["Outputs"][name]["Value"]
                return self.resolve(other, output)
        return {name: self.resolve(stack, each) for name, each in value.items()}


def statements_of(policy: Resource) -> Iterator[dict[str, Any]]:
    """Yield a policy's statements, with `Action` and `Resource` as lists."""
    for statement in policy.properties["PolicyDocument"]["Statement"]:
        yield {
            **statement,
            "Action": _listed(statement["Action"]),
            "Resource": _listed(statement.get("Resource", [])),
        }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
