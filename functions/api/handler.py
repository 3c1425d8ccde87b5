"""The HTTPS API: every route but those of workers.

Routes stand in routers, one module of `hourbell.api` for each noun
(`hourbell/api/<noun>_routes.py`), all listed in `hourbell.api.routers`. A router

- has a module-level `router = Router()` and routes like `@router.get("/v1/...")`,
  whose parameters are annotated with `Path()`, `Query()`, `Header()`, `Body()`;
- finds the caller and the instant by `edge.current_call(router)`, the ports by
  `bootstrap.api_ports()`, and answers with `edge.answer(status, text, headers)`;
- raises `HourbellError`s and leaves them to `hourbell.api.front`.

What a route does not declare is refused by name: query parameters by the front, fields
of the body by its model (`extra="forbid"`). Identity, bodies and problems are dealt
with by the front alone.
"""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.api.front import Front
from hourbell.api.routers import ROUTERS

logger = Logger()
metrics = Metrics()
front = Front(ROUTERS, lambda: bootstrap.api_ports())  # noqa: PLW0108 - tests replace it


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request of API Gateway."""
    return front.answer(event, context)
