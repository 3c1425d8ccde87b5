"""Ids from the machine's source of randomness."""

import secrets

from hourbell.domain.definition import schedule_id_from


class SecretIds:
    """The `Ids` port."""

    def schedule_id(self) -> str:
        """Return a schedule id of 128 random bits."""
        return schedule_id_from(secrets.token_bytes(16))

    def token(self) -> str:
        """Return 32 random hexadecimal characters."""
        return secrets.token_hex(16)
