"""Jobs: one call for many schedules, and the workers that do their items."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.job import JobState, Operation, Outcome, Target
from hourbell.usecases.jobs import NewJob, Office, start_job
from hourbell.usecases.remind import remind
from hourbell.usecases.run_job import TENANT_SUSPENDED, Workshop, run_job

from tests.simulation.log import Call, Spec
from tests.simulation.specs import request_of

OPERATIONS = ("create", "pause", "resume", "cancel", "pause", "resume")
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
RECEIVES = 4
INVARIANT = "a job does each item once"


class RecordingClock:
    """A process's clock that remembers what it told."""

    def __init__(self, clock: Any, readings: list[Any]) -> None:
        self._clock = clock
        self._readings = readings

    def now(self) -> Any:
        reading = self._clock.now()
        self._readings.append(reading)
        return reading


class JobCalls:
    """The jobs of a world; each of their items counts as a call, too."""

    def __init__(self, callers: Any) -> None:
        self._callers = callers
        self._world = callers.world
        self._items: dict[int, list[Call]] = {}
        self._by_id: dict[str, Call] = {}

    def new(self, number: int, alive: list[Any]) -> Call:
        """Return the call that makes a job; its items are among the calls."""
        world, rng = self._world, self._world.rng
        tenant = rng.choice(sorted(world.tenants))
        own = [each for each in alive if each.tenant_id == tenant]
        kind = rng.choice(OPERATIONS) if own else "create"
        if kind == "create":
            new = self._callers.specs.new
            specs = [new(number) for _ in range(rng.randrange(1, 4))]
            return self._creating(number, tenant, specs)
        chosen = rng.sample(own, min(len(own), rng.randrange(1, 5)))
        return self._changing(number, tenant, kind, chosen)

    def scripted(
        self, number: int, kind: str, spec: Spec | None, schedules: list[Any]
    ) -> Call:
        """Return the call that makes a job of this kind, of all schedules or a new."""
        tenant = schedules[0].tenant_id
        if kind == "create":
            assert spec is not None
            return self._creating(number, tenant, [spec])
        return self._changing(number, tenant, kind, schedules)

    def _creating(self, number: int, tenant: str, specs: list[Spec]) -> Call:
        job = self._job_call(number, tenant, "create")
        for place, spec in enumerate(specs):
            item = self._item_call(job, f"{tenant}-{number}x{place}")
            item.spec = spec
            self._callers.by_name[item.name] = item
        return job

    def _changing(
        self, number: int, tenant: str, kind: str, schedules: list[Any]
    ) -> Call:
        job = self._job_call(number, tenant, kind)
        for each in schedules:
            self._item_call(job, each.name).schedule_id = each.schedule_id
        return job

    def _job_call(self, number: int, tenant: str, kind: str) -> Call:
        self._items[number] = []
        name = f"{tenant}-job{number}"
        return Call(number, "job", name, self._world.now, key=kind)

    def _item_call(self, job: Call, name: str) -> Call:
        item = Call(job.number, job.key or "", name, job.began, job=job, nows=job.nows)
        self._items[job.number].append(item)
        self._world.log.calls.append(item)
        return item

    def start(self, process: Any, who: Any, call: Call, now: Any) -> Any:
        """Make a job by the API, and let a worker come to it."""
        items = self._items[call.number]
        request = NewJob(
            Operation(call.key or ""),
            f"job-{call.number}",
            f"body-{call.number}",
            tuple(_item(each) for each in items),
            reason=call.mark,
        )
        return start_job(Office(process.jobs, process.job_queue), who, request, now)

    def take(self) -> None:
        """Let what was put on the queue be received, as far as it is not lost."""
        for job_id in self._world.job_queue.take():
            if self._world.strikes("job message lost"):
                continue
            self._put(job_id, 0)

    def remind(self) -> None:
        """Let a tick see after jobs; whatever stops it, the next one does."""
        world = self._world
        if not world.jobs.reminders(world.now, limit=1):
            return

        def see(process: Any, attempt: str) -> None:
            office = Office(process.jobs, process.job_queue)
            report = remind(office, process.clock, deadline=world.now + MINUTE)
            told = [self._job(each).number for each in report.told]
            world.note(f"[{attempt}] told of jobs {told}, {len(report.faults)} faults")

        with suppress(Transient):
            world.task("worker", "reminders", see)

    def _put(self, job_id: str, receives: int) -> None:
        wait = self._world.rng.uniform(0.2, 3) if not receives else 30
        self._world.at(self._world.now + wait * SECOND, "job", (job_id, receives))

    def run(self, what: tuple[str, int]) -> None:
        """Let a worker have a job."""
        world, (job_id, receives) = self._world, what
        job = self._job(job_id)
        settled = False

        def work(process: Any, attempt: str) -> None:
            nonlocal settled
            shop = Workshop(
                process.jobs,
                process.job_queue,
                process.directory,
                process.bench,
                RecordingClock(process.clock, job.nows),
            )
            deadline = process.clock.now() + 8 * SECOND
            last = receives >= RECEIVES
            report = run_job(shop, job_id, deadline=deadline, gives_up=last)
            settled = True
            for fault in report.faults:
                world.log.violate("no error of its own", world.steps, repr(fault))
            told = [f"{each.name} {each.outcome}" for each in report.results]
            world.note(f"[{attempt}] job {job.number} is {report.state}: {told}")

        if world.is_down("caller"):
            world.at(world.down["caller"] + SECOND, "job", what)
            return
        try:
            if not world.task("worker", f"job of {job.mark}", work):
                world.at(world.now + SECOND, "job", what)
                return
        except Transient as error:
            world.note(f"job failed: {error}")
        except HourbellError as error:
            world.log.violate(INVARIANT, world.steps, f"{job.mark}: {error}")
        if not settled:
            self._put(job_id, receives + 1)

    def _job(self, job_id: str) -> Call:
        found = self._by_id.get(job_id)
        if found is None:
            reason = self._world.store.jobs[job_id].reason
            calls = [each for each in self._world.log.calls if each.mark == reason]
            found = next(each for each in calls if each.kind == "job")
            self._by_id[job_id] = found
        return found

    def settle(self) -> None:
        """Tell each item's call what the stored results say of it, and judge them."""
        store = self._world.store
        for job_id, stored in store.jobs.items():
            call = self._job(job_id)
            items, results = self._items[call.number], store.job_results[job_id]
            if [each.index for each in results] != list(range(len(results))):
                self._violate(call, f"results {[each.index for each in results]}")
            for result in results:
                self._note(items[result.index], result)
            done = stored.state is JobState.SUCCEEDED and len(results) == len(items)
            suspended = stored.failure == TENANT_SUSPENDED
            given_up = stored.state is JobState.FAILED and suspended
            if not (done or given_up):
                text = f"{stored.state} {stored.failure}, {len(results)} results"
                self._violate(call, text)

    def _note(self, item: Call, result: Any) -> None:
        code = result.refusal.code if result.refusal else None
        if code == Transient.default_code:
            return
        item.refused = code
        marks = [
            each.version
            for each in self._world.store.versions.values()
            if each.reason == item.mark and each.name == item.name
        ]
        wrong = {
            Outcome.CHANGED: not marks,
            Outcome.UNCHANGED: bool(marks),
            Outcome.REFUSED: bool(marks),
        }
        if wrong.get(result.outcome):
            self._violate(item, f"{item.name} {result.outcome}, versions {marks}")
        if result.outcome is Outcome.CREATED:
            item.schedule_id = result.schedule_id
            if result.schedule_id not in self._world.store.schedules:
                self._violate(item, f"{item.name} created, and is not there")

    def _violate(self, call: Call, text: str) -> None:
        world = self._world
        world.log.violate(INVARIANT, world.steps, f"{call.mark}: {text}")


def _item(call: Call) -> Any:
    if call.kind == "create":
        assert call.spec is not None
        return request_of(call.spec, call.name, call.number, None)
    return Target(call.schedule_id or "", call.name)
