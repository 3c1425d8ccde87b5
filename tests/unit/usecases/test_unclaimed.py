"""What nobody claims ends when its queue has let go of its message."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Handler, Routing, Tracking
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Failure, Retry
from hourbell.domain.routing import is_kept_by_owner
from hourbell.usecases.occurrences import replay_occurrence
from hourbell.usecases.unclaimed import Seen, Versions, see_to
from hourbell.usecases.work_values import Answer, SkipReason

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.leaping import (
    DAY,
    HOUR,
    KEPT,
    LOOKED,
    checks,
    leap,
    one_time,
    passes,
    pending,
    sent_at,
    unclaimed,
)
from tests.unit.usecases.test_redrive import forwarded
from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import MINUTE, SECOND, START

DUE = START + 2 * MINUTE
PERMANENT = Failure(ErrorClass.PERMANENT, "Bad", "never")
OWN = "arn:aws:sqs:eu-central-1:1:hourbell-tenant-acme"


def own(arn: str) -> Handler:
    return Handler("a", "b", Routing.DEDICATED, queue_arn=arn)


def registered(shop: Shop, routing: Routing, arn: str) -> None:
    handler = Handler("acme", "ring", routing, queue_arn=arn)
    shop.world.store.handlers["acme", "ring"] = handler


def test_a_lost_message_ends_dead_with_its_letter_and_can_be_replayed() -> None:
    shop = one_time()
    name = shop.due()
    leap(shop.world, DUE + LOOKED - MINUTE)
    assert unclaimed(passes(shop)) == 0
    assert shop.row(name).state is State.ENQUEUED

    assert unclaimed(passes(shop, 2)) == 1

    row = shop.row(name)
    assert (row.state, row.reason, row.attempt) == (State.DEAD, "NEVER_CLAIMED", 0)
    ((queue, body),) = forwarded(shop)
    assert (queue, json.loads(body)["id"]) == ("standard-dead", name)
    (late,) = shop.claim(name)
    assert (late.answer, late.reason) == (Answer.SKIP, SkipReason.ALREADY_DONE)
    assert unclaimed(passes(shop, 5)) == 0
    assert pending(shop) == []

    replay_occurrence(shop.world.workplace, "acme", name)
    passes(shop)
    shop.run(name)


def test_what_is_untracked_ends_with_its_send() -> None:
    shop = one_time(tracking=Tracking.UNTRACKED)
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    assert unclaimed(passes(shop, 3)) == 0
    assert (shop.row(name).state, pending(shop)) == (State.ENQUEUED, [])


def test_an_untracked_one_without_an_expiry_is_left_alone() -> None:
    shop = one_time(tracking=Tracking.UNTRACKED)
    name = shop.due()
    shop.world.store.put_row(replace(shop.row(name), expires_at=None))
    leap(shop.world, DUE + LOOKED)
    assert unclaimed(passes(shop, 3)) == 0
    assert (shop.row(name).state, pending(shop)) == (State.ENQUEUED, [])


@pytest.mark.parametrize("late", [timedelta(hours=3), timedelta(days=3)])
def test_one_that_was_sent_late_has_its_days_from_then_on(late: timedelta) -> None:
    shop = one_time()
    name = shop.due()
    visible = DUE + late + timedelta(milliseconds=1)
    shop.world.store.put_row(
        replace(shop.row(name), enqueued_at=visible, visible_at=visible)
    )
    leap(shop.world, DUE + LOOKED)
    assert unclaimed(passes(shop)) == 0
    assert checks(shop) == [DUE + late + KEPT + SECOND]

    leap(shop.world, DUE + late + KEPT)
    assert unclaimed(passes(shop)) == 0
    assert unclaimed(passes(shop)) == 1
    assert (shop.row(name).state, pending(shop)) == (State.DEAD, [])


@pytest.mark.parametrize(
    ("routing", "arn", "kept"),
    [
        (Routing.DEDICATED, OWN, 4 * DAY),
        (Routing.EXTERNAL, f"{OWN}-theirs-strict", 14 * DAY),
    ],
)
def test_an_external_queue_may_keep_a_message_for_two_weeks(
    routing: Routing, arn: str, kept: timedelta
) -> None:
    shop = one_time()
    registered(shop, routing, arn)
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    dead = kept == 4 * DAY
    assert unclaimed(passes(shop)) == dead
    assert checks(shop) == [] if dead else [DUE + kept + HOUR]

    leap(shop.world, DUE + kept + HOUR)
    assert unclaimed(passes(shop)) == (not dead)
    assert shop.row(name).state is State.DEAD


@pytest.mark.parametrize(
    ("queue", "handler", "kept"),
    [
        ("standard-strict", None, False),
        (f"{OWN}-strict", own(OWN), False),
        (f"{OWN}-strict", Handler("a", "b", Routing.EXTERNAL, queue_arn=OWN), True),
        (f"{OWN}-strict", own("arn:other"), True),
        (f"{OWN}-strict", Handler("a", "b"), True),
        (f"{OWN}-strict", None, True),
    ],
)
def test_whose_queue_it_was_is_told_by_its_handler(
    queue: str, handler: Handler | None, kept: bool
) -> None:
    assert is_kept_by_owner(queue, "strict", handler) is kept  # type: ignore[arg-type]


def test_a_retry_that_is_lost_frees_the_lane_for_the_one_that_waits() -> None:
    shop = Shop(overlap=Overlap.QUEUE_ONE, retry=Retry(max_attempts=3))
    first = shop.due()
    token = shop.run(first)
    shop.after(MINUTE)
    second = shop.names()[1]
    (answer,) = shop.claim(second)
    assert answer.answer is Answer.WAIT
    shop.fail(first, token, BOOM)
    passes(shop, 2)
    row = shop.row(first)
    assert (row.state, row.sends) == (State.ENQUEUED, 2)
    lane = shop.world.ledger.lane(row.schedule_id)
    assert lane.holder == first
    # As if nobody had come between, for so long.
    held = shop.row(second)
    now = sent_at(row) + KEPT
    shop.world.store.put_row(replace(held, available_at=now))
    shop.world.clock.set(now)

    seen = see(shop, first)

    assert seen.is_dead
    assert shop.row(first).state is State.DEAD
    assert shop.row(second).state is State.SCHEDULED
    assert shop.world.ledger.lane(row.schedule_id).holder == second


def see(shop: Shop, name: str) -> Seen:
    """Look at an occurrence as the last look does."""
    place, row = shop.world.workplace, shop.row(name)
    return see_to(place, row, Versions.of(place, [row]), shop.now)


def test_a_deadline_that_has_passed_does_not_change_the_reason() -> None:
    shop = one_time(retry=Retry(max_attempts=3, deadline_seconds=3600))
    name = shop.due()
    shop.fail(name, shop.run(name), BOOM)
    passes(shop, 2)
    leap(shop.world, sent_at(shop.row(name)) + KEPT)
    assert see(shop, name).is_dead
    assert shop.row(name).reason == "NEVER_CLAIMED"


def test_what_still_runs_is_looked_at_again_until_it_is_over() -> None:
    shop = one_time()
    name = shop.due()
    token = shop.run(name, seconds=3600)
    row = replace(shop.row(name), lease_expires_at=DUE + 9 * DAY)
    shop.world.store.put_row(row)
    leap(shop.world, DUE + LOOKED)
    passes(shop)
    assert checks(shop) == [DUE + LOOKED + LOOKED - MINUTE]

    leap(shop.world, DUE + 2 * LOOKED)
    passes(shop)
    assert checks(shop) == [DUE + 3 * LOOKED - MINUTE]

    shop.complete(name, token)
    leap(shop.world, DUE + 3 * LOOKED)
    assert unclaimed(passes(shop, 2)) == 0
    assert (shop.row(name).state, pending(shop)) == (State.SUCCEEDED, [])


def test_a_replay_of_long_after_is_found_by_what_let_it_go() -> None:
    shop = one_time()
    name = shop.due()
    end(shop, name)
    passes(shop, 5)
    leap(shop.world, DUE + 10 * DAY)
    passes(shop)
    replayed_at = shop.now
    replay_occurrence(shop.world.workplace, "acme", name)
    passes(shop, 3)
    assert (shop.row(name).state, pending(shop)) == (State.ENQUEUED, [])

    leap(shop.world, replayed_at + LOOKED - MINUTE)
    assert unclaimed(passes(shop)) == 0
    assert unclaimed(passes(shop, 2)) == 1
    assert shop.row(name).reason == "NEVER_CLAIMED"


def test_what_is_done_in_the_last_moment_has_one_winner() -> None:
    shop = one_time()
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    moment = Moment(1, after=False, action=lambda: claimed.append(shop.run(name)))
    claimed: list[str] = []
    ledger = shop.world.ledger

    class Claimed:
        def __getattr__(self, method: str) -> Any:
            port = getattr(ledger, method)
            if method != "do":
                return port
            return lambda deed: moment.call(port, deed)

    shop.world.ledger = Claimed()  # type: ignore[assignment]
    assert unclaimed(passes(shop)) == 0
    assert moment.reached
    assert shop.row(name).state is State.RUNNING
    assert checks(shop) == [DUE + LOOKED + HOUR]
    shop.complete(name, claimed[0])

    leap(shop.world, DUE + LOOKED + HOUR)
    passes(shop)
    assert (shop.row(name).state, pending(shop)) == (State.SUCCEEDED, [])


def expire(shop: Shop, name: str) -> None:
    key = shop.row(name).key
    del shop.world.store.rows[key.partition][key.sort]


def end(shop: Shop, name: str) -> None:
    shop.fail(name, shop.run(name), PERMANENT)


@pytest.mark.parametrize("become", [expire, end])
def test_what_is_over_or_gone_needs_no_further_look(
    become: Callable[[Shop, str], None],
) -> None:
    shop = one_time()
    registered(shop, Routing.EXTERNAL, f"{OWN}-theirs")
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    passes(shop)
    (check,) = pending(shop)
    assert (check.kind, check.number) == (DispatchKind.UNCLAIMED, 1)
    become(shop, name)
    passes(shop, 2)

    leap(shop.world, check.due)
    # Of a row that is gone that is certain 20 minutes later; it is parked meanwhile.
    assert unclaimed(passes(shop, 45)) == 0
    assert pending(shop) == []
