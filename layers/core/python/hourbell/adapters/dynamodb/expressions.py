"""Conditions and updates of PynamoDB models as arguments of the low-level client."""

from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action, Update
from pynamodb.models import Model

from hourbell.adapters.sdk_errors import code_of

_CONDITION_FAILED = "ConditionalCheckFailedException"


def conditional(condition: Condition, updates: Sequence[Action] = ()) -> dict[str, Any]:
    """Return the expressions of a conditional write.

    Args:
        condition: must hold, or the write fails with ConditionalCheckFailedException.
        updates: what an update sets, adds or removes; none for a put.
    """
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    arguments: dict[str, Any] = {
        "ConditionExpression": condition.serialize(names, values)
    }
    if updates:
        arguments["UpdateExpression"] = Update(*updates).serialize(names, values)
    arguments["ExpressionAttributeNames"] = {
        placeholder: name for name, placeholder in names.items()
    }
    if values:
        arguments["ExpressionAttributeValues"] = values
    return arguments


def unconditional(updates: Sequence[Action]) -> dict[str, Any]:
    """Return the expressions of an update without a condition."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    return {
        "UpdateExpression": Update(*updates).serialize(names, values),
        "ExpressionAttributeNames": {
            placeholder: name for name, placeholder in names.items()
        },
        "ExpressionAttributeValues": values,
    }


def assignments(model: type[Model], values: Mapping[str, Any]) -> list[Action]:
    """Return the actions that set each value, and remove where the value is None."""
    attributes = model.get_attributes()
    return [
        attributes[name].remove() if value is None else attributes[name].set(value)
        for name, value in values.items()
    ]


def unless_refused(call: Any, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return a conditional write's answer, or None when its condition failed."""
    try:
        return call(**arguments)
    except ClientError as error:
        if code_of(error) == _CONDITION_FAILED:
            return None
        raise
