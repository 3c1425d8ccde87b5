"""Packing messages into batches that a queue accepts."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

MAX_ENTRIES = 10
MAX_BYTES = 1024 * 1024


def encoded_size(text: str) -> int:
    """Return how many bytes a text takes on the wire, UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def pack(
    things: Iterable[T],
    size: Callable[[T], int],
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Iterator[list[T]]:
    """Yield batches of things in order, within both limits.

    A thing larger than `max_bytes` gets a batch of its own, so that its refusal
    hits nothing else.
    """
    batch: list[T] = []
    used = 0
    for thing in things:
        grown = size(thing)
        if batch and (len(batch) == max_entries or used + grown > max_bytes):
            yield batch
            batch, used = [], 0
        batch.append(thing)
        used += grown
    if batch:
        yield batch
