"""An edit while a worker is at it, or while a retry waits, cuts nothing off."""

from dataclasses import replace

import pytest
from hourbell.domain.occurrence import State
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import edit, find_current
from hourbell.usecases.work_values import Outcome

from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import SECOND

EDITS = ("description", "tags", "payload", "timing")


def amend(shop: Shop, what: str) -> None:
    """Edit one thing of the schedule."""
    changes, now = shop.world.changes, shop.now
    schedule = find_current(changes, "acme", shop.first.schedule_id)
    definition = schedule.definition
    if what == "payload":
        definition = replace(definition, payload_json='"new"')
    if what == "timing":
        definition = replace(definition, timing=Timing("45 14 * * *"))
    edit(
        changes,
        caller(shop.world),
        schedule,
        definition,
        now,
        description="louder" if what == "description" else "",
        tags={"team": "ops"} if what == "tags" else {},
    )


@pytest.mark.parametrize("what", EDITS)
def test_a_worker_goes_on_and_ends_its_attempt(what: str) -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    token = shop.run(name)

    amend(shop, what)

    beat = shop.beat(name, token)
    assert (beat.outcome, beat.cancel_requested) == (Outcome.OK, False)
    assert shop.complete(name, token).state is State.SUCCEEDED


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize(
    ("seconds", "state"), [(600, State.SCHEDULED), (3_000, State.RETRY_WAIT)]
)
def test_a_retry_comes_under_its_own_id_and_with_its_own_payload(
    what: str, seconds: int, state: State
) -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    patience = Failure(ErrorClass.THROTTLED, retry_after_seconds=seconds)
    shop.fail(name, shop.run(name), patience)
    before = shop.row(name)
    assert before.state is state

    amend(shop, what)

    assert shop.row(name) == before
    shop.after((seconds + 60) * SECOND)
    assert shop.row(name).state is State.ENQUEUED
    assert shop.sent(name) == 2
    bodies = [each.entry.body for each in shop.world.queues.accepted]
    assert not any('"new"' in body for body in bodies)
    assert shop.complete(name, shop.run(name)).state is State.SUCCEEDED


@pytest.mark.parametrize("what", ["description", "tags"])
def test_labels_change_no_row_at_all(what: str) -> None:
    shop = Shop()
    shop.due(2)
    first, second, *_ = shop.names()
    shop.run(first)
    shop.world.clock.advance(SECOND)
    before = (shop.world.store.all_rows(), shop.world.store.all_dispatches())
    assert len(before[0]) >= 5

    amend(shop, what)

    assert (shop.world.store.all_rows(), shop.world.store.all_dispatches()) == before
    shop.run(second)
