"""Every route of the API is a resource and method of its own, signed by IAM."""

import orjson
import pytest

from tests.infrastructure.templates import Assembly, Resource

pytestmark = pytest.mark.xdist_group("infrastructure")

ROUTES = {
    ("POST", "/v1/schedules"),
    ("POST", "/v1/schedules/preview"),
    ("GET", "/v1/schedules/{schedule_id}"),
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
    function = assembly.function("api").logical_id
    assert method["AuthorizationType"] == "AWS_IAM"
    assert method["RequestValidatorId"]
    assert method["Integration"]["Type"] == "AWS_PROXY"
    assert f"{function}.Arn" in method["Integration"]["Uri"]


def test_a_body_must_be_an_object_and_a_path_complete(assembly: Assembly) -> None:
    found = methods(assembly)
    model = assembly.one("AWS::ApiGateway::Model")
    validator = assembly.one("AWS::ApiGateway::RequestValidator").properties
    create = found["POST", "/v1/schedules"].properties
    get = found["GET", "/v1/schedules/{schedule_id}"].properties
    assert model.properties["Schema"]["type"] == "object"
    assert create["RequestModels"] == {"application/json": f"{model.logical_id}.Ref"}
    assert get["RequestParameters"] == {"method.request.path.schedule_id": True}
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


def test_refusals_of_the_gateway_are_problems(assembly: Assembly) -> None:
    responses = assembly.of_type("AWS::ApiGateway::GatewayResponse")
    codes = {}
    for response in responses:
        header = response.properties["ResponseParameters"]
        template = response.properties["ResponseTemplates"]["application/json"]
        body = orjson.loads(
            template.replace("$context.error.messageString", '"message"')
        )
        assert list(header.values()) == ["'application/problem+json'"]
        assert str(body["status"]) == response.properties["StatusCode"]
        codes[response.properties["ResponseType"]] = body["code"]
    assert codes["BAD_REQUEST_BODY"] == "invalid_input"
    assert codes["MISSING_AUTHENTICATION_TOKEN"] == "forbidden"
    assert codes["THROTTLED"] == "quota_exceeded"


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


def test_the_url_is_an_output(assembly: Assembly) -> None:
    output = assembly.templates["HourbellApi"]["Outputs"]["ApiUrl"]["Value"]
    url = str(assembly.resolve("HourbellApi", output))
    assert url.startswith("https://RestApi")
    assert ".execute-api." in url
