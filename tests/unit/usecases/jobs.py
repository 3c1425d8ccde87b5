"""Jobs in the small world: how tests make and run them."""

from dataclasses import replace
from typing import Any

from hourbell.domain.definition import (
    NewSchedule,
    ScheduleState,
    TenantState,
)
from hourbell.domain.job import Job, Operation, Target
from hourbell.domain.schedule import Timing
from hourbell.usecases.create_schedule import create_schedule
from hourbell.usecases.jobs import NewJob, start_job
from hourbell.usecases.run_job import JobReport, Workshop, run_job

from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import SECOND, START, World

HOURLY = Timing("0 * * * *")
PORTS = ("jobs", "job_queue", "schedules", "timeline", "directory", "groups")
MOST_CALLS = 2_000


def ann_world() -> World:
    world = World()
    world.store.principals["1:user/ann"] = "acme"
    return world


def new(name: str, **fields: Any) -> NewSchedule:
    return NewSchedule(name, HOURLY, "ring", f"hash of {name}", **fields)


def made(world: World, count: int, **fields: Any) -> list[str]:
    """Create schedules beside any job; return their ids."""
    registry = world.workshop.bench.registry
    return [
        create_schedule(
            registry, caller(world), new(f"bell-{n:03}", **fields), START
        ).schedule.schedule_id
        for n in range(count)
    ]


def start(world: World, operation: str, items: Any = (), **fields: Any) -> Job:
    request = NewJob(Operation(operation), "key", "hash", tuple(items), **fields)
    return start_job(world.office, caller(world), request, START).job


def targets(ids: list[str]) -> list[Target]:
    return [Target(each) for each in ids]


def run(
    world: World,
    job: Job,
    shop: Workshop | None = None,
    seconds: int = 30,
    **more: bool,
) -> JobReport:
    deadline = world.clock.now() + seconds * SECOND
    return run_job(shop or world.workshop, job.job_id, deadline=deadline, **more)


def stored(world: World, job: Job) -> Job:
    return world.store.jobs[job.job_id]


def outcomes(world: World, job: Job) -> list[str]:
    return [each.outcome for each in world.store.job_results[job.job_id]]


def states(world: World) -> dict[str, ScheduleState]:
    return {each.name: each.state for each in world.store.schedules.values()}


def watched(world: World, ports: dict[str, Any]) -> Workshop:
    """Return the workshop with some ports in place of the world's."""
    shop = world.workshop
    ports = {name: getattr(world, name) for name in PORTS} | ports
    plane = replace(
        world.plane,
        **{name: ports[name] for name in ("schedules", "timeline", "directory")},
    )
    changes = replace(shop.bench.changes, plane=plane, groups=ports["groups"])
    registry = replace(shop.bench.registry, plane=plane, groups=ports["groups"])
    return replace(
        shop,
        jobs=ports["jobs"],
        queue=ports["job_queue"],
        directory=ports["directory"],
        bench=replace(shop.bench, registry=registry, changes=changes),
    )


def failing_at(world: World, schedule_id: str, error: Exception) -> Workshop:
    """Return the workshop where reading one schedule fails."""

    class Faulty:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def find(self, wanted: str) -> Any:
            if wanted == schedule_id:
                raise error
            return world.schedules.find(wanted)

    return watched(world, {"schedules": Faulty()})


def begin_create(world: World) -> Job:
    return start(world, "create", [new(f"bell-{n}") for n in range(3)])


def begin_pause(world: World) -> Job:
    return start(world, "pause", targets(made(world, 3)))


def begin_walk(world: World) -> Job:
    made(world, 3, tags={"team": "ops"})
    return start(world, "cancel", tags={"team": "ops"})


def suspend(world: World, state: TenantState = TenantState.SUSPENDED) -> None:
    tenant = world.store.tenants["acme"]
    world.store.tenants["acme"] = replace(tenant, state=state)
