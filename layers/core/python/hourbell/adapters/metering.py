"""Counting of calls and of consumed capacity."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.model import OperationModel

_READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


class _Hooked(Protocol):
    """What a meter needs of a client: its events."""

    @property
    def meta(self) -> Any:  # noqa: ANN401 - botocore's own, untyped
        """The client's metadata."""
        ...


def _floats() -> defaultdict[tuple[str, str], float]:
    return defaultdict(float)


@dataclass(slots=True)
class CapacityMeter:
    """Sums what the calls of its clients consume.

    Clients of DynamoDB are made to ask for ReturnConsumedCapacity=TOTAL; those of
    other services are only counted. Not thread-safe.

    Attributes:
        calls: API calls by (service, operation), retries of the SDK not counted.
        write_units: by (table, operation), with the indexes' share.
        read_units: by (table, operation).
    """

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    write_units: dict[tuple[str, str], float] = field(default_factory=_floats)
    read_units: dict[tuple[str, str], float] = field(default_factory=_floats)

    def attach(self, client: _Hooked) -> None:
        """Start to count a client's calls."""
        events = client.meta.events
        events.register("provide-client-params.dynamodb", self._ask)
        events.register("after-call", self._record)

    def detach(self, client: _Hooked) -> None:
        """Stop counting a client's calls."""
        events = client.meta.events
        events.unregister("provide-client-params.dynamodb", self._ask)
        events.unregister("after-call", self._record)

    def reset(self) -> None:
        """Forget everything so far."""
        self.calls.clear()
        self.write_units.clear()
        self.read_units.clear()

    @property
    def total_write_units(self) -> float:
        """Write units of all tables and operations."""
        return sum(self.write_units.values())

    @property
    def total_read_units(self) -> float:
        """Read units of all tables and operations."""
        return sum(self.read_units.values())

    def _ask(
        self, params: dict[str, Any], model: OperationModel, **_: object
    ) -> dict[str, Any] | None:
        shape = model.input_shape
        if shape is None or "ReturnConsumedCapacity" not in shape.members:
            return None
        return {**params, "ReturnConsumedCapacity": "TOTAL"}

    def _record(
        self, model: OperationModel, parsed: Mapping[str, Any], **_: object
    ) -> None:
        service = model.service_model.service_name
        self.calls[service, model.name] += 1
        consumed = parsed.get("ConsumedCapacity", [])
        units = self.read_units if model.name in _READS else self.write_units
        for each in [consumed] if isinstance(consumed, Mapping) else consumed:
            units[each["TableName"], model.name] += each["CapacityUnits"]
