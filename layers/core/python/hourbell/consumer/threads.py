"""Calls side by side: one that hangs must not cost the others their time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")


def side_by_side(
    act: Callable[[Part], None],
    parts: Sequence[Part],
    name: str,
    *,
    patience: float | None = None,
) -> None:
    """Do something to each part, and return when all is done.

    Args:
        act: called once with each part; without a patience, with the first one by the
            calling thread.
        parts: any number; each of the others costs a thread for as long as it takes.
        name: the threads'.
        patience: seconds after which it returns in any case. What takes longer goes on.

    Raises:
        BaseException: what ended one of the calls, the others being done all the same.
    """
    faults: list[BaseException] = []

    def attempt(part: Part) -> None:
        try:
            act(part)
        except BaseException as error:  # noqa: BLE001 - raised below
            faults.append(error)

    own = 1 if patience is None else 0
    end = None if patience is None else time.monotonic() + patience
    threads = [_started(attempt, part, name) for part in parts[own:]]
    for part in parts[:own]:
        attempt(part)
    for thread in threads:
        if thread is not None:
            thread.join(None if end is None else max(end - time.monotonic(), 0.0))
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
