"""The edge of functions that work at the messages of an SQS queue."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext


def work_at_messages(
    event: dict[str, Any],
    context: LambdaContext,
    work: Callable[..., None],
    logger: Logger,
    complaint: str,
) -> PartialItemFailureResponse:
    """Work at each message of a batch; none that fails stops another.

    Args:
        event: SQS's, of one message or more.
        context: Lambda's.
        work: is given each `SQSRecord`, and as `lambda_context` the context if it
            takes one; what it raises, whatever it is, has the message come again.
        logger: gets each failure as an error.
        complaint: what an error says.

    Returns:
        the messages that are to come again, as Lambda wants them told.
    """
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    answer = process_partial_response(event, work, processor, context)
    for _, failure, _ in processor.exceptions:
        logger.error(complaint, exc_info=failure)
    return answer
