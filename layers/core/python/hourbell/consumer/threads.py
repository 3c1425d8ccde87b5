"""Calls side by side: one that hangs must not cost the others their time."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")


def side_by_side(act: Callable[[Part], None], parts: Sequence[Part], name: str) -> None:
    """Do something to each part, and return when all is done.

    Args:
        act: called once with each part; with the first one by the calling thread.
        parts: any number; each but the first costs a thread for as long as it takes.
        name: the threads'.

    Raises:
        BaseException: what ended one of the calls, the others being done all the same.
    """
    faults: list[BaseException] = []

    def attempt(part: Part) -> None:
        try:
            act(part)
        except BaseException as error:  # noqa: BLE001 - raised below
            faults.append(error)

    threads = [_started(attempt, part, name) for part in parts[1:]]
    for part in parts[:1]:
        attempt(part)
    for thread in threads:
        if thread is not None:
            thread.join()
    if faults:
        raise faults[0]


def _started(
    act: Callable[[Part], None], part: Part, name: str
) -> threading.Thread | None:
    """Do something in a thread; at once, if there is none to be had."""
    thread = threading.Thread(target=act, args=(part,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        act(part)
        return None
    return thread
