"""Lists of which one item cannot be read, on DynamoDB: the others are all there."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.control_items import (
    encode_handler,
    encode_listed,
    encode_tenant,
)
from hourbell.adapters.dynamodb.job_items import (
    encode_job,
    encode_listed_job,
    encode_results,
    job_item_key,
)
from hourbell.adapters.dynamodb.layout import SCHEMA
from hourbell.adapters.dynamodb.work_items import (
    lane_item_key,
    running_item_key,
)
from hourbell.domain.definition import Handler, Tenant, Tier
from hourbell.domain.errors import Unreadable
from hourbell.domain.job import (
    Creator,
    Job,
    Operation,
    Outcome,
    Progress,
    Result,
    derived_job_id,
)
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.handlers import list_handlers
from hourbell.usecases.jobs import job_results, list_jobs
from hourbell.usecases.tenants import Registrar, list_tenants
from hourbell.usecases.work_ports import Deed

from tests.conformance import samples
from tests.conformance.samples import NOW
from tests.conformance.worlds import dynamo_world

T = TypeVar("T")
NEWER = {"schema": {"N": str(SCHEMA + 8)}}
COUNT = 5
LIMITS = (1, 2, COUNT)
# Which of the list, in order.
LOST = [{0, COUNT - 1}, {1, 2, 3}, set(range(COUNT))]


def put(database: Database, item: dict[str, Any]) -> None:
    database.client.put_item(TableName=database.tables.control, Item=item)


PageOf = Callable[[str | None, int], tuple[Sequence[T], str | None]]


def walked(page_of: PageOf[T], limit: int) -> list[T]:
    """Follow a listing page by page to its end."""
    page, after = page_of(None, limit)
    found = list(page)
    while after is not None:
        page, after = page_of(after, limit)
        assert page, "a cursor leads to something"
        found += page
    return found


@pytest.mark.parametrize("lost", LOST)
def test_a_damaged_tenant_hides_no_other(
    moto_database: Database, lost: set[int]
) -> None:
    directory = dynamo_world(moto_database).directory
    made = [Tenant(f"tenant-{number}", Tier.BASIC) for number in range(COUNT)]
    for number, tenant in enumerate(made):
        directory.register_tenant(tenant, [])
        if number in lost:
            put(moto_database, encode_tenant(tenant) | {"tier": {"S": "GOLD"}})

    def page_of(after: str | None, limit: int) -> tuple[Sequence[Tenant], str | None]:
        page = list_tenants(Registrar(directory), after=after, limit=limit)
        return page.tenants, page.after

    good = [tenant for number, tenant in enumerate(made) if number not in lost]
    for limit in LIMITS:
        assert walked(page_of, limit) == good


def test_a_damaged_place_in_the_list_of_tenants_hides_no_other(
    moto_database: Database,
) -> None:
    directory = dynamo_world(moto_database).directory
    made = [Tenant(f"tenant-{number}", Tier.BASIC) for number in range(3)]
    for tenant in made:
        directory.register_tenant(tenant, [])
    put(moto_database, encode_listed("tenant-1") | NEWER)
    assert directory.list_tenants(after=None, limit=9) == (made[0], made[2])
    assert directory.find_tenant("tenant-1") == made[1]


@pytest.mark.parametrize("lost", LOST)
def test_a_damaged_handler_hides_no_other(
    moto_database: Database, lost: set[int]
) -> None:
    directory = dynamo_world(moto_database).directory
    acme = Tenant("acme", Tier.BASIC)
    directory.register_tenant(acme, ["1:user/ann"])
    made = [Handler("acme", f"ring-{number}") for number in range(COUNT)]
    for number, handler in enumerate(made):
        directory.register_handler(handler)
        if number in lost:
            put(moto_database, encode_handler(handler) | NEWER)

    def page_of(after: str | None, limit: int) -> tuple[Sequence[Handler], str | None]:
        page = list_handlers(directory, acme, after=after, limit=limit)
        return page.handlers, page.after

    good = [handler for number, handler in enumerate(made) if number not in lost]
    for limit in LIMITS:
        assert walked(page_of, limit) == good
    for number in lost:
        with pytest.raises(Unreadable):
            directory.handler("acme", f"ring-{number}")


def jobs_of(count: int) -> list[Job]:
    """Return jobs of one tenant, the newest first."""
    return [
        Job(
            job_id=derived_job_id("samples", str(number)),
            tenant_id="acme",
            operation=Operation.PAUSE,
            dry_run=False,
            creator=Creator("1:user/ann", "arn:aws:iam::1:user/ann", "api 192.0.2.1"),
            body_hash="hash",
            created_at=NOW - timedelta(minutes=number),
            updated_at=NOW,
            expires_at=NOW.replace(microsecond=0) + timedelta(days=15),
            progress=Progress(0),
        )
        for number in range(count)
    ]


def damage(database: Database, job: Job) -> None:
    put(database, encode_job(job) | {"operation": {"S": "ANNEAL"}})


def expire(database: Database, job: Job) -> None:
    """Delete a job whose place in the list expires a moment later."""
    table = database.tables.control
    database.client.delete_item(TableName=table, Key=job_item_key(job.job_id))


def misplace(database: Database, job: Job) -> None:
    item = encode_listed_job(job)
    del item["job_id"]
    put(database, item)


@pytest.mark.parametrize("lose", [damage, expire, misplace])
@pytest.mark.parametrize("lost", LOST)
def test_a_job_that_is_damaged_or_gone_hides_no_other(
    moto_database: Database,
    lose: Callable[[Database, Job], None],
    lost: set[int],
) -> None:
    jobs = dynamo_world(moto_database).jobs
    made = jobs_of(COUNT)
    for number, job in enumerate(made):
        jobs.create(job, ())
        if number in lost:
            lose(moto_database, job)

    def page_of(after: str | None, limit: int) -> tuple[Sequence[Job], str | None]:
        page = list_jobs(jobs, "acme", after=after, limit=limit)
        return page.jobs, page.after

    good = [job for number, job in enumerate(made) if number not in lost]
    for limit in LIMITS:
        assert walked(page_of, limit) == good


PARTS = 15
"""More than one Query reads."""


@pytest.mark.parametrize(
    "lost", [{0}, {3, 4}, {PARTS - 1}, set(range(2, 14)), set(range(PARTS))]
)
@pytest.mark.parametrize("whole", [True, False])
def test_damaged_results_of_a_job_hide_no_others(
    moto_database: Database, lost: set[int], *, whole: bool
) -> None:
    jobs = dynamo_world(moto_database).jobs
    (job,) = jobs_of(1)
    jobs.create(job, ())
    told = [
        Result(number, Outcome.CHANGED, samples.schedule_id(number), f"bell-{number}")
        for number in range(2 * PARTS)
    ]
    good = []
    for number in range(PARTS):
        part = told[2 * number : 2 * number + 2]
        item = encode_results(job, part)
        if number not in lost:
            good += part
        elif whole:
            item |= NEWER
        else:
            good.append(part[1])
            first, second = json.loads(item["results"]["S"])
            first["outcome"] = "ANNEALED"
            item["results"]["S"] = json.dumps([first, second])
        put(moto_database, item)

    def page_of(after: str | None, limit: int) -> tuple[Sequence[Result], str | None]:
        page = job_results(
            jobs, "acme", job.job_id, outcome=None, after=after, limit=limit
        )
        return page.results, page.after

    for limit in (1, 7, 100):
        found, after = page_of(None, limit)
        pages = list(found)
        while after is not None:
            found, after = page_of(after, limit)
            pages += found
        assert pages == good


def test_a_damaged_lane_is_told_from_a_store_that_refuses(
    moto_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = dynamo_world(moto_database).ledger
    schedule_id = samples.schedule_id("one")
    ledger.do(Deed((), lane=OverlapLane(schedule_id, "x", None, 1)))
    assert ledger.lane(schedule_id).holder == "x"
    put(moto_database, lane_item_key(schedule_id) | NEWER)
    with pytest.raises(Unreadable):
        ledger.lane(schedule_id)
    assert "an unreadable lane" in caplog.messages


def test_a_damaged_slot_is_taken_and_hides_no_other(moto_database: Database) -> None:
    ledger = dynamo_world(moto_database).ledger
    slots = [Slot("acme", number, f"holder-{number}") for number in range(3)]
    for slot in slots:
        ledger.do(Deed((), takes=slot))
    put(moto_database, running_item_key("acme", 1) | NEWER)
    found = ledger.slots("acme")
    assert found == {0: slots[0], 1: Slot("acme", 1, ""), 2: slots[2]}
