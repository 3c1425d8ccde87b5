"""Items of the control table that hold the places of rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode, reads
from hourbell.adapters.dynamodb.models import RateItem
from hourbell.domain.rates import Rate

# After its minute nobody asks for places, but for what an outage left.
_KEPT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Minute:
    """The places of a rate that are taken in a minute.

    Attributes:
        taken: by the number of the slot within the minute.
        revision: grows with every change; 0 when there is no item yet.
    """

    taken: Mapping[int, int] = field(default_factory=dict)
    revision: int = 0


def rate_item_key(rate: Rate, minute: datetime) -> Item:
    """Return the key of a minute of a rate."""
    key = layout.rate_key(rate.name, minute)
    return encode(RateItem, {"control_key": key, "item": layout.RATE_SORT})


def taking(minute: datetime, taken: Mapping[int, int], revision: int) -> list[Action]:
    """Return what a change of a minute of a rate sets."""
    return [
        RateItem.schema.set(layout.SCHEMA),
        RateItem.taken.set(dict(taken)),
        RateItem.revision.set(revision),
        RateItem.expires_at.set(minute + _KEPT),
    ]


@reads("minute of a rate")
def decode_minute(item: Mapping[str, Any]) -> Minute:
    """Read a minute of a rate."""
    values = decode(RateItem, item)
    return Minute(values["taken"], values["revision"])


def unchanged(minute: Minute) -> Condition:
    """Return what holds while nobody else has changed a minute."""
    if minute.revision == 0:
        return RateItem.revision.does_not_exist()
    return RateItem.revision == minute.revision
