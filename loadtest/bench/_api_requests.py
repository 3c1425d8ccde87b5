"""Requests without an end, of each route that the bench of the API measures.

What one of them needs for itself, such as a schedule to cancel, is made when the
request is asked for, so that it is not within its time.
"""

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from hourbell.adapters.clock import SystemClock

from loadtest.bench._api_world import (
    FEW,
    HANDLERS,
    JOBS,
    LETTERS,
    OCCURRENCES,
    PARKED,
    SCHEDULES,
    TENANTS,
    TIMING,
    World,
    principal_place,
)
from loadtest.bench._client import Answer, SignedClient, checked

Send = Callable[[], Answer]
Requests = Iterator[Send]

# So many that a job is still at work when the next request comes.
LONG_JOB = 1_000
UNKNOWN = [f"sch{number:026d}" for number in range(LONG_JOB)]


def again(
    client: SignedClient, method: str, path: str, body: object = None
) -> Requests:
    """Return the same request again and again."""
    return itertools.repeat(lambda: client.send(method, path, body))


def get(path: str) -> Callable[[World], Requests]:
    """Return what reads for the reader."""
    return lambda world: again(world.reader, "GET", path)


def get_schedule(more: str = "") -> Callable[[World], Requests]:
    """Return what reads one of the reader's schedules."""
    return lambda world: again(
        world.reader, "GET", f"{SCHEDULES}/{world.read_ids[-1]}{more}"
    )


def get_job(more: str = "") -> Callable[[World], Requests]:
    """Return what reads a job that is done."""
    return lambda world: again(world.reader, "GET", f"{JOBS}/{world.done_job}{more}")


def ask_platform(path: str) -> Callable[[World], Requests]:
    """Return what reads for the platform role."""
    return lambda world: again(world.platform, "GET", path)


def list_schedules(world: World) -> Requests:
    """List on one page."""
    _ = world.read_ids
    return again(world.reader, "GET", SCHEDULES)


def list_jobs(world: World) -> Requests:
    """List on one page."""
    _ = world.done_job
    return again(world.reader, "GET", JOBS)


def preview(world: World) -> Requests:
    """Ask for ten times."""
    return again(world.reader, "POST", f"{SCHEDULES}/preview", TIMING)


def create(world: World) -> Requests:
    """Create schedules."""
    client = world.writer
    return itertools.repeat(lambda: world.create(client))


def dry_run(world: World) -> Requests:
    """Create nothing."""
    body = {"name": "bench-dry", "handler": "send"} | TIMING
    return again(world.reader, "POST", f"{SCHEDULES}?dry_run=true", body)


def batch(world: World) -> Requests:
    """Start jobs of one schedule each, which are worked off beside."""
    ids = [world.schedule(world.writer)]
    return itertools.repeat(lambda: world.batch(world.writer, ids))


def put(world: World) -> Requests:
    """Give a schedule another payload each time."""
    place = f"{SCHEDULES}/by-name/bench-put-{world.number()}"
    body = {"handler": "send"} | TIMING
    checked(world.writer.send("PUT", place, body))
    return itertools.repeat(
        lambda: world.writer.send("PUT", place, body | {"payload": world.number()})
    )


def delete(world: World) -> Requests:
    """Cancel a schedule each."""
    while True:
        place = world.place()
        yield partial(world.writer.send, "DELETE", place)


def patch(world: World) -> Requests:
    """Make a version each time, of a schedule of its own."""
    place = world.place()
    for revision in itertools.count(1):
        tag = {"If-Match": f'"{revision}"'}
        body = {"payload": revision}
        yield partial(world.writer.send, "PATCH", place, body, tag)


def pause(world: World) -> Requests:
    """Pause a schedule of its own, which is resumed between."""
    place = world.place()
    while True:
        yield partial(world.writer.send, "POST", f"{place}/pause")
        checked(world.writer.send("POST", f"{place}/resume"))


def resume(world: World) -> Requests:
    """Resume a schedule of its own, which is paused between."""
    place = world.place()
    while True:
        checked(world.writer.send("POST", f"{place}/pause"))
        yield partial(world.writer.send, "POST", f"{place}/resume")


def run(world: World) -> Requests:
    """Run a schedule, each time as an occurrence of its own."""
    return again(world.writer, "POST", f"{world.place()}/run")


def backfill(world: World) -> Requests:
    """Create the three occurrences of three days, of another schedule each time."""
    begin = SystemClock().now() - timedelta(days=3)
    body = {"from": f"{begin:%Y-%m-%dT%H:%M:%SZ}"}
    while True:
        place = f"{world.place()}/backfill"
        yield partial(world.writer.send, "POST", place, body)


def register_handler(world: World) -> Requests:
    """Register handlers."""
    client = world.writer
    return itertools.repeat(
        lambda: client.send("POST", HANDLERS, {"name": f"new-{world.number()}"})
    )


def retire_handler(world: World) -> Requests:
    """Retire a handler each."""
    while True:
        name = f"old-{world.number()}"
        checked(world.writer.send("POST", HANDLERS, {"name": name}))
        yield partial(world.writer.send, "DELETE", f"{HANDLERS}/{name}")


def change_handler(world: World) -> Requests:
    """Describe a handler of its own anew."""
    name = f"changed-{world.number()}"
    checked(world.writer.send("POST", HANDLERS, {"name": name}))
    place = f"{HANDLERS}/{name}"
    for revision in itertools.count(1):
        tag = {"If-Match": f'"{revision}"'}
        body = {"description": f"{revision}"}
        yield partial(world.writer.send, "PATCH", place, body, tag)


def cancel_job(world: World) -> Requests:
    """Cancel a job each that has just begun."""
    while True:
        place = _long_job(world)
        yield partial(world.writer.send, "POST", f"{place}/cancel")


def resume_job(world: World) -> Requests:
    """Resume a job each that has just been canceled, and cancel it again."""
    while True:
        place = _long_job(world)
        checked(world.writer.send("POST", f"{place}/cancel"))
        yield partial(world.writer.send, "POST", f"{place}/resume")
        # Else it would go on beside what is measured next; it may have ended.
        world.writer.send("POST", f"{place}/cancel")


def _long_job(world: World) -> str:
    answer = checked(world.batch(world.writer, UNKNOWN))
    return f"{JOBS}/{answer.document['job_id']}"


def claim(world: World) -> Requests:
    """Claim one occurrence each."""
    while True:
        occurrence_id = world.occurrence()
        yield partial(world.claim, occurrence_id)


def heartbeat(world: World) -> Requests:
    """Extend the lease of one occurrence."""
    item = world.claimed()
    return itertools.repeat(lambda: world.report("heartbeat", item))


def complete(world: World) -> Requests:
    """Complete one occurrence each."""
    while True:
        item = world.claimed()
        yield partial(world.report, "complete", item)


def fail(world: World) -> Requests:
    """Fail one occurrence each for good, which writes its dead letter, too."""
    while True:
        item = world.claimed()
        yield partial(world.fail, item)


def get_occurrence(world: World) -> Requests:
    """Read an occurrence of one attempt."""
    item = world.claimed()
    world.report("complete", item)
    return again(world.worker, "GET", f"{OCCURRENCES}/{item['occurrence_id']}")


def cancel_occurrence(world: World) -> Requests:
    """Cancel an occurrence each that nobody has claimed."""
    while True:
        place = f"{OCCURRENCES}/{world.occurrence()}/cancel"
        yield partial(world.worker.send, "POST", place)


def replay_occurrence(world: World) -> Requests:
    """Replay a dead occurrence each."""
    while True:
        place = f"{OCCURRENCES}/{world.dead()}/replay"
        yield partial(world.worker.send, "POST", place)


def list_letters(world: World) -> Requests:
    """List on one page."""
    for _ in range(FEW):
        world.dead()
    return again(world.worker, "GET", LETTERS)


def replay_letters(world: World) -> Requests:
    """Start a job each for the one occurrence of a schedule that is dead."""
    schedule_id = world.schedule(world.worker, tracking="TRACKED")
    place, body = f"{LETTERS}/replay", {"schedule_id": schedule_id}
    while True:
        world.dead(schedule_id)
        yield partial(world.worker.send, "POST", place, body)


def create_tenant(world: World) -> Requests:
    """Create tenants."""
    return itertools.repeat(
        lambda: world.platform.send(
            "POST", TENANTS, {"tenant_id": f"bench-{world.number()}"}
        )
    )


def change_tenant(world: World) -> Requests:
    """Give a tenant of its own one more schedule."""
    place = f"{TENANTS}/{world.bare_tenant()}"
    for revision in itertools.count(1):
        tag = {"If-Match": f'"{revision}"'}
        body = {"quotas": {"schedules": revision}}
        yield partial(world.platform.send, "PATCH", place, body, tag)


def put_principal(world: World) -> Requests:
    """Let others call for a tenant of its own, who no longer may afterwards."""
    tenant_id = world.bare_tenant()
    while True:
        place = principal_place(tenant_id, f"bench-{world.number()}")
        yield partial(world.platform.send, "PUT", place)
        checked(world.platform.send("DELETE", place))


def delete_principal(world: World) -> Requests:
    """Let others no longer call for a tenant of its own."""
    tenant_id = world.bare_tenant()
    while True:
        place = principal_place(tenant_id, f"bench-{world.number()}")
        checked(world.platform.send("PUT", place))
        yield partial(world.platform.send, "DELETE", place)


def list_parked(world: World) -> Requests:
    """List on one page."""
    _ = world.parked_rows
    return again(world.platform, "GET", PARKED)


def retry_parked(world: World) -> Requests:
    """Ask for a try of a parked row each, which the next pass forgets."""
    while True:
        place = f"{PARKED}/{world.parked(timedelta(days=1))}/retry"
        yield partial(world.platform.send, "POST", place)


def replan(world: World) -> Requests:
    """Start jobs over the one schedule of a tenant, which are worked off beside."""
    _ = world.tracked
    return again(world.platform, "POST", f"{TENANTS}/bench-worker/replan")


def get_replan(more: str = "") -> Callable[[World], Requests]:
    """Return what reads a replan that is done."""
    return lambda world: again(world.platform, "GET", f"{world.done_replan}{more}")
