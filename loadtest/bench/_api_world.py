"""What the bench of the API asks about: tenants, and what they have, made as needed.

Nothing is made before a measured route wants it, so that a run of a few routes is
short. None of it is safe to be made by two threads at once.
"""

import itertools
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote

from hourbell.adapters.clock import SystemClock
from hourbell.adapters.dynamodb import DynamoParking
from hourbell.adapters.dynamodb import connect as connect_database
from hourbell.adapters.dynamodb.layout import TableNames
from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.local.stack import StackInfo
from hourbell.local.state import Credentials
from hourbell.usecases.parked import parked_id

from loadtest.bench._client import Answer, SignedClient, checked, signer

SCHEDULES = "/v1/schedules"
HANDLERS = "/v1/handlers"
JOBS = "/v1/jobs"
OCCURRENCES = "/v1/occurrences"
LETTERS = "/v1/dead-letters"
TENANTS = "/v1/admin/tenants"
PARKED = "/v1/admin/parked"
TIMING = {"expression": "30 2 * * *", "zone": "America/New_York"}
# How many schedules the list has, which it answers on one page.
LISTED = 50
# How many there are of everything else that is listed.
FEW = 10
# Long enough that nothing runs out while the bench goes on.
LEASE_SECONDS = 3600
WAIT_SECONDS = 60.0


class World:
    """A stack with a tenant that writes, one that is read, and one that works."""

    def __init__(self, stack: StackInfo) -> None:
        """Remember the stack."""
        self.stack = stack
        self.platform = self._client(stack.platform_keys)
        self._numbers = itertools.count()

    def number(self) -> int:
        """Return a number that nothing else got."""
        return next(self._numbers)

    @cached_property
    def writer(self) -> SignedClient:
        """A tenant whose schedules come and go."""
        return self.tenant("bench-writer")

    @cached_property
    def reader(self) -> SignedClient:
        """A tenant of a few handlers that nothing else is asked of than reads."""
        client = self.tenant("bench-reader")
        for number in range(1, FEW):
            checked(client.send("POST", HANDLERS, {"name": f"handler-{number}"}))
        return client

    @cached_property
    def read_ids(self) -> list[str]:
        """The reader's schedules."""
        return [self.schedule(self.reader) for _ in range(LISTED)]

    @cached_property
    def done_job(self) -> str:
        """A job of the reader's with a result for each schedule, and others beside."""
        for schedule_id in self.read_ids[1:FEW]:
            self._done_batch([schedule_id])
        return self._done_batch(self.read_ids)

    @cached_property
    def done_replan(self) -> str:
        """Where the platform role finds a replan of the reader's schedules."""
        _ = self.read_ids
        place = f"{TENANTS}/bench-reader/replan"
        job_id = checked(self.platform.send("POST", place)).document["job_id"]
        self._wait_for_job(self.platform, f"{place}/{job_id}")
        return f"{place}/{job_id}"

    @cached_property
    def worker(self) -> SignedClient:
        """A tenant whose occurrences are claimed."""
        return self.tenant("bench-worker")

    @cached_property
    def tracked(self) -> str:
        """The schedule that the occurrences are of."""
        return self.schedule(self.worker, tracking="TRACKED")

    @cached_property
    def parked_rows(self) -> list[str]:
        """Rows that stay parked, by their ids."""
        return [self.parked(timedelta(days=1)) for _ in range(FEW)]

    def tenant(self, tenant_id: str) -> SignedClient:
        """Create a tenant with a handler; return who calls for it."""
        keys = self.stack.create_user(tenant_id)
        quotas = {"schedules": 10_000}
        body = {"tenant_id": tenant_id, "principals": [keys.arn], "quotas": quotas}
        checked(self.platform.send("POST", TENANTS, body))
        client = self._client(keys)
        checked(client.send("POST", HANDLERS, {"name": "send"}))
        return client

    def bare_tenant(self) -> str:
        """Create a tenant that has nothing; return its id."""
        tenant_id = f"bench-{self.number()}"
        checked(self.platform.send("POST", TENANTS, {"tenant_id": tenant_id}))
        return tenant_id

    def create(self, client: SignedClient, **fields: object) -> Answer:
        """Create a schedule of a name of its own."""
        name = f"bench-{self.number()}"
        body = {"name": name, "handler": "send"} | TIMING | fields
        return client.send("POST", SCHEDULES, body)

    def schedule(self, client: SignedClient, **fields: object) -> str:
        """Create a schedule; return its id."""
        return str(checked(self.create(client, **fields)).document["schedule_id"])

    def place(self) -> str:
        """Create a schedule of the writer's; return its path."""
        return f"{SCHEDULES}/{self.schedule(self.writer)}"

    def occurrence(self, schedule_id: str | None = None) -> str:
        """Run the tracked schedule, or another one; return the occurrence's id."""
        place = f"{SCHEDULES}/{schedule_id or self.tracked}/run"
        return str(checked(self.worker.send("POST", place)).document["occurrence_id"])

    def claim(self, occurrence_id: str) -> Answer:
        """Claim one occurrence, and get it."""
        item = {"occurrence_id": occurrence_id}
        body = {"worker": "bench", "lease_seconds": LEASE_SECONDS, "items": [item]}
        answer = checked(self.worker.send("POST", f"{OCCURRENCES}/claim", body))
        if answer.document["results"][0]["answer"] != "RUN":
            raise RuntimeError(f"not claimed: {answer.text[:300]}")
        return answer

    def claimed(self, schedule_id: str | None = None) -> dict[str, Any]:
        """Return what a worker names an occurrence by that it has claimed."""
        answer = self.claim(self.occurrence(schedule_id))
        result = answer.document["results"][0]
        return {name: result[name] for name in ("occurrence_id", "lease_token")}

    def report(self, verb: str, item: Mapping[str, Any]) -> Answer:
        """Say something of one occurrence as a worker, which is taken."""
        place = f"{OCCURRENCES}/{verb}"
        answer = checked(self.worker.send("POST", place, {"items": [item]}))
        if answer.document["results"][0]["status"] != 200:
            raise RuntimeError(f"{verb} was refused: {answer.text[:300]}")
        return answer

    def fail(self, item: Mapping[str, Any]) -> Answer:
        """Fail an attempt for good, so that its occurrence is dead."""
        return self.report("fail", {**item, "error": {"class": "PERMANENT"}})

    def dead(self, schedule_id: str | None = None) -> str:
        """Return the id of an occurrence that is dead."""
        item = self.claimed(schedule_id)
        self.fail(item)
        return str(item["occurrence_id"])

    def batch(self, client: SignedClient, schedule_ids: list[str]) -> Answer:
        """Start a job."""
        body = {"operation": "resume", "schedule_ids": schedule_ids}
        return client.send("POST", f"{SCHEDULES}/batch", body)

    def parked(self, pause: timedelta) -> str:
        """Park the key of a row that is not there; return its id.

        Args:
            pause: how long no pass tries it.
        """
        now = SystemClock().now()
        schedule_id = f"sch{self.number():026d}"
        key = RowKey("20260309T1210Z", 0, f"20260309T121000Z#{schedule_id}#v1")
        row = ParkedRow(0, key, ParkReason.HELD, now, now + pause)
        self._parking.park(row)
        return parked_id(row)

    @cached_property
    def _parking(self) -> DynamoParking:
        session = self.stack.admin_session()
        tables = TableNames(**self.stack.tables)
        endpoint = self.stack.endpoint_url
        return DynamoParking(
            connect_database(tables, session=session, endpoint_url=endpoint)
        )

    def _done_batch(self, schedule_ids: list[str]) -> str:
        answer = checked(self.batch(self.reader, schedule_ids))
        job_id = str(answer.document["job_id"])
        self._wait_for_job(self.reader, f"{JOBS}/{job_id}")
        return job_id

    def _wait_for_job(self, client: SignedClient, place: str) -> None:
        def is_done() -> bool:
            job = checked(client.send("GET", place)).document
            return bool(job["state"] == "SUCCEEDED")

        self.stack.wait_for(is_done, WAIT_SECONDS, f"the job {place}")

    def _client(self, keys: Credentials) -> SignedClient:
        signs = signer(keys.access_key_id, keys.secret_access_key, self.stack.region)
        return SignedClient(self.stack.api_url, signs)


def principal_place(tenant_id: str, name: str) -> str:
    """Return the path of a tenant's principal."""
    arn = quote(f"arn:aws:iam::000000000000:user/{name}", safe="")
    return f"{TENANTS}/{tenant_id}/principals/{arn}"
