"""Translation of SDK errors, by their codes and never by their texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's name
    HTTPClientError,
)
from botocore.parsers import ResponseParserError

from hourbell.domain.errors import HourbellError, Permanent, Transient

SdkError: TypeAlias = ClientError | BotoCoreError | ResponseParserError
"""Whatever a call of the SDK raises when it failed; all three are unrelated."""

SDK_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError)
"""The same for an `except` clause."""

THROTTLING: Final = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""The service did nothing and asks to come back later."""

CONFLICT: Final = frozenset(
    {
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
        "ReplicatedWriteConflictException",
    }
)
"""Another write was at the same item; nothing was done."""

UNCLEAR: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServerErrorException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
"""The service failed; the request may or may not have taken effect."""

CREDENTIALS: Final = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
)
"""Credentials that a new environment will have renewed; nothing was done."""

REFUSED_FOR_NOW: Final = THROTTLING | CONFLICT | CREDENTIALS
"""Nothing was done, and the same request may succeed later."""

_SERVER_FAULT = 500


def code_of(error: ClientError) -> str:
    """Return the service's error code without a namespace."""
    return error.response.get("Error", {}).get("Code", "").rpartition("#")[2]


def status_of(error: ClientError) -> int:
    """Return the HTTP status, 0 when there is none."""
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def is_unclear(error: SdkError) -> bool:
    """Whether the request may have taken effect although it failed."""
    if isinstance(error, ClientError):
        code = code_of(error)
        if code in REFUSED_FOR_NOW:
            return False
        return code in UNCLEAR or status_of(error) >= _SERVER_FAULT
    return isinstance(error, ConnectionError | HTTPClientError | ResponseParserError)


def is_transient(error: SdkError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ClientError) and code_of(error) in REFUSED_FOR_NOW:
        return True
    return is_unclear(error)


def translated(error: SdkError) -> HourbellError:
    """Return the error that the use cases know, to be raised `from` this one."""
    code = code_of(error) if isinstance(error, ClientError) else type(error).__name__
    if is_transient(error):
        return Transient(f"the service answered {code}")
    return Permanent(f"the service refused: {code}")


@contextmanager
def translation() -> Iterator[None]:
    """Turn SDK errors inside the block into `Transient` or `Permanent`."""
    try:
        yield
    except SDK_ERRORS as error:
        raise translated(error) from error
