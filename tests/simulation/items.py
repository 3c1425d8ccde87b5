"""Items as the release before wrote them, and as this one reads them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    encode_dispatch,
    encode_occurrence,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    encode_schedule,
    encode_version,
)

from tests.simulation.rules import ceil_second

CLASS = "item of the release before"
# What a later release might add, and this one is to pass over.
STRANGE = {"of another release": {"S": "whatever"}}


class Items:
    """Takes what is stored through the codec, during a rolling deploy."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def row(self, row: Any) -> Any:
        return self._kept(row, encode_occurrence, decode_occurrence)

    def dispatch(self, row: Any) -> Any:
        return self._kept(row, encode_dispatch, decode_dispatch)

    def version(self, version: Any) -> Any:
        return self._kept(version, encode_version, decode_version)

    def schedule(self, schedule: Any) -> Any:
        return self._kept(schedule, encode_schedule, decode_schedule)

    def _kept(
        self, thing: Any, encode: Callable[..., Any], decode: Callable[..., Any]
    ) -> Any:
        """Return what is read of a thing that an instance of another release wrote."""
        if not self._world.strikes(CLASS):
            return thing
        item = encode(thing) | STRANGE
        item["schema"] = {"N": str(layout.SCHEMA - 1)}
        read = decode(item)
        expiry = getattr(thing, "expires_at", None)
        if expiry is not None:
            # DynamoDB's own expiry takes whole seconds.
            thing = replace(thing, expires_at=ceil_second(expiry))
        if read != thing:
            text = f"{thing} was read as {read}"
            log = self._world.log
            log.violate("an item reads as it was written", self._world.steps, text)
        return read
