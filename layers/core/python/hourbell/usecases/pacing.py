"""Give occurrences places in time, where rates bound how many go at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from hourbell.domain.errors import Transient
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.rates import Rate, RateKind
from hourbell.usecases.judging import Case, going
from hourbell.usecases.rate_port import Rates
from hourbell.usecases.routes import Routes

# How often those whom one rate moved are asked about at the others. Each round leads
# to later instants, where less is taken; so it ends long before.
MAX_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class Wish:
    """When somebody would go if there were no rates.

    Attributes:
        rates: those that must have a place for it, all at the same instant.
    """

    at: datetime
    rates: tuple[Rate, ...]


@dataclass(frozen=True, slots=True)
class Paced:
    """What became of rows that are to go.

    Attributes:
        rows: with the instants that they got: those that have rates, but for `waiting`.
        moved: those that a rate moved to a later instant.
        waiting: those without a place for now; nothing must be written of them.
    """

    rows: dict[RowKey, Occurrence] = field(default_factory=dict)
    moved: frozenset[RowKey] = frozenset()
    waiting: frozenset[RowKey] = frozenset()

    def __or__(self, other: "Paced") -> "Paced":
        """Return both together."""
        return Paced(
            self.rows | other.rows,
            self.moved | other.moved,
            self.waiting | other.waiting,
        )


def pace(
    port: Rates, rows: Iterable[tuple[Occurrence, tuple[Rate, ...]]], now: datetime
) -> Paced:
    """Give rows that run their places; without rates the port is not called.

    What a rate bounds goes now at the earliest, so that late ones do not go at once.

    Args:
        port: the rates' places.
        rows: each with its rates; SCHEDULED or DEFERRED, with `available_at`.
        now: the current instant.
    """
    asked = [(row, rates) for row, rates in rows if rates]
    wishes = [wish_of(row, rates, now) for row, rates in asked]
    paced: dict[RowKey, Occurrence] = {}
    moved: set[RowKey] = set()
    waiting: set[RowKey] = set()
    for (row, _), wish, place in zip(asked, wishes, reserve(port, wishes), strict=True):
        key = row.key
        if place is None:
            waiting.add(key)
            continue
        paced[key] = going(row, place, now)
        if place != wish.at:
            moved.add(key)
    return Paced(paced, frozenset(moved), frozenset(waiting))


def pace_cases(
    port: Rates,
    routes: Routes,
    going: Iterable[tuple[Occurrence, Case]],
    now: datetime,
) -> Paced:
    """Give rows that run their places, as the rates of their cases' versions are."""
    rows = [
        (row, routes.rates(case.version, overdue=row.misfire))
        for row, case in going
        if case.version is not None
    ]
    return pace(port, rows, now)


def wish_of(row: Occurrence, rates: tuple[Rate, ...], now: datetime) -> Wish:
    """Return what a row wishes."""
    instant = row.available_at or row.scheduled_for
    if any(rate.kind is not RateKind.CATCH_UP for rate in rates):
        instant = max(instant, ceil_second(now))
    return Wish(instant, rates)


def reserve(port: Rates, wishes: Sequence[Wish]) -> list[datetime | None]:
    """Find for each wish the instant at which all of its rates have a place.

    A place is taken at each rate, the tightest first; whom a rate moves to another
    slot of one that was asked before asks there again. So no slot of any rate is ever
    over its limit, though places that were left again stay empty.

    Returns:
        the instants, in order; None for those that found none now.
    """
    places: list[datetime | None] = [wish.at for wish in wishes]
    held: list[dict[Rate, datetime]] = [{} for _ in wishes]
    subjects: dict[Rate, list[int]] = {}
    for index, wish in enumerate(wishes):
        for rate in wish.rates:
            subjects.setdefault(rate, []).append(index)
    tightest_first = sorted(subjects, key=lambda rate: (rate.per_minute, rate.name))
    for _ in range(MAX_ROUNDS):
        rounds = [
            _round(port, rate, subjects[rate], places, held) for rate in tightest_first
        ]
        if not any(rounds):
            break
    return [
        place if _is_held(wish, place, got) else None
        for wish, place, got in zip(wishes, places, held, strict=True)
    ]


def _round(
    port: Rates,
    rate: Rate,
    subjects: Sequence[int],
    places: list[datetime | None],
    held: Sequence[dict[Rate, datetime]],
) -> bool:
    """Take places of a rate for those who lack one; say whether there were any."""
    asking = {
        index: place
        for index in subjects
        if (place := places[index]) is not None
        and held[index].get(rate) != rate.slot(place)
    }
    if not asking:
        return False
    given = _ask(port, rate, list(asking.values()))
    for index, place in zip(asking, given, strict=True):
        places[index] = place
        if place is not None:
            held[index][rate] = rate.slot(place)
    return True


def _is_held(wish: Wish, place: datetime | None, got: dict[Rate, datetime]) -> bool:
    return place is not None and all(
        got.get(rate) == rate.slot(place) for rate in wish.rates
    )


def _ask(port: Rates, rate: Rate, wanted: Sequence[datetime]) -> list[datetime | None]:
    """Take places of one rate; None for all when it does not answer.

    Others must not wait for what one tenant's rate is about.
    """
    try:
        return port.reserve(rate, wanted)
    except Transient:
        return [None] * len(wanted)
