"""What a machine may lack: skipped with a message, but where all of it is required."""

import os
from typing import NoReturn

import pytest

VARIABLE = "HOURBELL_REQUIRE_EXAMPLES"


def lacking(what: str) -> NoReturn:
    """Skip the test, or fail it where HOURBELL_REQUIRE_EXAMPLES=1 allows no skip."""
    message = f"{what} was not found on this machine."
    if os.environ.get(VARIABLE) == "1":
        pytest.fail(message)
    pytest.skip(message)
