"""Between values of Python and DynamoDB items, as the PynamoDB models describe them.

An item is a dict of wire name -> typed value, as the low-level client takes it. None
is left out, and what an item has beyond the model is ignored.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from pynamodb.models import Model

from hourbell.adapters.dynamodb import layout
from hourbell.domain.errors import InvalidInput, Unreadable

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Item: TypeAlias = dict[str, dict[str, Any]]
Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a model, as the codec uses it.

    Attributes:
        name: the name in Python.
        wire: the name in an item.
        type: DynamoDB's letter for the type of its value.
    """

    name: str
    wire: str
    type: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def typed(self, value: object) -> dict[str, Any]:
        """Return a value as the low-level client takes it: `{"S": "text"}`."""
        if value is None:
            return {"NULL": True}
        return {self.type: self.write(value)}


@cache
def fields_of(model: type[Model]) -> dict[str, Field]:
    """Return the fields of a model by their names in Python."""
    return {
        name: Field(
            name,
            attribute.attr_name,
            attribute.attr_type,
            attribute.serialize,
            attribute.deserialize,
        )
        for name, attribute in model.get_attributes().items()
    }


def encode(model: type[Model], values: Values) -> Item:
    """Write values under the wire names and types of a model, without the Nones."""
    fields = fields_of(model)
    item: Item = {}
    for name, value in values.items():
        if value is not None:
            field = fields[name]
            item[field.wire] = {field.type: field.write(value)}
    return item


def decode(model: type[Model], item: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values of the attributes that a model knows and the item has.

    Raises:
        Unreadable: the item's schema version is not one that this code reads.
    """
    values: dict[str, Any] = {}
    for field in fields_of(model).values():
        found = item.get(field.wire)
        if found is not None and field.type in found:
            values[field.name] = field.read(found[field.type])
    if values.get("schema") not in layout.READABLE:
        raise Unreadable(
            f"an item has schema {values.get('schema')!r}; "
            f"this code reads {sorted(layout.READABLE)}"
        )
    return values


def reads(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Have a function that reads an item say in one way that it cannot.

    Another release may have written what this one has no name for, and a hand may have
    taken away what it needs. Callers tell such an item from a store that fails by
    `Unreadable`, and go on with the others.

    Args:
        what: the item is, for the message.
    """

    def wrap(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def reading(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(*args, **kwargs)
            except (
                *(AttributeError, InvalidInput),
                *(KeyError, TypeError, ValueError),
            ) as error:
                raise Unreadable(f"not a readable {what}") from error

        return reading

    return wrap


def readable(
    what: str,
    read: Callable[[Mapping[str, Any]], T],
    items: Iterable[Mapping[str, Any]],
) -> Iterator[T]:
    """Read the items of a list; one that cannot be read must not hide the others.

    It is logged, with its content.

    Args:
        what: each of them is, for the log.
        read: reads one; raises `Unreadable` for what it cannot read.
        items: of the list.
    """
    for item in items:
        try:
            yield read(item)
        except Unreadable:
            log.exception("an unreadable %s", what, extra={"row": str(item)})
