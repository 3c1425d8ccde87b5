"""Transactions of conditional writes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item
from hourbell.adapters.dynamodb.expressions import conditional
from hourbell.adapters.dynamodb.layout import Keys
from hourbell.adapters.sdk_errors import (
    REFUSED_FOR_NOW,
    SDK_ERRORS,
    UNCLEAR,
    SdkError,
    code_of,
    is_transient,
    translated,
)
from hourbell.domain.errors import Permanent, Transient
from hourbell.usecases.ports import Write

_CANCELED: Final = "TransactionCanceledException"
_FAILED: Final = "ConditionalCheckFailed"
_NOT_AT_FAULT: Final = frozenset({"None", None})
_PASSING: Final = REFUSED_FOR_NOW | UNCLEAR | _NOT_AT_FAULT


@dataclass(frozen=True, slots=True)
class Put:
    """An item to be stored where its key is free."""

    table: str
    keys: Keys
    item: Item

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {
            "Put": {
                "TableName": self.table,
                "Item": self.item,
                "ConditionExpression": "attribute_not_exists(#partition)",
                "ExpressionAttributeNames": {"#partition": self.keys.partition},
            }
        }


@dataclass(frozen=True, slots=True)
class Update:
    """A change of an item for which a condition must hold."""

    table: str
    key: Item
    condition: Condition
    actions: Sequence[Action]

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {
            "Update": {
                "TableName": self.table,
                "Key": self.key,
                **conditional(self.condition, self.actions),
            }
        }


@dataclass(frozen=True, slots=True)
class Delete:
    """A removal of an item for which a condition must hold."""

    table: str
    key: Item
    condition: Condition

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {
            "Delete": {
                "TableName": self.table,
                "Key": self.key,
                **conditional(self.condition),
            }
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on an item that is not written."""

    table: str
    key: Item
    condition: Condition

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": self.key,
                **conditional(self.condition),
            }
        }


class Member(Protocol):
    """One write of a transaction."""

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        ...


def put_together(database: Database, puts: Sequence[Put]) -> Write:
    """Store all items, or none of them.

    Returns:
        APPLIED, or EXISTS when one of the keys is taken.

    Raises:
        Transient, Permanent: as `first_refused`.
    """
    refused = first_refused(database, puts)
    return Write.APPLIED if refused is None else Write.EXISTS


def write_together(database: Database, *members: Member) -> Write:
    """Do all the writes, or none of them.

    Returns:
        APPLIED, or LOST when one of the conditions did not hold.

    Raises:
        Transient, Permanent: as `first_refused`.
    """
    refused = first_refused(database, members)
    return Write.APPLIED if refused is None else Write.LOST


def first_refused(
    database: Database, members: Sequence[Member], backoff: Backoff | None = None
) -> int | None:
    """Do all the writes, or none of them, and tell whose condition did not hold.

    Every attempt carries one request token, so that a lost answer does not make the
    next attempt find its own writes.

    Args:
        database: tables and clients.
        members: the writes.
        backoff: between the attempts; the database's own when None.

    Returns:
        None when all is done; else the place of the first write whose condition did
        not hold. A write before it that could not be judged is tried again first.

    Raises:
        Transient: conflicts, throttling or failures outlasted the attempts.
        Permanent: the service refused for good.
    """
    requests = [member.as_request() for member in members]
    token = secrets.token_hex(16)
    last: Exception | None = None
    for _ in (backoff or database.backoff).rounds():
        try:
            database.client.transact_write_items(
                TransactItems=requests,  # type: ignore[arg-type]
                ClientRequestToken=token,
            )
        except SDK_ERRORS as error:
            refused = _refused(error)
            if refused is not None:
                return refused
            last = error
        else:
            return None
    raise Transient("a transaction was not done in time") from last


def _refused(error: SdkError) -> int | None:
    """Return the place of the first write that was refused; None to try again.

    Raises:
        Permanent: it failed for a reason that will not pass.
    """
    if not (isinstance(error, ClientError) and code_of(error) == _CANCELED):
        if not is_transient(error):
            raise translated(error) from error
        return None
    response: Any = error.response
    codes = [reason.get("Code") for reason in response["CancellationReasons"]]
    lasting = set(codes) - _PASSING - {_FAILED}
    if lasting:
        raise Permanent(f"a transaction was refused: {sorted(lasting)}") from error
    first = next((code for code in codes if code not in _NOT_AT_FAULT), None)
    return codes.index(_FAILED) if first == _FAILED else None
