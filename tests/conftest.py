"""Settings that every suite shares: hypothesis's profiles, and no real AWS account."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# No example has a time limit: two cores are shared, and a slow moment is no failure.
settings.register_profile("default", deadline=None, print_blob=True)
# The gate judges the same examples each time; new ones are found while developing.
settings.register_profile(
    "gate", settings.get_profile("default"), derandomize=True, max_examples=200
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    max_examples=5_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# For the tests and what they start. A client that a test forgot to point at an emulator
# must not find the account that the developer is signed in to.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    # JSII's banners about releases of Node.js; the first wants the releases by name.
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,19,20,21,22,23,24",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    # Importing a handler must not need the Lambda runtime.
    "POWERTOOLS_METRICS_NAMESPACE": "Hourbell",
    "POWERTOOLS_SERVICE_NAME": "hourbell-tests",
}


# At import: the conftests of folders are loaded next, and may import what reads it.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ.update(ENVIRONMENT)


# Each folder's tests share something slow to make; they stay in one process. By path
# and not by pytest-xdist's `xdist_group`, which pytest 9.2 ignores without a word.
TOGETHER = ("tests/e2e/", "tests/infrastructure/")
# Their coverage is not taken: it more than doubles their time, and what they reach, by
# going through the same at each of its steps, tests of single cases reach as well.
UNCOVERED = re.compile(
    r"tests/(conformance|e2e|infrastructure|properties|simulation)/"
    r"|(_interleaved|_crashes|_fuzz)\.py"
)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Give tests out one by one, and those of some folders all at once."""

    def _split_scope(self, nodeid: str) -> str:
        return next((name for name in TOGETHER if nodeid.startswith(name)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    """Choose who runs which test when there are several processes."""
    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/e2e as such, and what no coverage is taken of."""
    folder = Path(__file__).parent / "e2e"
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.e2e)
        if UNCOVERED.search(item.nodeid):
            item.add_marker(pytest.mark.no_cover)
