"""The signed HTTPS API, as the commands call it.

Where the API is, and whose keys sign, the environment says: HOURBELL_API_URL and the
usual AWS variables or profile. Without HOURBELL_API_URL the local stack is meant, if
one runs in this project.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import typer

from hourbell.api.json_text import write_json

if TYPE_CHECKING:
    from botocore.session import Session

SERVICE: Final = "execute-api"
TIMEOUT_SECONDS: Final = 30
PAGE: Final = 100
ENV_FILE: Final = "env"
"""The local stack's file of the tenant that it starts with."""
PLATFORM_ENV_FILE: Final = "platform.env"
"""The local stack's file of the platform role."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as it came.")]
Revision = Annotated[
    int | None, typer.Option(help="Change this revision only; the current one else.")
]


def command_group(summary: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(
        help=summary,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )


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
            fail("There are no AWS credentials to sign with.")
        request = AWSRequest(
            method,
            self._url + path,
            headers={"Content-Type": "application/json", **(headers or {})},
            # What no UTF-8 can say is for the API to refuse.
            data=("" if body is None else write_json(body)).encode(
                errors="surrogatepass"
            ),
        )
        SigV4Auth(credentials, SERVICE, self._region).add_auth(request)
        try:
            http = URLLib3Session(timeout=TIMEOUT_SECONDS)
            answer = http.send(request.prepare())
        except BotoCoreError as error:
            fail(f"The API did not answer: {error}")
        return Answer(answer.status_code, answer.content.decode("utf-8", "replace"))


def connect_api(env_file: str = ENV_FILE) -> Api:
    """Return the API that the environment names, or the local stack's.

    Args:
        env_file: of the local stack: who calls it when the environment names no API.
    """
    import botocore.session  # noqa: PLC0415 - as above

    settings = dict(os.environ)
    if "HOURBELL_API_URL" not in settings:
        settings = _local_stack(env_file)
    session = botocore.session.Session()
    if "AWS_ACCESS_KEY_ID" in settings:
        session.set_credentials(
            settings["AWS_ACCESS_KEY_ID"],
            settings["AWS_SECRET_ACCESS_KEY"],
            settings.get("AWS_SESSION_TOKEN"),
        )
    url = settings["HOURBELL_API_URL"]
    configured = session.get_config_variable("region")
    region = settings.get("AWS_REGION") or configured or region_of(url)
    return Api(url, session, region)


def _local_stack(env_file: str) -> dict[str, str]:
    """Return what the local stack of this project says about itself."""
    from hourbell.local.directory import (  # noqa: PLC0415 - not for other accounts
        StackDirectory,
        project_root,
    )
    from hourbell.local.errors import LocalStackError  # noqa: PLC0415
    from hourbell.local.state import parse_environment  # noqa: PLC0415

    try:
        root = StackDirectory.of(project_root() / ".local").root
        found = parse_environment((root / env_file).read_text("utf-8"))
    except (LocalStackError, OSError):
        found = {}
    if not found.get("HOURBELL_API_URL"):
        fail("HOURBELL_API_URL is not set, and no local stack runs here.")
    return found


def region_of(url: str) -> str:
    """Read the region of `<id>.execute-api.<region>.amazonaws.com`."""
    labels = (urlsplit(url).hostname or "").split(".")
    if SERVICE not in labels[:-1]:
        fail("AWS_REGION is not set.")
    return labels[labels.index(SERVICE) + 1]


def current_tag(api: Api, path: str, revision: int | None, *, as_json: bool) -> str:
    """Return the entity tag of a revision, of the current one when it is None.

    Ends the command as `show` does when there is no such resource.
    """
    if revision is None:
        found = api.send("GET", path)
        if found.status >= HTTPStatus.BAD_REQUEST:
            show(found, lambda _: None, as_json=as_json)
        revision = found.document["revision"]
    return f'"{revision}"'


def pages(
    api: Api,
    path: str,
    member: str,
    query: Sequence[tuple[str, str]] = (),
    limit: int | None = None,
) -> Answer:
    """Return a list with its pages as one; the first refusal when there is one.

    Args:
        api: where to ask.
        path: of the list, without parameters.
        member: of the answer, under which a page's entries are.
        query: parameters besides limit and cursor.
        limit: entries at most; None for all.
    """
    entries: list[Any] = []
    cursor: str | None = None
    while True:
        size = PAGE if limit is None else min(PAGE, limit - len(entries))
        more = [("cursor", cursor)] if cursor else []
        parameters = encoded([*query, ("limit", str(size)), *more])
        answer = api.send("GET", path + parameters)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return answer
        page = answer.document
        entries += page[member]
        cursor = page["cursor"]
        if cursor is None or (limit is not None and len(entries) >= limit):
            document = {member: entries, "cursor": cursor}
            return Answer(answer.status, json.dumps(document))


def encoded(query: Sequence[tuple[str, str]]) -> str:
    """Return a query string with its question mark; nothing without parameters."""
    # A blank is %20: a plus would be signed differently.
    return f"?{urlencode(query, quote_via=quote)}" if query else ""


def show(
    answer: Answer, print_document: Callable[[Any], None], *, as_json: bool
) -> None:
    """Print an answer or its problem; a problem ends the command with code 1."""
    is_good = answer.status < HTTPStatus.BAD_REQUEST
    if as_json:
        typer.echo(answer.text)
    elif is_good:
        print_document(answer.document)
    else:
        print_problem(answer)
    if not is_good:
        raise typer.Exit(1)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def print_problem(answer: Answer) -> None:
    """Say what the API refused, and why, on standard error."""
    problem = answer.document
    if not isinstance(problem, dict) or "code" not in problem:
        fail(f"HTTP {answer.status}: {answer.text[:500]}")
    typer.secho(f"{problem['code']}: {problem.get('detail')}", fg="red", err=True)
    for each in problem.get("errors", ()):
        hint = f" (perhaps {each['suggestion']})" if "suggestion" in each else ""
        typer.echo(f"  {each['field']}: {each['message']}{hint}", err=True)
    if "request_id" in problem:
        typer.secho(f"  request {problem['request_id']}", dim=True, err=True)


def fail(message: str) -> NoReturn:
    """End the command with code 1 and a reason."""
    typer.secho(message, fg="red", err=True)
    raise typer.Exit(1)
