"""Transactions of conditional puts."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item
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
_NOT_AT_FAULT: Final = frozenset({"None", None})


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


def put_together(database: Database, puts: Sequence[Put]) -> Write:
    """Store all items, or none of them.

    Every attempt carries one request token, so that a lost answer does not make the
    next attempt find its own items.

    Returns:
        APPLIED, or EXISTS when one of the keys is taken.

    Raises:
        Transient: conflicts, throttling or failures outlasted the attempts.
        Permanent: the service refused for good.
    """
    members = [put.as_request() for put in puts]
    token = secrets.token_hex(16)
    last: Exception | None = None
    for _ in database.backoff.rounds():
        try:
            database.client.transact_write_items(
                TransactItems=members,  # type: ignore[arg-type]
                ClientRequestToken=token,
            )
        except SDK_ERRORS as error:
            if _is_taken(error):
                return Write.EXISTS
            last = error
        else:
            return Write.APPLIED
    raise Transient("a transaction was not done in time") from last


def _is_taken(error: SdkError) -> bool:
    """Whether a transaction failed because a key is taken; if not, it may pass later.

    Raises:
        Permanent: it failed for a reason that will not pass.
    """
    if isinstance(error, ClientError) and code_of(error) == _CANCELED:
        response: Any = error.response
        codes = {reason.get("Code") for reason in response["CancellationReasons"]}
        if "ConditionalCheckFailed" in codes:
            return True
        lasting = codes - REFUSED_FOR_NOW - UNCLEAR - _NOT_AT_FAULT
        if lasting:
            raise Permanent(f"a transaction was refused: {sorted(lasting)}") from error
    elif not is_transient(error):
        raise translated(error) from error
    return False
