"""The `Schedules` port: creating and reading."""

from dataclasses import replace

from hourbell.domain.definition import Schedule, VersionRef
from hourbell.usecases.ports import Creation

from tests.conformance import samples
from tests.conformance.worlds import World

ROOM = 100


def create(world: World, label: object = "one", quota: int = ROOM) -> Creation:
    return world.schedules.create(
        samples.schedule(label),
        samples.version(label),
        samples.planned(label),
        quota=quota,
    )


def create_as(world: World, schedule: Schedule, quota: int = ROOM) -> Creation:
    version = replace(samples.version(), schedule_id=schedule.schedule_id)
    row = replace(samples.planned(), schedule_id=schedule.schedule_id)
    return world.schedules.create(schedule, version, row, quota=quota)


def test_create_stores_definition_version_first_row_and_name(world: World) -> None:
    assert create(world) is Creation.CREATED

    row, version = samples.planned(), samples.version()
    assert world.schedules.find(row.schedule_id) == samples.schedule()
    stored = world.schedules.versions([version.ref], consistent=True)
    assert stored == {version.ref: version}
    assert world.timeline.read([row.key]) == {row.key: row}
    name = samples.schedule().name
    assert world.schedules.find_by_name("acme", name) == row.schedule_id
    assert world.schedules.count("acme") == 1


def test_create_of_a_taken_id_stores_nothing(world: World) -> None:
    create(world)
    other = replace(samples.schedule(), name="other")
    later = samples.planned(due=samples.DUE + samples.MINUTE)

    again = world.schedules.create(other, samples.version(number=2), later, quota=ROOM)

    assert again is Creation.EXISTS
    assert world.schedules.find(later.schedule_id) == samples.schedule()
    ref = VersionRef(later.schedule_id, 2)
    assert world.schedules.versions([ref], consistent=True) == {}
    assert world.timeline.read([later.key]) == {}
    assert world.schedules.find_by_name("acme", "other") is None
    assert world.schedules.count("acme") == 1


def test_create_twice_with_the_same_values_exists(world: World) -> None:
    answers = [create(world, quota=1), create(world, quota=1)]

    assert answers == [Creation.CREATED, Creation.EXISTS]


def test_a_name_is_taken_once_per_tenant(world: World) -> None:
    first = samples.schedule("first")
    same = replace(samples.schedule("second"), name=first.name)
    foreign = replace(samples.schedule("third"), name=first.name, tenant_id="other")

    assert create_as(world, first, quota=1) is Creation.CREATED
    assert create_as(world, same, quota=1) is Creation.NAME_TAKEN
    assert create_as(world, foreign, quota=1) is Creation.CREATED

    assert world.schedules.find(same.schedule_id) is None
    assert world.schedules.find_by_name("acme", first.name) == first.schedule_id
    assert world.schedules.find_by_name("other", first.name) == foreign.schedule_id
    assert world.schedules.count("acme") == 1


def test_a_full_quota_refuses_the_next_schedule(world: World) -> None:
    answers = [create(world, label, quota=2) for label in range(3)]

    assert answers == [Creation.CREATED, Creation.CREATED, Creation.QUOTA_FULL]
    assert world.schedules.count("acme") == 2
    refused = samples.schedule(2)
    assert world.schedules.find(refused.schedule_id) is None
    assert world.schedules.find_by_name("acme", refused.name) is None
    assert world.timeline.read([samples.planned(2).key]) == {}
    assert create(world, 2, quota=3) is Creation.CREATED


def test_a_quota_of_nothing_has_no_room(world: World) -> None:
    assert create(world, quota=0) is Creation.QUOTA_FULL
    assert world.schedules.count("acme") == 0


def test_nobody_has_an_unknown_name(world: World) -> None:
    create(world)

    assert world.schedules.find_by_name("acme", "nobody") is None
    assert world.schedules.find_by_name("other", samples.schedule().name) is None


def test_optional_fields_may_be_missing(world: World) -> None:
    schedule = replace(samples.schedule(), description="", tags={}, home_region="")
    version = replace(samples.version(), effective_to=None, reason=None, body_hash=None)

    world.schedules.create(schedule, version, samples.planned(), quota=ROOM)

    assert world.schedules.find(schedule.schedule_id) == schedule
    found = world.schedules.versions([version.ref], consistent=False)
    assert found[version.ref] == version


def test_find_of_an_unknown_id_is_none(world: World) -> None:
    assert world.schedules.find(samples.schedule_id("nobody")) is None


def test_versions_returns_those_that_exist_and_reads_duplicates_once(
    world: World,
) -> None:
    for label in range(3):
        create(world, label)
    known = [samples.version(label).ref for label in range(3)]
    unknown = VersionRef(known[0].schedule_id, 2)

    found = world.schedules.versions([*known, *known, unknown], consistent=True)

    assert found == {ref: samples.version(n) for n, ref in enumerate(known)}


def test_versions_of_nothing_is_nothing(world: World) -> None:
    assert world.schedules.versions([], consistent=True) == {}


def test_versions_takes_more_than_one_batch(world: World) -> None:
    create(world, "real")
    refs = [VersionRef(samples.schedule_id(n), 1) for n in range(250)]
    real = samples.version("real").ref

    found = world.schedules.versions(iter([*refs, real]), consistent=False)

    assert list(found) == [real]
