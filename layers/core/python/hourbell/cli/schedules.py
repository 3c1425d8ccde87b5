"""`hourbell schedules`: create and look up schedules through the signed HTTPS API.

Where the API is, and whose keys sign, the environment says: HOURBELL_API_URL and the
usual AWS variables or profile. Without HOURBELL_API_URL the local stack is meant, if
one runs in this project.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn
from urllib.parse import quote, urlsplit

import typer

if TYPE_CHECKING:
    from botocore.session import Session

SERVICE: Final = "execute-api"
TIMEOUT_SECONDS: Final = 30

app = typer.Typer(
    help="Create and look up schedules.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as it came.")]


@app.command()
def create(  # noqa: PLR0913 - one option for each field
    *,
    name: Annotated[str | None, typer.Option(help="The schedule's name.")] = None,
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
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="The body as JSON, or - ; options win over it."
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeating it creates once.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a schedule."""
    options = {
        "name": name,
        "expression": expression,
        "handler": handler,
        "zone": zone,
        "payload": _payload(payload),
        "description": description,
        "tags": _tags(tag),
        "start_at": start_at,
        "end_at": end_at,
        "max_occurrences": max_occurrences,
        "exclude": [_dates(each) for each in exclude or ()] or None,
        "dst": _present({"gap": dst_gap, "fold": dst_fold}) or None,
        "flexible_window_seconds": flexible_window_seconds,
    }
    body = _body(file) | _present(options)
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    _show(_api().send("POST", "/v1/schedules", body, headers), as_json=as_json)


@app.command()
def get(
    schedule_id: Annotated[str, typer.Argument(metavar="SCHEDULE_ID")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show a schedule, its next time and its latest occurrences."""
    path = f"/v1/schedules/{quote(schedule_id, safe='')}"
    _show(_api().send("GET", path), as_json=as_json)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said."""

    status: int
    text: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON, or none
        """The answer as JSON; None when it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Api:
    """The API, called with the signature of the session's credentials."""

    def __init__(self, url: str, session: "Session", region: str) -> None:
        self._url = url.rstrip("/")
        self._session = session
        self._region = region

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one signed request.

        Ends the command with code 1 when there are no credentials or no answer.
        """
        # Half a second of imports that other commands do without.
        from botocore.auth import SigV4Auth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        from botocore.httpsession import URLLib3Session  # noqa: PLC0415

        credentials = self._session.get_credentials()
        if credentials is None:
            _fail("There are no AWS credentials to sign with.")
        request = AWSRequest(
            method,
            self._url + path,
            headers={"Content-Type": "application/json", **(headers or {})},
            data=b"" if body is None else json.dumps(body).encode(),
        )
        SigV4Auth(credentials, SERVICE, self._region).add_auth(request)
        try:
            http = URLLib3Session(timeout=TIMEOUT_SECONDS)
            answer = http.send(request.prepare())
        except BotoCoreError as error:
            _fail(f"The API did not answer: {error}")
        return Answer(answer.status_code, answer.content.decode("utf-8", "replace"))


def _api() -> Api:
    import botocore.session  # noqa: PLC0415 - as above

    settings = dict(os.environ)
    if "HOURBELL_API_URL" not in settings:
        settings = _local_stack()
    session = botocore.session.Session()
    if "AWS_ACCESS_KEY_ID" in settings:
        session.set_credentials(
            settings["AWS_ACCESS_KEY_ID"],
            settings["AWS_SECRET_ACCESS_KEY"],
            settings.get("AWS_SESSION_TOKEN"),
        )
    url = settings["HOURBELL_API_URL"]
    configured = session.get_config_variable("region")
    region = settings.get("AWS_REGION") or configured or _region_of(url)
    return Api(url, session, region)


def _local_stack() -> dict[str, str]:
    """Return what the local stack of this project says about itself."""
    from hourbell.local.directory import (  # noqa: PLC0415 - not for other accounts
        StackDirectory,
        project_root,
    )
    from hourbell.local.errors import LocalStackError  # noqa: PLC0415
    from hourbell.local.state import parse_environment  # noqa: PLC0415

    try:
        file = StackDirectory.of(project_root() / ".local").env_file
        found = parse_environment(file.read_text("utf-8"))
    except (LocalStackError, OSError):
        found = {}
    if not found.get("HOURBELL_API_URL"):
        _fail("HOURBELL_API_URL is not set, and no local stack runs here.")
    return found


def _region_of(url: str) -> str:
    """Read the region of `<id>.execute-api.<region>.amazonaws.com`."""
    labels = (urlsplit(url).hostname or "").split(".")
    if SERVICE not in labels[:-1]:
        _fail("AWS_REGION is not set.")
    return labels[labels.index(SERVICE) + 1]


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
        found = json.loads(text)
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


def _present(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _show(answer: Answer, *, as_json: bool) -> None:
    is_good = answer.status < HTTPStatus.BAD_REQUEST
    if as_json:
        typer.echo(answer.text)
    elif is_good:
        _print_schedule(answer.document)
    else:
        _print_problem(answer)
    if not is_good:
        raise typer.Exit(1)


def _print_schedule(schedule: Mapping[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - not needed by programs
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    facts = Table.grid(padding=(0, 2))
    timing = f"{schedule['expression']}  ({schedule['zone']})"
    for label, value in (
        ("schedule", schedule["schedule_id"]),
        ("name", schedule["name"]),
        ("state", f"{schedule['state']}, version {schedule['version']}"),
        ("timing", timing),
        ("handler", schedule["handler"]),
        ("next run", schedule["next_run_at_local"] or "none"),
    ):
        facts.add_row(f"[dim]{label}[/dim]", str(value))
    console.print(facts)
    if not schedule["last_occurrences"]:
        return
    latest = Table("scheduled for", "state", "enqueue lag", "visible lag")
    for each in schedule["last_occurrences"]:
        latest.add_row(
            each["scheduled_for_local"],
            each["state"],
            _lag(each["available_at"], each["enqueued_at"]),
            _lag(each["available_at"], each["visible_at"]),
        )
    console.print(latest)


def _lag(available_at: str | None, reached_at: str | None) -> str:
    """Write how much later one instant is; negative when it was ahead."""
    if available_at is None or reached_at is None:
        return ""
    lag = datetime.fromisoformat(reached_at) - datetime.fromisoformat(available_at)
    return f"{lag.total_seconds():+.3f} s"


def _print_problem(answer: Answer) -> None:
    problem = answer.document
    if not isinstance(problem, dict) or "code" not in problem:
        _fail(f"HTTP {answer.status}: {answer.text[:500]}")
    typer.secho(f"{problem['code']}: {problem.get('detail')}", fg="red", err=True)
    for each in problem.get("errors", ()):
        hint = f" (perhaps {each['suggestion']})" if "suggestion" in each else ""
        typer.echo(f"  {each['field']}: {each['message']}{hint}", err=True)
    if "request_id" in problem:
        typer.secho(f"  request {problem['request_id']}", dim=True, err=True)


def _fail(message: str) -> NoReturn:
    typer.secho(message, fg="red", err=True)
    raise typer.Exit(1)
