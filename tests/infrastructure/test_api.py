"""Every route of the API is a resource and method of its own, signed by IAM."""

from typing import Any

import orjson
import pytest
from hourbell import bootstrap
from hourbell.api.problems import (
    CONTENT_TYPE,
    RETRY_AFTER_SECONDS,
    TITLES,
    TYPE_PREFIX,
)

from tests.infrastructure.templates import Assembly, Resource

pytestmark = pytest.mark.xdist_group("infrastructure")

PERMISSION = "AWS::Lambda::Permission"
ROUTES = {
    ("POST", "/v1/schedules"),
    ("GET", "/v1/schedules"),
    ("POST", "/v1/schedules/preview"),
    ("POST", "/v1/schedules/batch"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job_id}"),
    ("GET", "/v1/jobs/{job_id}/results"),
    ("POST", "/v1/jobs/{job_id}/cancel"),
    ("POST", "/v1/jobs/{job_id}/resume"),
    ("PUT", "/v1/schedules/by-name/{name}"),
    ("GET", "/v1/schedules/{schedule_id}"),
    ("PATCH", "/v1/schedules/{schedule_id}"),
    ("DELETE", "/v1/schedules/{schedule_id}"),
    ("POST", "/v1/schedules/{schedule_id}/pause"),
    ("POST", "/v1/schedules/{schedule_id}/resume"),
    ("POST", "/v1/schedules/{schedule_id}/run"),
    ("POST", "/v1/schedules/{schedule_id}/backfill"),
    ("GET", "/v1/schedules/{schedule_id}/versions"),
    ("GET", "/v1/handlers"),
    ("POST", "/v1/handlers"),
    ("GET", "/v1/handlers/{name}"),
    ("PATCH", "/v1/handlers/{name}"),
    ("DELETE", "/v1/handlers/{name}"),
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
    ("PUT", "/v1/admin/tenants/{tenant_id}/principals/{principal}"),
    ("DELETE", "/v1/admin/tenants/{tenant_id}/principals/{principal}"),
    ("GET", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards/resume"),
    ("GET", "/v1/admin/parked"),
    ("POST", "/v1/admin/parked/{parked_id}/retry"),
    ("POST", "/v1/admin/tenants/{tenant_id}/replan"),
    ("GET", "/v1/admin/tenants/{tenant_id}/replan/{job_id}"),
    ("GET", "/v1/admin/tenants/{tenant_id}/replan/{job_id}/results"),
}
# Answered by a function of their own.
OF_WORKERS = {
    ("POST", f"/v1/occurrences/{verb}")
    for verb in ("claim", "heartbeat", "complete", "fail")
}
# Whose body may be missing.
BODILESS = {
    ("POST", "/v1/occurrences/{occurrence_id}/cancel"),
    ("POST", "/v1/occurrences/{occurrence_id}/replay"),
    ("POST", "/v1/schedules/{schedule_id}/pause"),
    ("POST", "/v1/schedules/{schedule_id}/resume"),
    ("POST", "/v1/schedules/{schedule_id}/run"),
    ("POST", "/v1/jobs/{job_id}/cancel"),
    ("POST", "/v1/jobs/{job_id}/resume"),
    ("POST", "/v1/admin/shards/resume"),
    ("PUT", "/v1/admin/tenants/{tenant_id}/principals/{principal}"),
    ("POST", "/v1/admin/parked/{parked_id}/retry"),
    ("POST", "/v1/admin/tenants/{tenant_id}/replan"),
    ("POST", "/v1/dead-letters/replay"),
}


def path_of(assembly: Assembly, resource: str) -> str:
    """Spell the path of a resource from its parents."""
    identifier, _, _ = resource.partition(".")
    if resource.endswith(".RootResourceId"):
        return ""
    (found,) = [
        each
        for each in assembly.of_type("AWS::ApiGateway::Resource")
        if each.logical_id == identifier
    ]
    parent = path_of(assembly, found.properties["ParentId"])
    return f"{parent}/{found.properties['PathPart']}"


def methods(assembly: Assembly) -> dict[tuple[str, str], Resource]:
    return {
        (
            each.properties["HttpMethod"],
            path_of(assembly, each.properties["ResourceId"]),
        ): each
        for each in assembly.of_type("AWS::ApiGateway::Method")
    }


def test_the_routes_are_these(assembly: Assembly) -> None:
    assert set(methods(assembly)) == ROUTES


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_a_route_is_signed_validated_and_calls_the_function(
    assembly: Assembly, route: tuple[str, str]
) -> None:
    method = methods(assembly)[route].properties
    name = "workers" if route in OF_WORKERS else "api"
    function = assembly.function(name).logical_id
    assert method["AuthorizationType"] == "AWS_IAM"
    assert method["RequestValidatorId"]
    assert method["Integration"]["Type"] == "AWS_PROXY"
    assert f"{function}.Arn" in method["Integration"]["Uri"]


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_a_body_must_be_an_object_and_a_path_complete(
    assembly: Assembly, route: tuple[str, str]
) -> None:
    verb, path = route
    model = assembly.one("AWS::ApiGateway::Model")
    method = methods(assembly)[route].properties
    wanted = (
        []
        if route in BODILESS
        else {
            "POST": ["application/json"],
            "PUT": ["application/json"],
            "PATCH": ["application/json", "application/merge-patch+json"],
        }.get(verb, [])
    )
    assert model.properties["Schema"]["type"] == "object"
    assert method.get("RequestModels", {}) == dict.fromkeys(
        wanted, f"{model.logical_id}.Ref"
    )
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    assert method.get("RequestParameters", {}) == {
        f"method.request.path.{name}": True for name in names
    }


def test_bodies_and_paths_are_validated(assembly: Assembly) -> None:
    validator = assembly.one("AWS::ApiGateway::RequestValidator").properties
    assert validator["ValidateRequestBody"] is True
    assert validator["ValidateRequestParameters"] is True


def test_no_resource_is_greedy(assembly: Assembly) -> None:
    parts = [
        each.properties["PathPart"]
        for each in assembly.of_type("AWS::ApiGateway::Resource")
    ]
    assert parts
    assert not [part for part in parts if "+" in part or ":" in part]


def test_the_stage_logs_and_throttles(assembly: Assembly) -> None:
    stage = assembly.one("AWS::ApiGateway::Stage").properties
    (settings,) = stage["MethodSettings"]
    fields = orjson.loads(stage["AccessLogSetting"]["Format"])
    assert stage["StageName"] == "prod"
    assert fields["caller"] == "$context.identity.userArn"
    assert settings["ThrottlingRateLimit"] == 1_000
    assert settings["DataTraceEnabled"] is False


REFUSALS = {
    "ACCESS_DENIED": (403, "forbidden"),
    "BAD_REQUEST_BODY": (400, "invalid_input"),
    "BAD_REQUEST_PARAMETERS": (400, "invalid_input"),
    "DEFAULT_4XX": (403, "forbidden"),
    "DEFAULT_5XX": (500, "internal_error"),
    "EXPIRED_TOKEN": (403, "forbidden"),
    "INTEGRATION_FAILURE": (503, "unavailable"),
    "INTEGRATION_TIMEOUT": (503, "unavailable"),
    "INVALID_SIGNATURE": (403, "forbidden"),
    "MISSING_AUTHENTICATION_TOKEN": (403, "forbidden"),
    "REQUEST_TOO_LARGE": (413, "body_too_large"),
    "RESOURCE_NOT_FOUND": (404, "unknown_route"),
    "THROTTLED": (429, "quota_exceeded"),
    "UNSUPPORTED_MEDIA_TYPE": (415, "unsupported_media_type"),
}


def test_refusals_of_the_gateway_are_problems_like_ours(assembly: Assembly) -> None:
    responses = assembly.of_type("AWS::ApiGateway::GatewayResponse")
    assert {each.properties["ResponseType"] for each in responses} == set(REFUSALS)
    for response in responses:
        properties = response.properties
        status, code = REFUSALS[properties["ResponseType"]]
        template = properties["ResponseTemplates"]["application/json"]
        text = template.replace("$context.error.messageString", '"message"')
        assert orjson.loads(text) == {
            "type": TYPE_PREFIX + code,
            "title": TITLES[status],
            "status": status,
            "code": code,
            "request_id": "$context.requestId",
            "detail": "message",
        }
        assert properties["StatusCode"] == str(status)
        headers = {"Content-Type": f"'{CONTENT_TYPE}'"}
        if status == 503:
            headers["Retry-After"] = f"'{RETRY_AFTER_SECONDS}'"
        assert properties["ResponseParameters"] == {
            f"gatewayresponse.header.{name}": value for name, value in headers.items()
        }


def test_without_other_accounts_there_is_no_resource_policy(
    assembly: Assembly,
) -> None:
    api = assembly.one("AWS::ApiGateway::RestApi").properties
    assert "Policy" not in api
    assert api["EndpointConfiguration"] == {"Types": ["REGIONAL"]}


def test_other_accounts_are_let_in_by_name(large_assembly: Assembly) -> None:
    api = large_assembly.one("AWS::ApiGateway::RestApi").properties
    (statement,) = api["Policy"]["Statement"]
    principals = " ".join(statement["Principal"]["AWS"])
    assert statement["Effect"] == "Allow"
    assert statement["Action"] == "execute-api:Invoke"
    assert "111111111111" in principals
    assert "222222222222" in principals
    assert "AWS::AccountId" in principals
    assert "*" not in principals


def test_workers_have_a_url_of_their_own_that_asks_for_a_signature(
    assembly: Assembly,
) -> None:
    url = assembly.one("AWS::Lambda::Url")
    assert url.properties["AuthType"] == "AWS_IAM"
    assert "Cors" not in url.properties
    function = assembly.function("workers").logical_id
    assert url.properties["TargetFunctionArn"] == f"{function}.Arn"
    output = assembly.templates["HourbellApi"]["Outputs"]["WorkersUrl"]["Value"]
    found = assembly.resolve("HourbellApi", output)
    assert found == f"{url.logical_id}.FunctionUrl"


def invokers(assembly: Assembly) -> list[dict[str, Any]]:
    """Return who may invoke a function, but for API Gateway."""
    permissions = [each.properties for each in assembly.of_type(PERMISSION)]
    return [
        each
        for each in permissions
        if each["Principal"] not in {"apigateway.amazonaws.com", "events.amazonaws.com"}
    ]


def test_without_other_accounts_only_aws_invokes_functions(assembly: Assembly) -> None:
    assert invokers(assembly) == []


def test_other_accounts_reach_the_workers_by_the_url_alone(
    large_assembly: Assembly,
) -> None:
    function = f"{large_assembly.function('workers').logical_id}.Arn"
    found = invokers(large_assembly)
    assert {each["FunctionName"] for each in found} == {function}
    for account in ("111111111111", "222222222222"):
        theirs = [each for each in found if account in str(each["Principal"])]
        by_action = {each["Action"]: each for each in theirs}
        assert len(theirs) == len(by_action) == 2
        url = by_action["lambda:InvokeFunctionUrl"]
        assert url["FunctionUrlAuthType"] == "AWS_IAM"
        # Whoever invokes the function itself makes up who is calling.
        assert by_action["lambda:InvokeFunction"]["InvokedViaFunctionUrl"] is True


def test_the_url_is_an_output(assembly: Assembly) -> None:
    output = assembly.templates["HourbellApi"]["Outputs"]["ApiUrl"]["Value"]
    url = str(assembly.resolve("HourbellApi", output))
    assert url.startswith("https://RestApi")
    assert ".execute-api." in url


@pytest.mark.parametrize("name", ["api", "workers"])
def test_a_request_gives_up_well_before_its_function_is_ended(
    assembly: Assembly, name: str
) -> None:
    # What is left is for a last attempt, and what is then to be answered.
    left = assembly.function(name).properties["Timeout"] - bootstrap.REQUEST_SECONDS
    assert left >= 6


def test_the_log_of_the_apis_errors_ends_like_all_others(assembly: Assembly) -> None:
    stage = assembly.one("AWS::ApiGateway::Stage")
    assert stage.properties["MethodSettings"][0]["LoggingLevel"] == "ERROR"
    groups = assembly.of_type("AWS::Logs::LogGroup")
    assert {each.properties.get("RetentionInDays") for each in groups} == {30}
    api = assembly.one("AWS::ApiGateway::RestApi").logical_id
    (named,) = [each for each in groups if "LogGroupName" in each.properties]
    found = named.properties["LogGroupName"]
    assert found == f"API-Gateway-Execution-Logs_{api}.Ref/prod"
    # Else API Gateway would be first, and the deployment would fail.
    assert named.logical_id in stage.raw["DependsOn"]


def test_workers_can_be_kept_from_taking_the_room_of_all_others(
    assembly: Assembly, large_assembly: Assembly
) -> None:
    name = "ReservedConcurrentExecutions"
    assert not [
        each for each in assembly.functions().values() if name in each.properties
    ]
    bounded = {
        function: each.properties[name]
        for function, each in large_assembly.functions().items()
        if name in each.properties
    }
    assert bounded == {"workers": 200}
