"""The `Schedules` port."""

from dataclasses import replace

from hourbell.domain.definition import VersionRef
from hourbell.usecases.ports import Write

from tests.conformance import samples
from tests.conformance.worlds import World


def create(world: World, label: object = "one") -> Write:
    return world.schedules.create(
        samples.schedule(label), samples.version(label), samples.planned(label)
    )


def test_create_stores_definition_version_and_first_row(world: World) -> None:
    assert create(world) is Write.APPLIED

    row, version = samples.planned(), samples.version()
    assert world.schedules.find(row.schedule_id) == samples.schedule()
    stored = world.schedules.versions([version.ref], consistent=True)
    assert stored == {version.ref: version}
    assert world.timeline.read([row.key]) == {row.key: row}


def test_create_of_a_taken_id_stores_nothing(world: World) -> None:
    create(world)
    other = replace(samples.schedule(), name="other")
    later = samples.planned(due=samples.DUE + samples.MINUTE)

    again = world.schedules.create(other, samples.version(number=2), later)

    assert again is Write.EXISTS
    assert world.schedules.find(later.schedule_id) == samples.schedule()
    ref = VersionRef(later.schedule_id, 2)
    assert world.schedules.versions([ref], consistent=True) == {}
    assert world.timeline.read([later.key]) == {}


def test_create_twice_with_the_same_values_exists(world: World) -> None:
    assert [create(world), create(world)] == [Write.APPLIED, Write.EXISTS]


def test_optional_fields_may_be_missing(world: World) -> None:
    schedule = replace(samples.schedule(), description="", tags={}, home_region="")
    version = replace(samples.version(), effective_to=None, reason=None, body_hash=None)

    world.schedules.create(schedule, version, samples.planned())

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
