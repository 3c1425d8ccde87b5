"""Quotas of schedules whose places are granted to sub-counters, beside exact ones."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database, DynamoSchedules, places
from hourbell.adapters.dynamodb.count_items import (
    SLOTS,
    beginning,
    granting,
    slot_item_key,
)
from hourbell.adapters.dynamodb.places import chunk_of
from hourbell.adapters.dynamodb.schedule_items import definition_key
from hourbell.adapters.dynamodb.transactions import first_refused
from hourbell.domain.definition import ScheduleState
from hourbell.domain.errors import Transient
from hourbell.domain.shards import stable_hash
from hourbell.usecases.ports import Creation, Schedules, Write

from tests.conformance import samples
from tests.conformance.conftest import KINDS
from tests.conformance.test_races import THREADS, contending
from tests.conformance.worlds import dynamo_world, memory_world

ABOVE = 9
CREATED, FULL = Creation.CREATED, Creation.QUOTA_FULL


@pytest.fixture(params=KINDS)
def schedules(request: pytest.FixtureRequest) -> Schedules:
    """The port, with sub-counters for quotas above ABOVE where there are any."""
    if request.param == "memory":
        return memory_world().schedules
    return escrowed(request.getfixturevalue(f"{request.param}_database"))


def escrowed(database: Database) -> Schedules:
    return dynamo_world(database, escrow_above=ABOVE).schedules


class Tenant:
    """A tenant that creates and cancels schedules.

    Attributes:
        alive: labels of those that count.
    """

    def __init__(self, schedules: Schedules) -> None:
        self.schedules = schedules
        self.alive: list[int] = []
        self._labels = count()

    def create(self, quota: int) -> Creation:
        label = next(self._labels)
        answer = create(self.schedules, label, quota)
        if answer is CREATED:
            self.alive.append(label)
        return answer

    def fill(self, quota: int) -> int:
        """Create until it is refused; return how many were created."""
        for created in count():
            if self.create(quota) is FULL:
                return created
        raise AssertionError

    def cancel(self, place: int = 0) -> None:
        change = samples.succession(self.alive.pop(place), ScheduleState.CANCELED)
        assert self.schedules.succeed(change) is Write.APPLIED

    def count(self) -> int:
        return self.schedules.count("acme")


def create(schedules: Schedules, label: int, quota: int) -> Creation:
    return schedules.create(
        samples.schedule(label),
        samples.current(label),
        samples.planned(label),
        quota=quota,
    )


@pytest.fixture
def tenant(schedules: Schedules) -> Tenant:
    return Tenant(schedules)


@pytest.mark.slow
def test_a_large_quota_is_used_up_exactly(tenant: Tenant) -> None:
    for expected in range(1, 21):
        assert tenant.create(20) is CREATED
        assert tenant.count() == expected
    assert [tenant.create(20) for _ in range(SLOTS)] == [FULL] * SLOTS
    assert tenant.count() == 20


def test_what_is_created_is_found_as_ever(schedules: Schedules) -> None:
    assert create(schedules, 1, quota=20) is CREATED
    assert schedules.find(samples.schedule_id(1)) == samples.schedule(1)
    assert create(schedules, 1, quota=20) is Creation.EXISTS
    named = replace(samples.schedule(2), name=samples.name_of(1))
    taken = schedules.create(
        named, samples.current(2), samples.planned(2), quota=ABOVE + 1
    )
    assert taken is Creation.NAME_TAKEN
    assert schedules.count("acme") == 1


def test_each_cancel_makes_room_for_one(tenant: Tenant) -> None:
    tenant.fill(20)
    for _ in range(5):
        tenant.cancel()
    assert tenant.count() == 15
    assert tenant.fill(20) == 5


def test_a_schedule_that_was_edited_gives_its_place_back_too(tenant: Tenant) -> None:
    tenant.fill(20)
    edited = samples.succession(tenant.alive[0])
    tenant.schedules.succeed(edited)
    heir = replace(edited.version, effective_from=samples.NOW)
    tenant.schedules.take_over(heir, edited.ended.ref, None)
    canceled = samples.succession(tenant.alive[0], ScheduleState.CANCELED, to=3)
    assert tenant.schedules.succeed(canceled) is Write.APPLIED
    assert tenant.count() == 19
    assert tenant.fill(20) == 1


def test_a_lowered_quota_refuses_until_enough_is_canceled(tenant: Tenant) -> None:
    for _ in range(15):
        tenant.create(20)
    assert [tenant.create(12) for _ in range(SLOTS)] == [FULL] * SLOTS
    for _ in range(3):
        tenant.cancel()
    assert [tenant.create(12) for _ in range(SLOTS)] == [FULL] * SLOTS
    tenant.cancel()
    assert tenant.fill(12) == 1
    assert tenant.fill(20) == 8
    assert tenant.count() == 20


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 5, 20])
def test_a_quota_lowered_to_one_counter_counts_all(tenant: Tenant, before: int) -> None:
    for _ in range(before):
        tenant.create(20)
    assert tenant.fill(ABOVE) == max(ABOVE - before, 0)
    while tenant.count() > ABOVE - 2:
        tenant.cancel()
    assert tenant.fill(ABOVE) == 2
    assert tenant.count() == ABOVE


@pytest.mark.slow
def test_a_quota_raised_above_one_counter_counts_what_was(tenant: Tenant) -> None:
    assert tenant.fill(ABOVE) == ABOVE
    assert tenant.fill(20) == 20 - ABOVE
    for _ in range(ABOVE + 3):
        tenant.cancel()
    assert tenant.count() == 20 - ABOVE - 3
    assert tenant.fill(20) == ABOVE + 3


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3])
def test_any_order_of_changes_is_counted_as_by_one_counter(
    schedules: Schedules, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "chunk_of", lambda _quota: chunk)
    random = Random(chunk)
    tenant, quota = Tenant(schedules), 20
    for _ in range(60):
        if random.random() < 0.15:
            quota = random.choice([0, 4, ABOVE, ABOVE + 1, 12, 20])
        if tenant.alive and random.random() < 0.3:
            tenant.cancel(random.randrange(len(tenant.alive)))
        else:
            expected = CREATED if len(tenant.alive) < quota else FULL
            assert tenant.create(quota) is expected
        assert tenant.count() == len(tenant.alive)


def labels_of(slot: int) -> Iterator[int]:
    """Yield labels whose schedules look for a place in a slot first."""
    for label in count():
        if stable_hash(samples.schedule_id(label)) % SLOTS == slot:
            yield label


def test_free_places_of_a_former_quota_are_void(
    moto_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "chunk_of", lambda _quota: 3)
    schedules = escrowed(moto_database)
    first, second = labels_of(1), labels_of(2)
    assert create(schedules, next(first), quota=15) is CREATED
    for _ in range(20):
        assert create(schedules, next(second), quota=30) is CREATED
    # Slot 1 has two places, granted when the quota was this very one.
    assert create(schedules, next(first), quota=15) is FULL
    assert schedules.count("acme") == 21
    assert create(schedules, next(first), quota=30) is CREATED


def test_a_grant_that_is_read_of_its_slot_alone_makes_no_count_below_zero(
    moto_database: Database,
) -> None:
    schedules, control = escrowed(moto_database), moto_database.tables.control
    assert create(schedules, 0, ABOVE + 1) is CREATED
    # As if the slot had been read after it, and the counter before.
    moto_database.client.update_item(
        TableName=control,
        Key=slot_item_key("acme", 0),
        UpdateExpression="SET granted = :many, used = :none, #schema = :one",
        ExpressionAttributeNames={"#schema": "schema"},
        ExpressionAttributeValues={
            ":many": {"N": "40"},
            ":none": {"N": "0"},
            ":one": {"N": "1"},
        },
    )
    assert schedules.count("acme") == 0


def test_what_is_granted_during_a_change_of_the_quota_is_void_too(
    moto_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "chunk_of", lambda _quota: 3)
    schedules = escrowed(moto_database)
    first, second = labels_of(1), labels_of(2)
    assert create(schedules, next(second), quota=15) is CREATED
    rivals = [next(first)]

    def overtaken(*arguments: Any) -> Any:
        while rivals:
            # All slots are closed: this grant opens one again.
            assert create(schedules, rivals.pop(), quota=15) is CREATED
        return beginning(*arguments)

    monkeypatch.setattr(places, "beginning", overtaken)
    for _ in range(20):
        assert create(schedules, next(second), quota=30) is CREATED
    assert create(schedules, next(first), quota=15) is FULL
    assert schedules.count("acme") == 22


def test_nothing_is_granted_under_a_quota_that_was_changed_just_before(
    moto_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "chunk_of", lambda _quota: 3)
    schedules = escrowed(moto_database)
    first, second = labels_of(1), labels_of(2)
    assert create(schedules, next(second), quota=15) is CREATED
    rivals = [next(second)]

    def overtaken(*arguments: Any) -> Any:
        while rivals:
            assert create(schedules, rivals.pop(), quota=30) is CREATED
        return granting(*arguments)

    monkeypatch.setattr(places, "granting", overtaken)
    assert create(schedules, next(first), quota=15) is CREATED
    for _ in range(14):
        assert create(schedules, next(second), quota=30) is CREATED
    assert create(schedules, next(first), quota=15) is FULL
    assert schedules.count("acme") == 17


def test_places_granted_for_a_create_that_was_cut_short_are_used(
    moto_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = escrowed(moto_database)
    tenant = Tenant(schedules)
    tenant.fill(19)
    with monkeypatch.context() as patched:
        patched.setattr(places, "first_refused", _granted_and_cut_short)
        with pytest.raises(Transient):
            create(schedules, 99, quota=20)
    assert schedules.count("acme") == 19
    assert tenant.fill(20) == 1


def _granted_and_cut_short(database: Any, members: Any, backoff: Any) -> None:
    first_refused(database, members, backoff)
    if len(members) == 2:
        raise Transient("the process ends")


def test_a_cancel_gives_back_to_the_slot_that_it_is_from(
    moto_database: Database,
) -> None:
    tenant = Tenant(escrowed(moto_database))
    for _ in range(6):
        tenant.create(20)
    slots = [slot_of(moto_database, label) for label in tenant.alive]
    used = [used_of(moto_database, slot) for slot in range(SLOTS)]
    assert used == [slots.count(slot) for slot in range(SLOTS)]
    tenant.cancel()
    used[slots[0]] -= 1
    assert [used_of(moto_database, slot) for slot in range(SLOTS)] == used


def slot_of(database: Database, label: int) -> int:
    item = database.client.get_item(
        TableName=database.tables.schedules,
        Key=definition_key(samples.schedule_id(label)),
    )["Item"]
    return int(item["slot"]["N"])


def used_of(database: Database, slot: int) -> int:
    answer = database.client.get_item(
        TableName=database.tables.control, Key=slot_item_key("acme", slot)
    )
    return int(answer["Item"]["used"]["N"]) if "Item" in answer else 0


@pytest.mark.parametrize("quota", [10_001, 12_345, 1_000_000, 20_000_000])
def test_all_slots_are_granted_one_percent_ahead_at_most(quota: int) -> None:
    assert 0.9 < SLOTS * chunk_of(quota) / (quota / 100) <= 1


@pytest.mark.slow
@pytest.mark.engine
def test_many_at_once_use_a_large_quota_up_and_no_more(
    engine_database: Database,
) -> None:
    schedules = DynamoSchedules(contending(engine_database), escrow_above=ABOVE)

    def work(label: int) -> Creation:
        return create(schedules, label, quota=100)

    with ThreadPoolExecutor(THREADS) as pool:
        answers = Counter(pool.map(work, range(200)))

    assert set(answers) == {CREATED, FULL}
    assert 99 <= answers[CREATED] <= 100
    assert schedules.count("acme") == answers[CREATED]


@pytest.mark.engine
def test_who_knows_a_former_quota_never_goes_beyond_the_larger(
    engine_database: Database,
) -> None:
    schedules = DynamoSchedules(contending(engine_database), escrow_above=ABOVE)

    def work(label: int) -> Creation:
        # Whoever is late goes by the smaller one.
        return create(schedules, label, quota=40 if label % 20 else 30)

    with ThreadPoolExecutor(THREADS) as pool:
        created = list(pool.map(work, range(80))).count(CREATED)

    assert 39 <= created <= 40
    assert schedules.count("acme") == created
    assert create(schedules, 81, quota=30) is FULL


@pytest.mark.slow
@pytest.mark.engine
def test_creates_and_cancels_at_once_leave_exactly_what_is_there(
    engine_database: Database,
) -> None:
    schedules = DynamoSchedules(contending(engine_database), escrow_above=ABOVE)
    for label in range(40):
        create(schedules, label, quota=50)

    def work(label: int) -> bool:
        if label < 40:
            change = samples.succession(label, ScheduleState.CANCELED)
            return schedules.succeed(change) is not Write.APPLIED
        return create(schedules, label, quota=50) is CREATED

    with ThreadPoolExecutor(THREADS) as pool:
        created = sum(pool.map(work, (n + 40 * k for n in range(40) for k in (0, 1))))

    assert schedules.count("acme") == created
    assert created >= 10
