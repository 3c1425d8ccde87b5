"""Give workers the occurrences that they have messages of, each to one at a time."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hourbell.domain.definition import Quotas, VersionRef
from hourbell.domain.errors import Transient, Unreadable
from hourbell.usecases.attempts import let_go
from hourbell.usecases.claiming import Plan, Terms, Wish, error, plan_of
from hourbell.usecases.ports import Write
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.work_values import (
    Answer,
    Claimed,
    ClaimFault,
    ClaimOrder,
    SkipReason,
)
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace


def claim(
    place: Workplace,
    tenant_id: str,
    orders: Sequence[ClaimOrder],
    *,
    worker: str,
    lease_seconds: int,
) -> list[Claimed]:
    """Claim occurrences for a worker; answer for each, in order.

    What is free is written in packs: the watch of the lease first, then the row, on
    the condition that nobody else has claimed it. A row whose lane or place must
    change with it is written in a transaction. Who lost a race looks again.

    Args:
        place: the ports.
        tenant_id: whose worker it is; another tenant's occurrences are not there.
        orders: of different occurrences.
        worker: what it calls itself.
        lease_seconds: how long it has before it must be heard of.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is claimed.
    """
    answers: dict[str, Claimed] = {}
    left = list(orders)
    for number in range(MAX_ROUNDS):
        if not left:
            break
        try:
            wishes = _wishes(place, tenant_id, left, answers)
            terms = _terms(place, tenant_id, worker, timedelta(seconds=lease_seconds))
        except Transient:
            if not number:
                raise
            break
        plans = {
            each.order.occurrence_id: _planned(place, each, terms) for each in wishes
        }
        answers |= _carry_out(place, plans, terms.now)
        left = [each for each in left if each.occurrence_id not in answers]
    return [
        answers.get(each.occurrence_id)
        or error(each.occurrence_id, ClaimFault.UNAVAILABLE)
        for each in orders
    ]


def _terms(place: Workplace, tenant_id: str, worker: str, lease: timedelta) -> Terms:
    """Return the terms on which a worker of a tenant claims now."""
    now = place.clock.now()
    tenant = place.directory.tenants([tenant_id]).get(tenant_id)
    quotas = Quotas() if tenant is None else tenant.quotas
    running = quotas.running
    taken = set() if running is None else set(place.ledger.slots(tenant_id))
    is_budgeted = quotas.retries_per_minute is not None
    return Terms(worker, lease, now, running, taken, is_budgeted)


def _wishes(
    place: Workplace,
    tenant_id: str,
    orders: Sequence[ClaimOrder],
    answers: dict[str, Claimed],
) -> list[Wish]:
    """Read what the claims name; answer those for which nothing is there."""
    looked = place.look(tenant_id, [each.occurrence_id for each in orders])
    rows = looked.rows
    refs = {VersionRef(row.schedule_id, row.version) for row in rows.values()}
    versions, faulty = read_versions(place.schedules, refs, consistent=True)
    wishes = []
    for order in orders:
        name, row = order.occurrence_id, rows.get(order.occurrence_id)
        ref = None if row is None else VersionRef(row.schedule_id, row.version)
        version = None if ref is None else versions.get(ref)
        if row is not None and version is not None:
            wishes.append(Wish(order, row, version))
        elif ref in faulty or name in looked.unclear:
            answers[name] = error(name, ClaimFault.UNAVAILABLE)
        else:
            answers[name] = Claimed(name, Answer.SKIP, SkipReason.EXPIRED)
    return wishes


def _planned(place: Workplace, wish: Wish, terms: Terms) -> Plan:
    try:
        return plan_of(place, wish, terms)
    except (Transient, Unreadable):
        # Also what cannot be read of this one, such as its lane, is nothing to others.
        return Plan(error(wish.order.occurrence_id, ClaimFault.UNAVAILABLE))


def _carry_out(
    place: Workplace, plans: Mapping[str, Plan], now: datetime
) -> dict[str, Claimed]:
    """Write what was planned; answer for what is certain.

    What is left out was somebody else's, or has no clear answer: it is looked at again.
    """
    done = {
        name: plan.answer
        for name, plan in plans.items()
        if plan.change is None and plan.deed is None
    }
    packed = {name: plan for name, plan in plans.items() if plan.change is not None}
    done |= _pack(place, packed)
    for name, plan in plans.items():
        if plan.deed is None:
            continue
        try:
            answer = place.ledger.do(plan.deed)
        except Transient:
            continue
        if answer is Write.APPLIED:
            done[name] = plan.answer
            if plan.follows is not None:
                let_go(place, plan.follows, now)
    return done


def _pack(place: Workplace, plans: Mapping[str, Plan]) -> dict[str, Claimed]:
    """Put the watches, then claim the rows whose watches are there."""
    watches = {
        name: plan.watch for name, plan in plans.items() if plan.watch is not None
    }
    posted = place.timeline.post(list(watches.values())) if watches else []
    blind = {
        name
        for name, answer in zip(watches, posted, strict=True)
        if answer is Write.UNKNOWN
    }
    changes = {
        name: plan.change
        for name, plan in plans.items()
        if plan.change is not None and name not in blind
    }
    moved = place.timeline.move(list(changes.values())) if changes else []
    return {
        name: plans[name].answer
        for name, answer in zip(changes, moved, strict=True)
        if answer is Write.APPLIED
    }
