"""The dry run of a create."""

from datetime import timedelta

import pytest
from hourbell.domain.errors import Conflict
from hourbell.usecases.create_schedule import rehearse_create

from tests.unit.usecases.test_create_schedule import ANN, SOON, create, new, registry
from tests.unit.usecases.world import SECOND, START, World


@pytest.fixture
def world() -> World:
    return World()


class TestRehearsal:
    def test_nothing_is_stored(self, world: World) -> None:
        seen = rehearse_create(registry(world), ANN, new(SOON), START)
        assert seen.refusals == ()
        assert seen.first.scheduled_for == START + 5 * SECOND
        assert not world.store.schedules
        assert not world.rows()

    def test_what_was_done_before_is_not_refused(self, world: World) -> None:
        request = new(SOON, idempotency_key="k1")
        created = create(world, request)
        later = START + timedelta(days=1)
        seen = rehearse_create(registry(world), ANN, request, later)
        assert (seen.refusals, seen.version) == ((), created.version)

    def test_a_key_of_another_request_is_a_conflict(self, world: World) -> None:
        create(world, new(idempotency_key="k1"))
        request = new(idempotency_key="k1", body_hash="h2")
        with pytest.raises(Conflict, match="Idempotency-Key"):
            rehearse_create(registry(world), ANN, request, START)
