"""Ids from a seed."""

import random

from hourbell.domain.definition import schedule_id_from


class SeededIds:
    """The `Ids` port: the same seed gives the same ids."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def schedule_id(self) -> str:
        """Return the next schedule id."""
        return schedule_id_from(self._random.randbytes(16))

    def token(self) -> str:
        """Return the next 32 hexadecimal characters."""
        return self._random.randbytes(16).hex()
