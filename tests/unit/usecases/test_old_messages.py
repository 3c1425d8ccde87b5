"""Messages of earlier sends, which come while an occurrence waits for its next one."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.definition import Quotas
from hourbell.domain.occurrence import State
from hourbell.domain.work import Slot
from hourbell.usecases.work_values import Answer, WaitReason

from tests.unit.usecases.working import Shop

SECOND = timedelta(seconds=1)
COPIES = 5


def held_for_a_place() -> tuple[Shop, str]:
    """Return an occurrence that waits for the tenant's only place, sent once so far."""
    shop = Shop("30 13 * * *", quotas=Quotas(running=1))
    name = shop.due()
    other = Slot("acme", 0, name.replace(".v1.", ".v9."))
    shop.world.store.slots[other.tenant_id, other.number] = other
    (answer,) = shop.claim(name, send=1)
    assert answer.reason == WaitReason.CONCURRENCY
    return shop, name


@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_they_bring_no_other_message(is_acknowledged: bool) -> None:
    shop, name = held_for_a_place()
    if is_acknowledged:
        shop.tick()
    state = State.ENQUEUED if is_acknowledged else State.SCHEDULED
    before = shop.row(name)
    assert before.state is state

    answers = [shop.claim(name, send=1)[0] for _ in range(COPIES)]

    assert {(each.answer, each.reason) for each in answers} == {
        (Answer.WAIT, WaitReason.TOO_EARLY)
    }
    assert shop.row(name) == before
    shop.tick()
    assert shop.sent(name) == 2


@pytest.mark.parametrize("send", [None, 2, 3])
@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_what_may_be_the_latest_is_sent_again(
    is_acknowledged: bool, send: int | None
) -> None:
    shop, name = held_for_a_place()
    if is_acknowledged:
        shop.tick()
    waits = shop.row(name).waits

    (answer,) = shop.claim(name, send=send)

    # Whoever is told to wait deletes the message.
    assert (answer.answer, answer.reason) == (Answer.WAIT, WaitReason.TOO_EARLY)
    assert shop.row(name).waits == waits + 1
    shop.tick()
    assert shop.sent(name) == (3 if is_acknowledged else 2)


def test_they_serve_as_well_as_any_once_it_is_time() -> None:
    shop, name = held_for_a_place()
    shop.world.store.slots.clear()
    shop.after(60 * SECOND)

    (answer,) = shop.claim(name, send=1)

    assert answer.answer is Answer.RUN


def test_they_still_meet_a_cancel() -> None:
    shop, name = held_for_a_place()
    canceled = replace(shop.row(name), state=State.CANCELED, reason="CANCELED")
    shop.world.store.put_row(canceled)

    assert shop.claim(name, send=1)[0].answer is Answer.SKIP
