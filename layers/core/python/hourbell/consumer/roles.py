"""A role for each tenant, assumed when a message of the tenant comes."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from botocore.config import Config
from botocore.credentials import Credentials, DeferredRefreshableCredentials
from botocore.session import Session

PLACE: Final = "{tenant}"
"""Stands for the tenant's id in ARNs, external ids and values of tags."""
SHORTEST_SECONDS: Final = 1_800
"""Credentials are renewed from a quarter of an hour before their end on."""
LONGEST_SECONDS: Final = 43_200
FAILED_SECONDS: Final = 2.0
"""For how long a role that could not be assumed is not asked for again.

Calls of a tenant wait for one another here: without it each of them would wait for a
failure of its own. Shorter than a tenant is left alone at least.
"""


class StsClient(Protocol):
    """The call of an STS client that is made."""

    def assume_role(self, **members: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """Return credentials of a role."""
        ...


class AssumedRoles:
    """Credentials of tenants, by `sts:AssumeRole`; renewed before they run out."""

    def __init__(
        self,
        role_arn: str,
        *,
        external_id: str | None = None,
        tags: Mapping[str, str] | None = None,
        session_name: str = "hourbell-consumer",
        duration_seconds: int = 3_600,
        client: StsClient | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Tell which roles there are; none is assumed yet.

        Args:
            role_arn: with `{tenant}` where the tenant's id stands, such as
                `arn:aws:iam::111122223333:role/hourbell-tenant-{tenant}`.
            external_id: that the roles ask for; may hold `{tenant}`.
            tags: of the session, name -> value, which may hold `{tenant}`. The roles
                must allow `sts:TagSession` then.
            session_name: seen in the roles' logs.
            duration_seconds: 1,800 to 43,200, as far as the roles allow it; who has
                assumed a role itself, as Lambda functions have, gets 3,600 at most.
            client: of STS; one with the environment's credentials by default.
            now: seconds since some moment.

        Raises:
            ValueError: a value does not hold; the message names it.
        """
        if PLACE not in role_arn:
            raise ValueError(
                f"role_arn is {role_arn!r}, without {PLACE}: a role is a principal of"
                " one tenant at most."
            )
        if not SHORTEST_SECONDS <= duration_seconds <= LONGEST_SECONDS:
            raise ValueError(
                f"duration_seconds is {duration_seconds}; allowed is"
                f" {SHORTEST_SECONDS} to {LONGEST_SECONDS}."
            )
        self._role_arn = role_arn
        self._external_id = external_id
        self._tags = dict(tags or {})
        self._session_name = session_name
        self._seconds = duration_seconds
        self._client = client or _client()
        self._now = now

    def __call__(self, tenant: str) -> "AssumedRole":
        """Return what has the tenant's credentials; they are got at their first use."""
        failed: tuple[float, Exception] | None = None

        def renew() -> dict[str, Any]:
            # One thread at a time: credentials have a lock.
            nonlocal failed
            if failed is not None and self._now() < failed[0] + FAILED_SECONDS:
                raise failed[1]
            try:
                found = self._client.assume_role(**self._wish(tenant))["Credentials"]
            except Exception as error:
                failed = self._now(), error
                raise
            return {
                "access_key": found["AccessKeyId"],
                "secret_key": found["SecretAccessKey"],
                "token": found["SessionToken"],
                "expiry_time": found["Expiration"].isoformat(),
            }

        return AssumedRole(DeferredRefreshableCredentials(renew, "assume-role"))

    def _wish(self, tenant: str) -> dict[str, Any]:
        wish: dict[str, Any] = {
            "RoleArn": self._role_arn.replace(PLACE, tenant),
            "RoleSessionName": self._session_name,
            "DurationSeconds": self._seconds,
        }
        if self._external_id is not None:
            wish["ExternalId"] = self._external_id.replace(PLACE, tenant)
        if self._tags:
            wish["Tags"] = [
                {"Key": name, "Value": value.replace(PLACE, tenant)}
                for name, value in self._tags.items()
            ]
        return wish


class AssumedRole:
    """Has the credentials of one role."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def get_credentials(self) -> Credentials:
        """Return what renews itself when it is used."""
        return self._credentials


def _client() -> Any:  # noqa: ANN401 - clients have no type of their own
    """Return a client of STS that is soon done, for messages wait for it."""
    session = Session()
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region")
    config = Config(
        connect_timeout=3,
        read_timeout=5,
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=20,
    )
    return session.create_client("sts", region_name=region, config=config)
