"""What the bench of the API measures: every route, or why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadtest.bench import _api_requests as requests
from loadtest.bench._api_requests import Requests
from loadtest.bench._api_world import (
    HANDLERS,
    JOBS,
    LETTERS,
    OCCURRENCES,
    PARKED,
    SCHEDULES,
    TENANTS,
    World,
)

FLOOR = "floor"
SHARDS = "/v1/admin/shards"
ONE = (1,)
BOTH = (1, 8)

# Routes that are not measured, and why.
LEFT_OUT = {
    f"POST {SHARDS}": "one change of the shard count can be under way, which takes "
    "minutes and moves the rows of all that is measured: see bench reshard",
    f"POST {SHARDS}/resume": "without a change of the shard count under way it does "
    f"what GET {SHARDS} does",
}


@dataclass(frozen=True, slots=True)
class Probe:
    """Requests of one route.

    Attributes:
        name: the route as `METHOD path`, with a query where that makes a difference.
        make: returns the requests of one caller, which go on for ever.
        callers: with how many callers it is measured, one after the other. Only with
            one where requests are made ready: several would wait for each other's
            preparations, and what they sent would be no rate that was answered.
    """

    name: str
    make: Callable[[World], Requests]
    callers: tuple[int, ...] = ONE

    @property
    def route(self) -> tuple[str, str]:
        """Method and path."""
        method, _, path = self.name.partition("?")[0].partition(" ")
        return method, path


def chosen(texts: Sequence[str]) -> tuple[Probe, ...]:
    """Return the floor, and the probes that are meant by any of some texts.

    Args:
        texts: the name of one, or a part of the names of several; none means all.

    Raises:
        ValueError: a text means none.
    """
    if not texts:
        return PROBES
    names: set[str] = set()
    for text in texts:
        meant = {text} & BY_NAME.keys() or {name for name in BY_NAME if text in name}
        if not meant:
            raise ValueError(f"no measured route has {text!r} in its name")
        names |= meant
    return tuple(each for each in PROBES if each.name in names | {FLOOR})


_SCHEDULE = f"{SCHEDULES}/{{schedule_id}}"
_HANDLER = f"{HANDLERS}/{{name}}"
_JOB = f"{JOBS}/{{job_id}}"
_OCCURRENCE = f"{OCCURRENCES}/{{occurrence_id}}"
_TENANT = f"{TENANTS}/{{tenant_id}}"
PROBES = (
    Probe(FLOOR, lambda world: requests.again(world.reader, "GET", "/floor"), BOTH),
    Probe(f"POST {SCHEDULES}/preview", requests.preview, BOTH),
    Probe(f"GET {_SCHEDULE}", requests.get_schedule(), BOTH),
    Probe(f"GET {SCHEDULES}", requests.list_schedules, BOTH),
    Probe(f"POST {SCHEDULES}", requests.create, BOTH),
    Probe(f"POST {SCHEDULES}?dry_run=true", requests.dry_run, BOTH),
    Probe(f"PATCH {_SCHEDULE}", requests.patch, BOTH),
    Probe(f"PUT {SCHEDULES}/by-name/{{name}}", requests.put, BOTH),
    Probe(f"POST {_SCHEDULE}/pause", requests.pause),
    Probe(f"POST {_SCHEDULE}/resume", requests.resume),
    Probe(f"POST {_SCHEDULE}/run", requests.run, BOTH),
    Probe(f"POST {_SCHEDULE}/backfill", requests.backfill),
    Probe(f"GET {_SCHEDULE}/versions", requests.get_schedule("/versions"), BOTH),
    Probe(f"DELETE {_SCHEDULE}", requests.delete),
    Probe(f"GET {HANDLERS}", requests.get(HANDLERS), BOTH),
    Probe(f"POST {HANDLERS}", requests.register_handler),
    Probe(f"GET {_HANDLER}", requests.get(f"{HANDLERS}/send")),
    Probe(f"PATCH {_HANDLER}", requests.change_handler),
    Probe(f"DELETE {_HANDLER}", requests.retire_handler),
    Probe("GET /v1/usage", requests.get("/v1/usage"), BOTH),
    # Before others die, whose number is not the same each time.
    Probe(f"GET {LETTERS}", requests.list_letters),
    Probe(f"POST {OCCURRENCES}/claim", requests.claim),
    Probe(f"POST {OCCURRENCES}/heartbeat", requests.heartbeat),
    Probe(f"POST {OCCURRENCES}/complete", requests.complete),
    Probe(f"POST {OCCURRENCES}/fail", requests.fail),
    Probe(f"GET {_OCCURRENCE}", requests.get_occurrence),
    Probe(f"POST {_OCCURRENCE}/cancel", requests.cancel_occurrence),
    Probe(f"POST {_OCCURRENCE}/replay", requests.replay_occurrence),
    Probe(f"GET {TENANTS}", requests.ask_platform(TENANTS)),
    Probe(f"POST {TENANTS}", requests.create_tenant),
    Probe(f"GET {_TENANT}", requests.ask_platform(f"{TENANTS}/local")),
    Probe(f"PATCH {_TENANT}", requests.change_tenant),
    Probe(
        f"GET {_TENANT}/principals",
        requests.ask_platform(f"{TENANTS}/local/principals"),
    ),
    Probe(f"PUT {_TENANT}/principals/{{principal}}", requests.put_principal),
    Probe(f"DELETE {_TENANT}/principals/{{principal}}", requests.delete_principal),
    Probe(f"GET {SHARDS}", requests.ask_platform(SHARDS)),
    Probe(f"GET {PARKED}", requests.list_parked),
    Probe(f"POST {PARKED}/{{parked_id}}/retry", requests.retry_parked),
    # Jobs come last: they are worked off beside what is measured after them.
    Probe(f"GET {JOBS}", requests.list_jobs),
    Probe(f"GET {_JOB}", requests.get_job()),
    Probe(f"GET {_JOB}/results", requests.get_job("/results")),
    Probe(f"GET {_TENANT}/replan/{{job_id}}", requests.get_replan()),
    Probe(f"GET {_TENANT}/replan/{{job_id}}/results", requests.get_replan("/results")),
    Probe(f"POST {_JOB}/cancel", requests.cancel_job),
    Probe(f"POST {_JOB}/resume", requests.resume_job),
    Probe(f"POST {SCHEDULES}/batch", requests.batch),
    Probe(f"POST {LETTERS}/replay", requests.replay_letters),
    Probe(f"POST {_TENANT}/replan", requests.replan),
)
BY_NAME = {each.name: each for each in PROBES}
