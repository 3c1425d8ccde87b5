"""Tables, keys and item kinds as schemas/tables.json has them."""

import json
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any, Final

from hourbell.domain.instants import compact_instant
from hourbell.domain.occurrence import bucket_of

DOCUMENT: Final[dict[str, Any]] = json.loads(
    files("hourbell").joinpath("tables.json").read_text("utf-8")
)

SCHEMA: Final[int] = DOCUMENT["schema_version"]
"""The version that new items carry."""

READABLE: Final = frozenset({SCHEMA, SCHEMA - 1})
"""The versions that this code reads: old and new Lambdas run side by side."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of a table's key attributes."""

    partition: str
    sort: str

    @classmethod
    def of(cls, keyed: dict[str, Any]) -> "Keys":
        """Read the names from a table or an index of the document."""
        return cls(keyed["partition_key"]["name"], keyed["sort_key"]["name"])


SCHEDULES: Final = Keys.of(DOCUMENT["tables"]["schedules"])
TIMELINE: Final = Keys.of(DOCUMENT["tables"]["timeline"])
CONTROL: Final = Keys.of(DOCUMENT["tables"]["control"])
BY_TENANT: Final = Keys.of(DOCUMENT["tables"]["schedules"]["indexes"]["by_tenant"])
DEAD_SHARDS: Final[int] = DOCUMENT["tables"]["control"]["items"]["dead"]["shards"]
BY_TENANT_SHARDS: Final[int] = DOCUMENT["tables"]["schedules"]["indexes"]["by_tenant"][
    "shards"
]


@dataclass(frozen=True, slots=True)
class TableNames:
    """The physical names of the tables."""

    schedules: str
    timeline: str
    control: str

    @classmethod
    def with_prefix(cls, prefix: str) -> "TableNames":
        """Return `<prefix>-<logical name>` for each table."""
        return cls(f"{prefix}-schedules", f"{prefix}-timeline", f"{prefix}-control")


def version_sort(version: int) -> str:
    """Return the sort key of a version log entry; sorts as the number does."""
    return f"{VERSIONS}{version:010d}"


def run_sort(run: str) -> str:
    """Return the sort key of a manual run in its schedule's partition."""
    return f"P#r{run}"


def backfill_sort(scheduled_for: datetime) -> str:
    """Return the sort key of a backfilled time in its schedule's partition."""
    return f"P#b{compact_instant(scheduled_for)}"


def tenant_key(tenant_id: str) -> str:
    """Return the partition that a tenant and its handlers lie in."""
    return f"TENANT#{tenant_id}"


def handler_sort(name: str) -> str:
    """Return the sort key of a handler in its tenant's partition."""
    return f"{HANDLERS}{name}"


def principal_key(principal: str) -> str:
    """Return the partition of an IAM identity."""
    return f"PRINCIPAL#{principal}"


def principal_sort(principal: str) -> str:
    """Return the sort key of a principal in its tenant's partition."""
    return f"{PRINCIPALS}{principal}"


def name_key(tenant_id: str, name: str) -> str:
    """Return the partition of a schedule's name: one each, so that none is hot."""
    return f"NAME#{tenant_id}#{name}"


def slot_key(tenant_id: str, slot: int) -> str:
    """Return the partition of a sub-counter: one each, so that none is hot."""
    return f"COUNT#{tenant_id}#{slot}"


def group_key(group: int) -> str:
    """Return the partition of a shard group."""
    return f"GROUP#{group}"


def load_key(hour: datetime) -> str:
    """Return the partition of a UTC hour's loads: one each, so that none grows."""
    return f"LOAD#{hour:%Y%m%dT%H}Z"


def rate_key(name: str, minute: datetime) -> str:
    """Return the partition of a rate's minute: one each, so that none is hot."""
    return f"RATE#{name}#{bucket_of(minute)}"


def job_key(job_id: str) -> str:
    """Return the partition that a job, its items and its results lie in."""
    return f"JOB#{job_id}"


def job_items_sort(index: int) -> str:
    """Return the sort key of the items of a job from an index on."""
    return f"ITEMS#{index:010d}"


def job_results_sort(index: int) -> str:
    """Return the sort key of the results of a job from an index on."""
    return f"{JOB_RESULTS}{index:010d}"


def job_list_key(tenant_id: str) -> str:
    """Return the partition that a tenant's jobs are listed in."""
    return f"JOBS#{tenant_id}"


def parking_key(group: int) -> str:
    """Return the partition of a shard group's parked rows."""
    return f"PARKED#{group}"


def attempt_sort(occurrence: str, number: int | str = "") -> str:
    """Return the sort key of an attempt, or what those of an occurrence begin with."""
    return f"{occurrence}{ATTEMPTS}{number}"


def lane_key(schedule_id: str) -> str:
    """Return the partition of a schedule's lane."""
    return f"LANE#{schedule_id}"


def running_key(tenant_id: str) -> str:
    """Return the partition of the places in which a tenant's occurrences run."""
    return f"RUNNING#{tenant_id}"


def running_sort(number: int) -> str:
    """Return the sort key of such a place."""
    return f"{RUNNING}{number:04d}"


def dead_key(tenant_id: str, shard: int) -> str:
    """Return the partition of a list shard of a tenant's dead letters."""
    return f"DEAD#{tenant_id}#{shard:02d}"


DEFINITION_SORT: Final = "DEF"
VERSIONS: Final = "V#"
NAME_SORT: Final = "NAME"
TENANT_SORT: Final = "TENANT"
PRINCIPAL_SORT: Final = "PRINCIPAL"
PRINCIPALS: Final = "PRINCIPAL#"
HANDLERS: Final = "HANDLER#"
COUNT_SORT: Final = "COUNT#schedules"
TENANT_LIST: Final = "TENANTS"
LEASE_SORT: Final = "LEASE"
EPOCHS_KEY: Final = "SHARDS"
EPOCHS_SORT: Final = "EPOCHS"
LOAD_SORT: Final = "LOAD"
RATE_SORT: Final = "RATE"
ATTEMPTS: Final = "#A"
LANE_SORT: Final = "LANE"
RUNNING: Final = "SLOT#"
JOB_SORT: Final = "JOB"
JOB_RESULTS: Final = "RESULTS#"
REMINDERS: Final = "REMINDERS"
DISPATCH: Final = "dispatch"
"""The `kind` of a dispatch row; an occurrence has none."""
