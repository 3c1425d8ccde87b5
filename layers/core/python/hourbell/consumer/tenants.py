"""Who signs: of a queue that many tenants share, each call as its message's tenant.

A message only says which credentials to try. Whether the occurrence is that tenant's,
the API decides by who signed.
"""

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from itertools import islice
from typing import Final

from hourbell.consumer.clock import Backoff, Clock
from hourbell.consumer.errors import HeldOff
from hourbell.consumer.http import CredentialsSource, NoCredentials, Reply, Transport

LOGGER = logging.getLogger("hourbell.consumer")

TENANT: Final = re.compile(r"[a-z][a-z0-9-]{1,62}")
CACHED_TENANTS: Final = 1_000
HOLD_OFF: Final = Backoff(base_seconds=5.0, cap_seconds=900.0)
"""Between tries of a tenant whose calls cannot be signed, or are refused."""

Sessions = Callable[[str], CredentialsSource]
"""Returns what has a tenant's credentials, such as a session of boto3 or botocore."""

_REFUSED: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class TenantTransports:
    """A way to the API for each tenant, of which those used last are kept."""

    def __init__(
        self,
        make: Callable[[str], Transport],
        clock: Clock,
        most: int = CACHED_TENANTS,
    ) -> None:
        """Remember how a tenant's is made.

        Args:
            make: returns a tenant's, when it is needed first; may raise anything. It is
                asked again later then, and where what it returned cannot sign.
            clock: tells how long a tenant is left alone.
            most: how many are kept. One that was dropped is made again. Who is left
                alone is kept for longer than others.
        """
        self._make = make
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    def of(self, tenant: str) -> Transport:
        """Return a tenant's.

        Its requests raise HeldOff, besides what those of a transport raise: at once
        while the tenant is left alone.

        Raises:
            HeldOff: there can be no such tenant.
        """
        if TENANT.fullmatch(tenant) is None:
            # What a role's ARN is made of must not hold anything else.
            LOGGER.error("%r is no tenant's name: its messages are left", tenant)
            raise HeldOff(tenant, HOLD_OFF.cap_seconds, "that is no tenant's name")
        with self._lock:
            caller = self._callers.get(tenant)
            if caller is None:
                caller = _Caller(tenant, self._make, self._clock)
                self._callers[tenant] = caller
            self._callers.move_to_end(tenant)
            if len(self._callers) > self._most:
                del self._callers[self._least_needed()]
        return caller

    def _least_needed(self) -> str:
        """Return who was used longest ago, but nobody that fails, if there is another.

        Who is forgotten while it fails would be tried as often as at first.
        """
        others = list(islice(self._callers.items(), self._most))
        sound = (name for name, caller in others if not caller.is_failing())
        return next(sound, others[0][0])

    def held_off(self, tenant: str) -> float:
        """Return for how many seconds a tenant is left alone, 0 if it is not."""
        with self._lock:
            caller = self._callers.get(tenant)
        return 0.0 if caller is None else caller.held_off()

    def all_held_off(self) -> dict[str, float]:
        """Return the tenants that are left alone, each with the seconds left."""
        with self._lock:
            callers = list(self._callers.items())
        found = {tenant: caller.held_off() for tenant, caller in callers}
        return {tenant: seconds for tenant, seconds in found.items() if seconds}


class _Caller:
    """One tenant's transport, and the patience with it."""

    def __init__(
        self, tenant: str, make: Callable[[str], Transport], clock: Clock
    ) -> None:
        self._tenant = tenant
        self._make = make
        self._clock = clock
        self._making = threading.Lock()
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0

    def held_off(self) -> float:
        """Return for how many seconds it is left alone."""
        with self._lock:
            return max(self._until - self._clock.now(), 0.0)

    def is_failing(self) -> bool:
        """Whether it is left alone, or was so not long ago and not heard since."""
        with self._lock:
            end = self._until + HOLD_OFF.cap_seconds
            return self._failures > 0 and self._clock.now() < end

    def post(self, path: str, body: bytes) -> Reply:
        """Send one request as the tenant, unless it is left alone now.

        Raises:
            HeldOff: it is, or there are no credentials.
            OSError: there was no answer.
        """
        seconds = self.held_off()
        if seconds:
            raise HeldOff(self._tenant, seconds, "it is left alone for now")
        try:
            reply = self._made().post(path, body)
        except NoCredentials as error:
            # Who was to sign may be somebody else by the next try.
            with self._making:
                self._transport = None
            seconds = self._hold_off(f"cannot be signed for: {error}")
            raise HeldOff(self._tenant, seconds, str(error)) from error
        if reply.status in _REFUSED:
            self._hold_off(f"is refused: HTTP {reply.status} {reply.text[:200]}")
        elif reply.status == HTTPStatus.OK:
            with self._lock:
                self._failures, self._until = 0, 0.0
        return reply

    def _made(self) -> Transport:
        """Return the transport, made anew after each call that it could not sign."""
        with self._making:
            if self._transport is None:
                try:
                    self._transport = self._make(self._tenant)
                except Exception as error:
                    # Whatever the maker of sessions does is this tenant's matter only.
                    raise NoCredentials(f"{type(error).__name__}: {error}") from error
            return self._transport

    def _hold_off(self, why: str) -> float:
        """Leave the tenant alone, longer each time; return for how long."""
        with self._lock:
            now = self._clock.now()
            if now < self._until:
                # Said by another call that was under way: it is one failure.
                return self._until - now
            self._failures += 1
            chance = 0.5 + self._clock.chance() / 2
            seconds = HOLD_OFF.seconds(self._failures, chance)
            self._until = now + seconds
        LOGGER.error("tenant %s %s; again in %.0f s", self._tenant, why, seconds)
        return seconds
