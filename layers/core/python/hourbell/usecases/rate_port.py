"""The port of the rates; the conformance suite holds its implementations to it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from hourbell.domain.rates import Rate

MAX_MINUTES: Final = 200
"""In how many minutes one call takes places at most."""


class Rates(Protocol):
    """The places of each rate that are taken."""

    def reserve(self, rate: Rate, wanted: Sequence[datetime]) -> list[datetime | None]:
        """Take a place for each instant: the first at or after it that is free.

        However many callers there are, no slot of a rate ever gives out more places
        than the limit that is asked with. Places are not given back: what is taken and
        not used, after a crash or an error, stays empty. Those who want the same
        instant are served in their order.

        Returns:
            the places, in the order of `wanted`. None for the last ones when places
            would have to be taken in more than MAX_MINUTES minutes; so no more than
            MAX_MINUTES instants are all served.

        Raises:
            Transient: the store did not answer in time; some places may be taken.
        """
        ...
