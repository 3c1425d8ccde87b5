"""The `Rates` port: who gets which place."""

from datetime import datetime, timedelta

from hourbell.domain.rates import Rate, RateKind
from hourbell.usecases.rate_port import MAX_MINUTES

from tests.conformance.samples import DUE, MINUTE
from tests.conformance.worlds import World

SECOND = timedelta(seconds=1)


def per_second(limit: int, owner: str = "acme#ring") -> Rate:
    return Rate(RateKind.DISPATCHES, owner, limit)


def per_minute(limit: int, owner: str = "acme") -> Rate:
    return Rate(RateKind.TRIGGERS, owner, limit)


def seconds(places: list[datetime | None]) -> list[int]:
    """Return how many seconds after DUE each place is."""
    return [(place - DUE) // SECOND for place in places if place is not None]


def test_who_finds_a_second_full_gets_the_next_one_with_room(world: World) -> None:
    places = world.rates.reserve(per_second(2), [DUE] * 5)
    assert seconds(places) == [0, 0, 1, 1, 2]
    assert seconds(world.rates.reserve(per_second(2), [DUE, DUE + SECOND])) == [2, 3]


def test_a_full_minute_is_followed_by_the_next(world: World) -> None:
    world.rates.reserve(per_second(1), [DUE] * 59)
    late = [DUE + 58 * SECOND, DUE + 59 * SECOND, DUE + 30 * SECOND]
    assert seconds(world.rates.reserve(per_second(1), late)) == [60, 61, 59]
    assert seconds(world.rates.reserve(per_second(1), [DUE])) == [62]


def test_in_their_own_minute_all_keep_their_instants(world: World) -> None:
    wanted = [DUE + n * SECOND for n in (59, 0, 0, 7)]
    assert world.rates.reserve(per_minute(4), wanted) == wanted


def test_who_comes_from_a_full_minute_is_spread_over_the_next(world: World) -> None:
    places = world.rates.reserve(per_minute(4), [DUE] * 10)
    # Four keep theirs; the n-th of a later minute has n/4 of the minute before it.
    assert seconds(places) == [0, 0, 0, 0, 60, 75, 90, 105, 120, 135]
    taken = world.rates.reserve(per_minute(4), [DUE, DUE + 2 * MINUTE + SECOND])
    assert seconds(taken) == [150, 121]


def test_places_before_a_later_wish_stay_free(world: World) -> None:
    world.rates.reserve(per_minute(1), [DUE + 3 * MINUTE])
    places = world.rates.reserve(per_minute(1), [DUE] * 5)
    assert seconds(places) == [0, 60, 120, 240, 300]


def test_rates_do_not_share_their_places(world: World) -> None:
    for rate in (
        per_minute(1),
        per_minute(1, "other"),
        per_second(1),
        per_second(1, "acme#other"),
        Rate(RateKind.CATCH_UP, "acme", 1),
    ):
        assert world.rates.reserve(rate, [DUE]) == [DUE]


def test_another_limit_counts_the_same_places(world: World) -> None:
    world.rates.reserve(per_second(2), [DUE] * 3)
    assert seconds(world.rates.reserve(per_second(1), [DUE])) == [2]
    assert seconds(world.rates.reserve(per_second(5), [DUE] * 4)) == [0, 0, 0, 1]


def test_a_raised_limit_opens_minutes_that_were_full(world: World) -> None:
    world.rates.reserve(per_minute(1), [DUE] * 3)
    assert seconds(world.rates.reserve(per_minute(2), [DUE] * 2)) == [0, 90]


def test_one_call_takes_places_in_a_bounded_number_of_minutes(world: World) -> None:
    places = world.rates.reserve(per_minute(1), [DUE] * (MAX_MINUTES + 2))
    assert seconds(places) == [60 * n for n in range(MAX_MINUTES)]
    assert places[MAX_MINUTES:] == [None, None]
    again = world.rates.reserve(per_minute(1), [DUE] * 2)
    assert seconds(again) == [60 * MAX_MINUTES, 60 * MAX_MINUTES + 60]


def test_nobody_wants_nothing(world: World) -> None:
    assert world.rates.reserve(per_second(1), []) == []
