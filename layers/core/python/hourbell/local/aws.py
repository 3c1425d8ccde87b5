"""boto3 sessions that reach the engine and nothing else."""

import os
from typing import Any

import boto3
from botocore.config import Config
from botocore.session import Session as BotocoreSession

MAX_CONNECTIONS = 32
TIMEOUT_SECONDS = 60
# Nothing of the user's: no profile, no files.
ISOLATED = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ca_bundle": (None, None, None, None),
}


class EngineBotocoreSession(BotocoreSession):
    """A botocore session whose clients call the engine unless told otherwise."""

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(session_vars=ISOLATED)
        self._endpoint_url = endpoint_url

    def create_client(self, *arguments: Any, **options: Any) -> Any:
        """Create a client with the engine as its endpoint."""
        # A configured endpoint (environment, files) must not win over the engine.
        options["endpoint_url"] = options.get("endpoint_url") or self._endpoint_url
        return super().create_client(*arguments, **options)


def engine_session(
    endpoint_url: str, region: str, access_key_id: str, secret_access_key: str
) -> boto3.Session:
    """Return a session whose clients all call the engine by default.

    The user's profiles, keys, endpoints and proxies play no part.
    """
    core = EngineBotocoreSession(endpoint_url)
    core.set_default_client_config(
        Config(
            proxies={},
            max_pool_connections=MAX_CONNECTIONS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 4},
            s3={"addressing_style": "path"},
        )
    )
    return boto3.Session(
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret_access_key,
        region_name=region,
        botocore_session=core,
    )
