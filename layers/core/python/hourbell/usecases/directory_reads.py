"""Reading tenants and handlers so that one that cannot be read hides no other."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from hourbell.domain.definition import Handler, Tenant
from hourbell.domain.errors import Permanent
from hourbell.usecases.ports import Directory

K = TypeVar("K")
V = TypeVar("V")


def read_tenants(
    directory: Directory, tenant_ids: Iterable[str]
) -> tuple[dict[str, Tenant], frozenset[str]]:
    """Return the tenants that exist, and the ids of those that cannot be read.

    May be up to 30 s old.

    Raises:
        Transient: the store did not answer.
    """
    return _read(directory.tenants, tenant_ids)


def read_handlers(
    directory: Directory, refs: Iterable[tuple[str, str]]
) -> tuple[dict[tuple[str, str], Handler], frozenset[tuple[str, str]]]:
    """Return the handlers that exist, and the refs of those that cannot be read.

    May be up to 30 s old.

    Raises:
        Transient: the store did not answer.
    """
    return _read(directory.named_handlers, refs)


def _read(
    read: Callable[[Iterable[K]], Mapping[K, V]], keys: Iterable[K]
) -> tuple[dict[K, V], frozenset[K]]:
    """Read all at once; only when that is refused for good, one by one."""
    wanted = list(dict.fromkeys(keys))
    try:
        return dict(read(wanted)), frozenset()
    except Permanent:
        return _one_by_one(read, wanted)


def _one_by_one(
    read: Callable[[Iterable[K]], Mapping[K, V]], keys: Iterable[K]
) -> tuple[dict[K, V], frozenset[K]]:
    found: dict[K, V] = {}
    faulty: set[K] = set()
    for key in keys:
        try:
            found |= read([key])
        except Permanent:
            faulty.add(key)
    return found, frozenset(faulty)
