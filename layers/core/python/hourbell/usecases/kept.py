"""What a change says of a field that it leaves alone."""

from enum import Enum


class Kept(Enum):
    """Says of a field that it stays as it is, where None is a value."""

    KEPT = "KEPT"
