"""Bodies and answers of the handlers' routes."""

from typing import Annotated, Final, Literal

from pydantic import Field

from hourbell.api.documents import (
    Answer,
    Body,
    Optional,
    WholeBody,
    judged,
    one_of,
)
from hourbell.domain.definition import Handler, HandlerState, Routing
from hourbell.domain.names import HANDLER_NAME, check_handler_name
from hourbell.domain.occurrence import Lane
from hourbell.domain.queue_arn import QueueArn
from hourbell.domain.routing import DEAD_LETTERS
from hourbell.usecases.handlers import HandlerChange, HandlerPage
from hourbell.usecases.kept import Kept

MAX_DESCRIPTION: Final = 512
MAX_RATE: Final = 100_000

RoutingName = Literal["shared", "dedicated", "external"]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION)]
Rate = Annotated[
    int,
    Field(ge=1, le=MAX_RATE, description="Messages a second that its target takes."),
]
HandlerName = Annotated[
    str,
    Field(json_schema_extra={"pattern": HANDLER_NAME}),
    judged(lambda text: check_handler_name(text, field="")),
]
Queue = Annotated[
    str,
    Field(description="ARN of an external queue."),
    judged(lambda text: QueueArn.parse(text, field="")),
]


DeadLetterQueue = Annotated[
    str,
    Field(description="ARN of an external queue for dead letters."),
    judged(lambda text: QueueArn.parse(text, field="")),
]


class RegisterHandler(WholeBody):
    """The body of POST /v1/handlers."""

    name: HandlerName
    routing: RoutingName = "shared"
    queue_arn: Queue | None = None
    dead_letter_queue_arn: DeadLetterQueue | None = None
    dispatch_rate: Rate | None = None
    description: Description = ""

    def to_domain(self, tenant_id: str) -> Handler:
        """Return the handler at its first revision."""
        return Handler(
            tenant_id,
            self.name,
            Routing(self.routing),
            queue_arn=self.queue_arn,
            dead_letter_queue_arn=self.dead_letter_queue_arn,
            dispatch_rate=self.dispatch_rate,
            description=self.description,
        )


class ChangeHandler(Body):
    """The body of PATCH /v1/handlers/{name}."""

    routing: Optional[RoutingName] = None
    state: Annotated[
        Optional[Literal["ACTIVE", "RETIRED"]],
        Field(description="ACTIVE takes a retirement back."),
    ] = None
    queue_arn: Queue | None = None
    dead_letter_queue_arn: DeadLetterQueue | None = None
    dispatch_rate: Rate | None = None
    description: Optional[Description] = None

    def to_domain(self) -> HandlerChange:
        """Return what the use case takes."""
        said = self.model_fields_set
        return HandlerChange(
            routing=self.routing and Routing(self.routing),
            state=self.state and HandlerState(self.state),
            queue_arn=self.queue_arn if "queue_arn" in said else Kept.KEPT,
            dead_letter_queue_arn=(
                self.dead_letter_queue_arn
                if "dead_letter_queue_arn" in said
                else Kept.KEPT
            ),
            dispatch_rate=self.dispatch_rate if "dispatch_rate" in said else Kept.KEPT,
            description=self.description,
        )


class HandlerAnswer(Answer):
    """A handler.

    `queue_arn` is an external handler's queue, `queues` a dedicated one's, by lane.
    `dead_letter_queue_arn` is where dead letters of either go, if anywhere.
    """

    name: str
    routing: Annotated[str, one_of(Routing)]
    state: Annotated[str, one_of(HandlerState)]
    queue_arn: str | None
    dead_letter_queue_arn: str | None
    queues: dict[str, str]
    dispatch_rate: int | None
    description: str
    revision: int


class HandlerListAnswer(Answer):
    """A page of handlers, in order of name."""

    handlers: list[HandlerAnswer]
    cursor: str | None


def handler_answer(handler: Handler) -> HandlerAnswer:
    """Return a handler."""
    base = handler.queue_arn if handler.routing is Routing.DEDICATED else None
    is_external = handler.routing is Routing.EXTERNAL
    return HandlerAnswer(
        name=handler.name,
        routing=handler.routing,
        state=handler.state,
        queue_arn=handler.queue_arn if is_external else None,
        dead_letter_queue_arn=(
            f"{base}-{DEAD_LETTERS}" if base else handler.dead_letter_queue_arn
        ),
        queues={lane: f"{base}-{lane}" for lane in Lane} if base else {},
        dispatch_rate=handler.dispatch_rate,
        description=handler.description,
        revision=handler.revision,
    )


def handler_list_answer(page: HandlerPage) -> HandlerListAnswer:
    """Return a page of handlers."""
    return HandlerListAnswer(
        handlers=[handler_answer(each) for each in page.handlers],
        cursor=page.after,
    )
