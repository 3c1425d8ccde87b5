"""Lives of occurrences for the crash enumeration: what is asked for, and when.

Every life is the shortest that takes its occurrences from a create to their ends by
one combination of policies, or through one kind of change.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product

from hourbell.domain.definition import derived_schedule_id

from tests.simulation.log import Spec, Tries
from tests.simulation.rules import Rule, available_at, spelled
from tests.simulation.shards import shard_under

# Ahead of an engine's own clock, by which it deletes what has expired.
BEGIN = datetime(2035, 6, 9, 11, 59, 30, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
NOON = datetime(2035, 6, 9, 12, tzinfo=UTC)
TENANT = "acme"
POLICIES = (("SKIP", None), ("FIRE_ONCE", None), ("CATCH_UP", 3))
WINDOWS = (0, 90, 1500)
# Beyond the queue's longest delay, so that the occurrence is DEFERRED.
DEFERRED = (860, 960)


@dataclass(frozen=True)
class Act:
    """One call of the API.

    Attributes:
        after: how long after the beginning.
        kind: as a call's kind; a job's is `job pause`.
    """

    after: timedelta
    kind: str
    spec: Spec | None = None
    key: str = "key"


@dataclass(frozen=True)
class Life:
    """What happens, besides passes and relays.

    Attributes:
        outage: what is `down` is so from and to so long after the beginning.
        without_handler: likewise, the handler is not there.
        lasts: how long after the beginning all is settled.
        policies: the policy values that it stands for.
        work: what its consumers make of each attempt, by number, the last for all
            others; after a replay from the second on. They are ok, fail, permanent,
            long, die, die long, never; no consumers without it.
        others: likewise, of all occurrences but the first; None for no difference.
        running: how many may run at the same time.
        counts: shards and groups at first, and those that the act `shards` announces.
        lost_from: from which send on the messages of an occurrence are lost for good;
            then weeks follow, after which its queue has let go of them.
    """

    name: str
    acts: tuple[Act, ...]
    lasts: timedelta
    outage: tuple[timedelta, timedelta] | None = None
    without_handler: tuple[timedelta, timedelta] | None = None
    policies: tuple[str, ...] = ()
    down: tuple[str, ...] = ("tick", "materializer")
    counts: tuple[tuple[int, int], tuple[int, int]] | None = None
    work: tuple[str, ...] = ()
    others: tuple[str, ...] | None = None
    running: int | None = None
    lost_from: int | None = None

    @property
    def passes_are_many(self) -> bool:
        """Whether a process is not stopped at what every pass calls."""
        return self.counts is not None or self.lost_from is not None

    @property
    def is_calm(self) -> bool:
        """Whether everything must run on time, whatever crash there is."""
        return not (self.outage or self.without_handler or self.work)


def every_life() -> Iterator[Life]:
    """Yield all lives: of each combination of policies, and of each change."""
    for policy, window, overdue, recurring in product(
        POLICIES, WINDOWS, (False, True), (False, True)
    ):
        yield _plain(policy, window, overdue=overdue, recurring=recurring)
    for tracked, window in product((False, True), (0, 1500)):
        for change in ("edit", "pause", "cancel"):
            yield _changed(change, window, tracked=tracked)
    for change in ("edit", "pause", "cancel"):
        yield _overdue_change(change)
    yield from (_run(), _backfill(), _job("pause"), _job("create"), _parked())
    yield _unsent()
    yield from worked_lives()
    yield from unclaimed_lives()
    for counts in (((1, 1), (4, 2)), ((4, 1), (1, 1))):
        yield from _resharded(counts)


def _plain(
    policy: tuple[str, int | None], window: int, *, overdue: bool, recurring: bool
) -> Life:
    """Return a life from create to completion."""
    first = NOON + 4 * MINUTE
    rule = Rule("once", once=first.replace(tzinfo=None))
    if recurring:
        step, most = (1, 6) if overdue else (2, 2)
        rule = Rule("every", step, start=first, most=most)
    spec = Spec(rule, 1, policy[0], policy[1], window=window)
    ends = 12 * MINUTE + window * SECOND
    outage = None
    if overdue:
        # All times are late, and by more than their window where it is short.
        back = 12 * MINUTE + min(window, 90) * SECOND
        outage, ends = (90 * SECOND, back), back + 6 * MINUTE + window * SECOND
    name = ", ".join(
        (
            policy[0],
            f"window {window}",
            "overdue" if overdue else "on time",
            "recurring" if recurring else "one-time",
        )
    )
    create = Act(SECOND, "create", spec, _key(first, window))
    return Life(name, (create,), ends, outage, policies=tuple(name.split(", ")))


def _key(first: datetime, window: int) -> str:
    """Return a key whose first occurrence is DEFERRED where the window is wide."""
    if window <= DEFERRED[1]:
        return "key"
    for number in range(1000):
        key = f"key-{number}"
        name = f"{derived_schedule_id(TENANT, key)}.v1.{spelled(first)}"
        wait = (available_at(name, first, window) - first).total_seconds()
        if DEFERRED[0] <= wait <= DEFERRED[1]:
            return key
    raise LookupError(f"no key for a window of {window} s")


def _edited(change: str, spec: Spec) -> Spec | None:
    """Return what an edit makes of a spec; other changes make nothing of it."""
    return replace(spec, payload=2) if change == "edit" else None


def _changed(change: str, window: int, *, tracked: bool) -> Life:
    """Return a life that a change and, after a pause, a resume ends."""
    spec = Spec(Rule("every", 1), 1, "FIRE_ONCE", window=window, tracked=tracked)
    acts = [
        Act(SECOND, "create", spec),
        Act(100 * SECOND, change, _edited(change, spec)),
    ]
    if change == "pause":
        acts.append(Act(160 * SECOND, "resume"))
    if change != "cancel":
        acts.append(Act(5 * MINUTE, "cancel"))
    kind = "TRACKED" if tracked else "UNTRACKED"
    name = f"{change} of {kind}, window {window}"
    return Life(name, tuple(acts), 9 * MINUTE + min(window, 60) * SECOND)


def _overdue_change(change: str) -> Life:
    """Return a life with a change in the middle of an outage."""
    spec = Spec(Rule("every", 1), 1, "CATCH_UP", 3)
    acts = (
        Act(SECOND, "create", spec),
        Act(11 * MINUTE, change, _edited(change, spec)),
        Act(16 * MINUTE, "cancel"),
    )
    outage = (90 * SECOND, 13 * MINUTE)
    return Life(f"{change} of a backlog", acts, 20 * MINUTE, outage)


def _run() -> Life:
    spec = Spec(Rule("hourly", 30), 1)
    acts = (
        Act(SECOND, "create", spec),
        Act(40 * SECOND, "run", key="now"),
        Act(3 * MINUTE, "cancel"),
    )
    return Life("run now", acts, 7 * MINUTE)


def _backfill() -> Life:
    """Return a life that makes up for what an outage made MISSED, and for older."""
    spec = Spec(Rule("every", 1), 1, "SKIP")
    acts = (
        Act(SECOND, "create", spec),
        Act(10 * MINUTE, "backfill"),
        Act(14 * MINUTE, "cancel"),
    )
    outage = (90 * SECOND, 9 * MINUTE)
    return Life("backfill of a gap", acts, 18 * MINUTE, outage)


def _job(operation: str) -> Life:
    spec = Spec(Rule("every", 1), 1)
    new = Spec(Rule("every", 1, most=3), 2)
    acts = (
        Act(SECOND, "create", spec),
        Act(100 * SECOND, f"job {operation}", new),
        Act(4 * MINUTE, "cancel"),
    )
    return Life(f"job, {operation}", acts, 8 * MINUTE)


def _parked() -> Life:
    """Return a life whose row is parked, because its handler is not there."""
    spec = Spec(Rule("once", once=(NOON + 6 * MINUTE).replace(tzinfo=None)), 1)
    gone = (2 * MINUTE, 25 * MINUTE)
    acts = (Act(SECOND, "create", spec),)
    return Life("parking", acts, 45 * MINUTE, without_handler=gone)


def _unsent() -> Life:
    """Return a life with a cancel while the relay is down: it finds out in the end."""
    spec = Spec(Rule("every", 1), 1)
    acts = (Act(SECOND, "create", spec), Act(5 * MINUTE, "cancel"))
    outage = (90 * SECOND, 7 * MINUTE)
    return Life("cancel of what is unsent", acts, 11 * MINUTE, outage, down=("relay",))


def _resharded(
    counts: tuple[tuple[int, int], tuple[int, int]],
) -> Iterator[Life]:
    """Yield lives through a change of the shard count, whose epoch begins at 12:12.

    It is announced so that its next phase begins just after a pass, and its rows may
    be moved two and a half minutes later. In late lives no mover is there until the
    epoch has begun, so that due rows are in its way.
    """
    announce = Act(139 * SECOND, "shards")
    first = Rule("every", 7, start=NOON + 6 * MINUTE, most=2)
    plain = Spec(first, 1)
    late = (90 * SECOND, 13 * MINUTE)
    keys = _moving_keys(counts)
    create = Act(SECOND, "create", plain, next(keys))
    ahead = Spec(Rule("every", 7, start=NOON + 12 * MINUTE, most=1), 1)
    yield Life(
        f"{_shown(counts)}, occurrences",
        (create, announce, Act(3 * SECOND, "create", ahead, next(keys))),
        17 * MINUTE,
        counts=counts,
    )
    wide = replace(plain, window=1500)
    yield Life(
        f"{_shown(counts)} late, DEFERRED occurrences",
        (replace(create, spec=wide), announce),
        45 * MINUTE,
        late,
        down=("mover",),
        counts=counts,
    )
    yield Life(
        f"{_shown(counts)} late, parking",
        (create, announce),
        32 * MINUTE,
        (90 * SECOND, 19 * MINUTE),
        without_handler=(8 * MINUTE, 24 * MINUTE),
        down=("mover",),
        counts=counts,
    )
    for change, after in (("edit", 100 * SECOND), ("pause", 4 * MINUTE)):
        acts = [create, announce, Act(after, change, _edited(change, plain))]
        if change == "pause":
            acts.append(Act(after + MINUTE, "resume"))
        yield Life(
            f"{_shown(counts)} late, {change}",
            tuple(acts),
            24 * MINUTE,
            late,
            down=("mover",),
            counts=counts,
        )


def _shown(counts: tuple[tuple[int, int], tuple[int, int]]) -> str:
    return " to ".join(f"{shards} shards" for shards, _ in counts)


def _moving_keys(counts: tuple[tuple[int, int], tuple[int, int]]) -> Iterator[str]:
    """Yield keys whose rows lie in another shard afterwards."""
    for number in range(100):
        key = f"key-{number}"
        name = derived_schedule_id(TENANT, key)
        (old, _), (new, _) = counts
        if shard_under(old, name) != shard_under(new, name):
            yield key


def worked_lives() -> Iterator[Life]:
    """Yield lives of TRACKED occurrences, with consumers."""
    tries = Tries(most=3, base=5, cap=5, deadline=900)
    once = Rule("once", once=(NOON + 2 * MINUTE).replace(tzinfo=None))
    spec = Spec(once, 1, tracked=True, tries=tries)
    create = Act(SECOND, "create", spec)
    for name, work in (
        ("failure, retry", ("fail", "ok")),
        ("failures until DEAD", ("fail",)),
        ("a worker that dies", ("die", "ok")),
        ("a worker that dies, message deleted", ("die long", "ok")),
        ("long work", ("long",)),
        ("never claimed", ("never",)),
    ):
        yield Life(f"TRACKED, {name}", (create,), 20 * MINUTE, work=work)
    replay = Act(5 * MINUTE, "replay")
    again = replace(create, spec=replace(spec, tries=replace(tries, most=2)))
    yield Life(
        "TRACKED, replay",
        (again, replay),
        22 * MINUTE,
        work=("permanent", "fail", "ok"),
    )
    stop = Act(200 * SECOND, "cancel one")
    yield Life(
        "TRACKED, cancel of RUNNING", (create, stop), 20 * MINUTE, work=("long",)
    )
    twice = replace(spec, rule=Rule("every", 1, start=NOON + 2 * MINUTE, most=3))
    for overlap in ("SKIP_IF_RUNNING", "QUEUE_ONE"):
        often = Act(SECOND, "create", replace(twice, overlap=overlap))
        yield Life(f"TRACKED, {overlap}", (often,), 26 * MINUTE, work=("long",))
    often = Act(SECOND, "create", twice)
    yield Life("TRACKED, quota", (often,), 24 * MINUTE, work=("long",), running=1)
    hurried = replace(twice, tries=Tries(3, 90, 90, 150))
    yield Life(
        "TRACKED, quota and deadline",
        (replace(often, spec=hurried),),
        26 * MINUTE,
        work=("fail", "long"),
        running=1,
    )
    leave = Act(220 * SECOND, "cancel")
    yield Life("TRACKED, cancel of all", (often, leave), 20 * MINUTE, work=("long",))
    both = replace(twice.rule, most=2)
    queued = replace(
        twice, rule=both, overlap="QUEUE_ONE", tries=replace(tries, most=2)
    )
    yield Life(
        "TRACKED, lane, place and death",
        (Act(SECOND, "create", queued),),
        9 * MINUTE,
        work=("fail", "long"),
        others=("permanent",),
        running=1,
    )


def unclaimed_lives() -> Iterator[Life]:
    """Yield lives of TRACKED occurrences whose messages nobody receives any more.

    The retry of the second one has its schedule's lane; what is external
    has to be looked at again, since its queue may keep it for longer.
    """
    tries = Tries(most=3, base=5, cap=5, deadline=900)
    once = Rule("once", once=(NOON + 2 * MINUTE).replace(tzinfo=None))
    spec = Spec(once, 1, tracked=True, tries=tries)
    retried = replace(spec, overlap="SKIP_IF_RUNNING")
    for name, each, lost_from in (
        ("lost", spec, 1),
        ("retry lost", retried, 2),
        ("lost outside", replace(spec, handler="far"), 1),
    ):
        create = Act(SECOND, "create", each)
        yield Life(
            f"TRACKED, {name}",
            (create,),
            12 * MINUTE,
            work=("fail",),
            lost_from=lost_from,
        )
