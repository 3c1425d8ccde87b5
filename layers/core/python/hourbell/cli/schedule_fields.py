"""The options that say what a schedule is, and the body that they make."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hourbell.api.json_text import read_json
from hourbell.cli.client import given

Tracked = Annotated[
    str | None, typer.Option(help="TRACKED or UNTRACKED: do workers report back?")
]
Overlap = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="Of one that meets another: ALLOW, SKIP_IF_RUNNING or QUEUE_ONE.",
    ),
]
RetryAttempts = Annotated[
    int | None, typer.Option(help="How many attempts there are in all.")
]
RetryBase = Annotated[
    int | None,
    typer.Option(metavar="SECONDS", help="The longest wait after the first."),
]
RetryCap = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="The longest wait at all.")
]
RetryDeadline = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS|none", help="For how long after the first one begins."
    ),
]
RetryOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS",
        help="RETRYABLE, THROTTLED or LEASE_EXPIRED; repeatable, all by default.",
    ),
]


def _options(  # noqa: PLR0913 - one option for each field
    *,
    expression: Annotated[
        str | None, typer.Option(help="cron, at(...) or rate(...).")
    ] = None,
    handler: Annotated[
        str | None, typer.Option(help="A handler registered on the tenant.")
    ] = None,
    zone: Annotated[str | None, typer.Option(help="IANA zone.")] = None,
    payload: Annotated[
        str | None, typer.Option(help="JSON, or @FILE that holds it.")
    ] = None,
    description: Annotated[str | None, typer.Option()] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    start_at: Annotated[str | None, typer.Option(help="No time before it.")] = None,
    end_at: Annotated[str | None, typer.Option(help="No time from it on.")] = None,
    max_occurrences: Annotated[int | None, typer.Option()] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="DATE[/DATE]", help="Local dates left out; repeatable."),
    ] = None,
    dst_gap: Annotated[str | None, typer.Option(help="SKIP or NEXT_VALID.")] = None,
    dst_fold: Annotated[str | None, typer.Option(help="FIRST, SECOND or BOTH.")] = None,
    flexible_window_seconds: Annotated[int | None, typer.Option()] = None,
    misfire: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Of times reached too late: SKIP, FIRE_ONCE or CATCH_UP.",
        ),
    ] = None,
    catch_up_limit: Annotated[
        int | None, typer.Option(help="How many of them CATCH_UP runs.")
    ] = None,
    max_lateness: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="What is later than this never runs."),
    ] = None,
    tracking: Tracked = None,
    overlap: Overlap = None,
    retry_attempts: RetryAttempts = None,
    retry_base: RetryBase = None,
    retry_cap: RetryCap = None,
    retry_deadline: RetryDeadline = None,
    retry_on: RetryOn = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="The body as JSON, or - ; options win over it."
        ),
    ] = None,
) -> None:
    """Name the options; only its signature is looked at."""


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a schedule's fields.

    Args:
        command: gets the body that they make as `fields`, besides its own options.
    """
    own = inspect.signature(command).parameters
    options = inspect.signature(_options).parameters
    arguments = [each for each in own.values() if each.kind is not each.KEYWORD_ONLY]
    keywords = [
        each
        for each in own.values()
        if each.kind is each.KEYWORD_ONLY and each.name != "fields"
    ]
    parameters = [*arguments, *options.values(), *keywords]

    def run(**values: Any) -> None:  # noqa: ANN401 - options of any type
        given_fields = {name: values.pop(name) for name in options}
        command(fields=_body_of(given_fields), **values)

    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _body_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that options make; they win over the file."""
    as_they_are = (
        *("expression", "handler", "zone", "description", "start_at", "end_at"),
        *("max_occurrences", "flexible_window_seconds", "tracking", "overlap"),
    )
    fields = {name: options[name] for name in as_they_are} | {
        "payload": _payload(options["payload"]),
        "tags": _tags(options["tag"]),
        "exclude": [_dates(each) for each in options["exclude"] or ()] or None,
        "dst": given({"gap": options["dst_gap"], "fold": options["dst_fold"]}) or None,
        "misfire": given(
            {
                "policy": options["misfire"],
                "limit": options["catch_up_limit"],
                "max_lateness_seconds": options["max_lateness"],
            }
        )
        or None,
        "retry": _retry(options),
    }
    return _body(options["file"]) | given(fields)


def _retry(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the members of a retry policy that are named; a deadline may be none."""
    members = given(
        {
            "max_attempts": options["retry_attempts"],
            "base_seconds": options["retry_base"],
            "cap_seconds": options["retry_cap"],
            "retryable": options["retry_on"] or None,
        }
    )
    deadline = options["retry_deadline"]
    if deadline is not None:
        members["deadline_seconds"] = _deadline(deadline)
    return members or None


def _deadline(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter("--retry-deadline is seconds, or none") from error


def _body(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    body: dict[str, Any] = _parsed(_read(str(file)), "--file", dict)
    return body


def _payload(text: str | None) -> Any:  # noqa: ANN401 - any JSON
    if text is None:
        return None
    if text.startswith("@"):
        text = _read(text[1:])
    return _parsed(text, "--payload", object)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{name} cannot be read: {error}") from error


def _parsed(text: str, option: str, kind: type) -> Any:  # noqa: ANN401 - any JSON
    try:
        found = read_json(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is not JSON: {error}") from error
    if not isinstance(found, kind):
        raise typer.BadParameter(f"{option} is not a JSON object")
    return found


def _tags(tags: Sequence[str] | None) -> dict[str, str] | None:
    pairs = [tag.partition("=") for tag in tags or ()]
    if any(not separator for _, separator, _ in pairs):
        raise typer.BadParameter("--tag takes KEY=VALUE")
    return {key: value for key, _, value in pairs} or None


def _dates(text: str) -> object:
    first, separator, last = text.partition("/")
    return {"from": first, "to": last} if separator else text
