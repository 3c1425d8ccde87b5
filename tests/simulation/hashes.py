"""The same order of sets in each process, without which no seed can be replayed."""

import os
import sys
from typing import Final

VARIABLE: Final = "PYTHONHASHSEED"
ALIKE: Final = "0"


def hash_alike() -> None:
    """Begin anew with texts hashed as in any other process, unless they are.

    In what order the product goes through a set of keys depends on it, and with that
    which of them a fault strikes.
    """
    if os.environ.get(VARIABLE) != ALIKE:
        os.environ[VARIABLE] = ALIKE
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this very program
