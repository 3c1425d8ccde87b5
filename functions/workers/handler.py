"""The routes of workers, behind the REST API and behind a function URL.

Both ask for a signature of IAM, and name in their event who signed. A function URL's
event is read as one of the REST API, so that there is one edge for both.
"""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.api import work_routes
from hourbell.api.front import Front
from hourbell.api.function_url import is_url_event, rest_event, url_answer

logger = Logger()
metrics = Metrics()
front = Front(
    (work_routes.router,),
    lambda: bootstrap.worker_ports(),  # noqa: PLW0108 - tests replace it
)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request, in the form in which it came."""
    if is_url_event(event):
        return url_answer(front.answer(rest_event(event), context))
    return front.answer(event, context)
