"""HourbellApi: the HTTPS API."""

import json
from http import HTTPStatus

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.acknowledge import acknowledge
from stacks.data import DataStack
from stacks.functions import (
    Access,
    Functions,
    allow_external,
    allow_indexes,
    allow_send,
)
from stacks.logs import log_group
from stacks.queues import QueuesStack
from stacks.settings import Platform, Settings

STAGE = "prod"
# API Gateway gives up after 29 seconds; a writer must end well before the watermark.
TIMEOUT = Duration.seconds(15)
PROBLEM = "application/problem+json"

# A transaction needs the rights of its members, and none of its own.
ACCESS: Access = {
    "schedules": [
        "BatchGetItem",
        "ConditionCheckItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
    # An occurrence's attempts are found by its key.
    "timeline": [
        "BatchGetItem",
        "ConditionCheckItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
    "control": [
        "BatchGetItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
}
WORKERS_ACCESS: Access = {
    # Versions are read, and nothing of a schedule is ever written.
    "schedules": ["BatchGetItem", "GetItem"],
    # A token that is shown again may be an earlier attempt's.
    "timeline": [
        "BatchGetItem",
        "ConditionCheckItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
    # Lanes, places, dead letters, and the retries of a minute.
    "control": [
        "BatchGetItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
}
# Method and path of every route; each is a resource and method of its own, so that
# IAM can allow each alone.
ROUTES = (
    ("GET", "/v1/schedules"),
    ("POST", "/v1/schedules"),
    ("POST", "/v1/schedules/preview"),
    ("POST", "/v1/schedules/batch"),
    ("PUT", "/v1/schedules/by-name/{name}"),
    ("DELETE", "/v1/schedules/{schedule_id}"),
    ("GET", "/v1/schedules/{schedule_id}"),
    ("PATCH", "/v1/schedules/{schedule_id}"),
    ("POST", "/v1/schedules/{schedule_id}/pause"),
    ("POST", "/v1/schedules/{schedule_id}/resume"),
    ("POST", "/v1/schedules/{schedule_id}/run"),
    ("POST", "/v1/schedules/{schedule_id}/backfill"),
    ("GET", "/v1/schedules/{schedule_id}/versions"),
    ("GET", "/v1/handlers"),
    ("POST", "/v1/handlers"),
    ("DELETE", "/v1/handlers/{name}"),
    ("GET", "/v1/handlers/{name}"),
    ("PATCH", "/v1/handlers/{name}"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job_id}"),
    ("GET", "/v1/jobs/{job_id}/results"),
    ("POST", "/v1/jobs/{job_id}/cancel"),
    ("POST", "/v1/jobs/{job_id}/resume"),
    ("POST", "/v1/occurrences/claim"),
    ("POST", "/v1/occurrences/heartbeat"),
    ("POST", "/v1/occurrences/complete"),
    ("POST", "/v1/occurrences/fail"),
    ("GET", "/v1/occurrences/{occurrence_id}"),
    ("POST", "/v1/occurrences/{occurrence_id}/cancel"),
    ("POST", "/v1/occurrences/{occurrence_id}/replay"),
    ("GET", "/v1/dead-letters"),
    ("POST", "/v1/dead-letters/replay"),
    ("GET", "/v1/usage"),
    ("GET", "/v1/admin/tenants"),
    ("POST", "/v1/admin/tenants"),
    ("GET", "/v1/admin/tenants/{tenant_id}"),
    ("PATCH", "/v1/admin/tenants/{tenant_id}"),
    ("GET", "/v1/admin/tenants/{tenant_id}/principals"),
    ("DELETE", "/v1/admin/tenants/{tenant_id}/principals/{principal}"),
    ("PUT", "/v1/admin/tenants/{tenant_id}/principals/{principal}"),
    ("GET", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards/resume"),
    ("GET", "/v1/admin/parked"),
    ("POST", "/v1/admin/parked/{parked_id}/retry"),
    ("POST", "/v1/admin/tenants/{tenant_id}/replan"),
    ("GET", "/v1/admin/tenants/{tenant_id}/replan/{job_id}"),
    ("GET", "/v1/admin/tenants/{tenant_id}/replan/{job_id}/results"),
)
# Of the function `workers`; all others are the function `api`'s.
WORK_ROUTES = frozenset(
    {
        ("POST", "/v1/occurrences/claim"),
        ("POST", "/v1/occurrences/heartbeat"),
        ("POST", "/v1/occurrences/complete"),
        ("POST", "/v1/occurrences/fail"),
    }
)

# Where a body may be missing, API Gateway does not look at it.
BODILESS = (
    *("/pause", "/resume", "/run", "/cancel", "/retry", "/replan", "/replay"),
    "/{principal}",
)
MERGE_PATCH = "application/merge-patch+json"

# What API Gateway itself refuses, in the words of the function's own refusals.
REFUSALS = (
    (apigateway.ResponseType.BAD_REQUEST_BODY, 400, "invalid_input"),
    (apigateway.ResponseType.BAD_REQUEST_PARAMETERS, 400, "invalid_input"),
    (apigateway.ResponseType.ACCESS_DENIED, 403, "forbidden"),
    (apigateway.ResponseType.MISSING_AUTHENTICATION_TOKEN, 403, "forbidden"),
    (apigateway.ResponseType.INVALID_SIGNATURE, 403, "forbidden"),
    (apigateway.ResponseType.EXPIRED_TOKEN, 403, "forbidden"),
    (apigateway.ResponseType.RESOURCE_NOT_FOUND, 404, "unknown_route"),
    (apigateway.ResponseType.UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type"),
    (apigateway.ResponseType.REQUEST_TOO_LARGE, 413, "body_too_large"),
    # What is left: keys that IAM does not know, an incomplete signature, a web ACL.
    (apigateway.ResponseType.DEFAULT_4_XX, 403, "forbidden"),
    (apigateway.ResponseType.THROTTLED, 429, "quota_exceeded"),
    (apigateway.ResponseType.INTEGRATION_TIMEOUT, 503, "unavailable"),
    (apigateway.ResponseType.INTEGRATION_FAILURE, 503, "unavailable"),
    (apigateway.ResponseType.DEFAULT_5_XX, 500, "internal_error"),
)
# The function's titles and header; a test compares them.
TITLES = {
    400: "The request is not valid",
    403: "Not allowed",
    404: "Not found",
    413: "The request is too large",
    415: "Unsupported media type",
    429: "Quota used up",
    500: "Internal error",
    503: "Temporarily unavailable",
}
RETRY_AFTER_SECONDS = 1


class ApiStack(Stack):
    """A regional REST API, signed by IAM, in front of two functions.

    Attributes:
        function: answers all but what workers ask.
        workers: answers workers, also by a URL of its own, which has no fee.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        data: DataStack,
        queues: QueuesStack,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.stack_name("Api"),
            description="Hourbell: HTTPS API",
            termination_protection=settings.termination_protection,
        )
        self._settings = settings
        functions = Functions(self, "Layers", settings, data)
        operators = json.dumps(settings.operators)
        self.function = functions.make(
            "api",
            timeout=TIMEOUT,
            memory_mb=1024,
            access=ACCESS,
            environment={
                "HOURBELL_PLATFORM_PRINCIPALS": operators,
                "HOURBELL_DEDICATED_TENANTS": json.dumps(settings.tenants),
                "HOURBELL_EXTERNAL_QUEUE_ARNS": json.dumps(settings.external_queues),
                "HOURBELL_JOBS_QUEUE_URL": queues.jobs.queue_url,
                "HOURBELL_QUEUE_ARN_BASE": self.format_arn(
                    service="sqs", resource=settings.prefix
                ),
            },
        )
        self.workers = functions.make(
            "workers",
            timeout=TIMEOUT,
            memory_mb=1024,
            access=WORKERS_ACCESS,
            environment={"HOURBELL_PLATFORM_PRINCIPALS": operators},
            # Their URL has no other limit, and the account's room is everybody's.
            concurrency=settings.workers_concurrency or None,
        )
        self._allow(data, queues)
        self.rest_api = self._make_api()
        self._end_execution_logs()
        self._validator = self.rest_api.add_request_validator(
            "Validator", validate_request_body=True, validate_request_parameters=True
        )
        self._object = self.rest_api.add_model(
            "JsonObject",
            content_type="application/json",
            schema=apigateway.JsonSchema(type=apigateway.JsonSchemaType.OBJECT),
        )
        for method, path in ROUTES:
            self._add_route(method, path)
        for response_type, status, code in REFUSALS:
            self._add_refusal(response_type, status, code)
        self._acknowledge_findings()
        CfnOutput(self, "ApiUrl", value=self.rest_api.url)
        CfnOutput(self, "WorkersUrl", value=self._workers_url())

    def _allow(self, data: DataStack, queues: QueuesStack) -> None:
        """Give the function what no table of actions says."""
        allow_external(self.function, self._settings)
        allow_send(self.function, [queues.jobs])
        allow_indexes(self.function, data)

    def _make_api(self) -> apigateway.RestApi:
        settings = self._settings
        access_logs = log_group(self, "AccessLogs", settings)
        return apigateway.RestApi(
            self,
            "RestApi",
            rest_api_name=settings.name("api"),
            description="Hourbell",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            policy=self._resource_policy(),
            cloud_watch_role=settings.api_log_role,
            cloud_watch_role_removal_policy=(
                settings.removal_policy if settings.api_log_role else None
            ),
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                access_log_destination=apigateway.LogGroupLogDestination(access_logs),
                access_log_format=_access_log_format(),
                logging_level=apigateway.MethodLoggingLevel.ERROR,
                metrics_enabled=settings.api_metrics,
                throttling_rate_limit=settings.api_rate,
                throttling_burst_limit=settings.api_burst,
                tracing_enabled=settings.tracing,
            ),
        )

    def _end_execution_logs(self) -> None:
        """Make the log group of the API's errors before API Gateway does.

        It would keep them for ever. The local engine writes no such log.
        """
        if self._settings.platform is not Platform.LAMBDA:
            return
        name = f"API-Gateway-Execution-Logs_{self.rest_api.rest_api_id}/{STAGE}"
        group = log_group(self, "ExecutionLogs", self._settings, name)
        self.rest_api.deployment_stage.node.add_dependency(group)

    def _resource_policy(self) -> iam.PolicyDocument | None:
        """Let other accounts' callers in, without a role of ours to assume.

        Their own account has to allow the call as well. Which tenant a caller is, and
        whether it is one at all, the function decides.
        """
        if not self._settings.accounts:
            return None
        accounts = [Aws.ACCOUNT_ID, *self._settings.accounts]
        return iam.PolicyDocument(
            statements=[
                iam.PolicyStatement(
                    principals=[iam.AccountPrincipal(account) for account in accounts],
                    actions=["execute-api:Invoke"],
                    resources=["execute-api:/*"],
                )
            ]
        )

    def _workers_url(self) -> str:
        """Let IAM's callers reach the workers' function by a URL; return it.

        Other accounts need both rights here, and in their own policies. The second one
        is bound to the URL: whoever may invoke the function itself can make up an
        event, and with it a caller.
        """
        url = self.workers.add_function_url(
            auth_type=lambda_.FunctionUrlAuthType.AWS_IAM
        )
        for account in self._settings.accounts:
            principal = iam.AccountPrincipal(account)
            self.workers.add_permission(
                f"Url{account}",
                principal=principal,
                action="lambda:InvokeFunctionUrl",
                function_url_auth_type=lambda_.FunctionUrlAuthType.AWS_IAM,
            )
            self.workers.add_permission(
                f"ViaUrl{account}",
                principal=principal,
                action="lambda:InvokeFunction",
                invoked_via_function_url=True,
            )
        return url.url

    def _add_route(self, method: str, path: str) -> None:
        parameters = [
            word.strip("{}") for word in path.split("/") if word.startswith("{")
        ]
        self.rest_api.root.resource_for_path(path).add_method(
            method,
            apigateway.LambdaIntegration(
                self.workers if (method, path) in WORK_ROUTES else self.function,
                allow_test_invoke=False,
            ),
            authorization_type=apigateway.AuthorizationType.IAM,
            request_validator=self._validator,
            request_models=self._models(method, path),
            request_parameters={
                f"method.request.path.{name}": True for name in parameters
            },
        )

    def _models(self, method: str, path: str) -> dict[str, apigateway.IModel] | None:
        """Return what a route's body must be, by its media type."""
        if method not in {"POST", "PATCH", "PUT"} or path.endswith(BODILESS):
            return None
        types = ["application/json", *([MERGE_PATCH] if method == "PATCH" else [])]
        return dict.fromkeys(types, self._object)

    def _acknowledge_findings(self) -> None:
        acknowledge(
            self.rest_api,
            "AwsSolutions-COG4",
            "Callers are roles and services, signed by IAM; there are no user pools.",
        )
        acknowledge(
            self.rest_api,
            "AwsSolutions-APIG3",
            "Nothing unsigned gets in; who wants a web ACL attaches the account's own.",
        )
        if self._settings.api_log_role:
            acknowledge(
                self.rest_api,
                "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/"
                "service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
                "The policy that AWS keeps for this one purpose.",
            )

    def _add_refusal(
        self, response_type: apigateway.ResponseType, status: int, code: str
    ) -> None:
        document = {
            "type": f"urn:hourbell:problem:{code}",
            "title": TITLES[status],
            "status": status,
            "code": code,
            "request_id": "$context.requestId",
        }
        # The message comes with its quotes.
        text = json.dumps(document)[:-1] + ', "detail": $context.error.messageString}'
        headers = {"Content-Type": f"'{PROBLEM}'"}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = f"'{RETRY_AFTER_SECONDS}'"
        self.rest_api.add_gateway_response(
            response_type.response_type,
            type=response_type,
            status_code=str(status),
            response_headers=headers,
            templates={"application/json": text},
        )


def _access_log_format() -> apigateway.AccessLogFormat:
    field = apigateway.AccessLogField
    return apigateway.AccessLogFormat.custom(
        json.dumps(
            {
                "request_id": field.context_request_id(),
                "time": field.context_request_time(),
                "caller": field.context_identity_user_arn(),
                "ip": field.context_identity_source_ip(),
                "method": field.context_http_method(),
                "path": field.context_resource_path(),
                "status": field.context_status(),
                "latency_ms": field.context_response_latency(),
                "error": field.context_error_message(),
            }
        )
    )
