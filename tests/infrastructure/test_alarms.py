"""Alarms watch what exists, tell the topic, and have their page in the runbook."""

import re
from pathlib import Path
from typing import Any

import pytest

from stacks.settings import ROOT
from tests.infrastructure.templates import Assembly, Resource, statements_of

pytestmark = pytest.mark.xdist_group("infrastructure")

ALARM = "AWS::CloudWatch::Alarm"
ENDS = {"work-dlq", "sweep-dlq", "jobs-dlq", "stream-failures", "tick-dlq"}
OVER = "GreaterThanThreshold"
WAITING = ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", OVER, 0, 1, 300)
# Name -> namespace, metric, statistic, comparison, threshold, periods, seconds each.
EXPECTED = {
    "parked-rows": ("Hourbell", "ParkedRows", "Maximum", OVER, 0, 1, 300),
    "watermark-age": ("Hourbell", "WatermarkAge", "Maximum", OVER, 300, 5, 60),
    "pending-age": ("Hourbell", "OldestPendingAge", "Maximum", OVER, 300, 5, 60),
    "no-passes": ("AWS/Lambda", "Invocations", "Sum", "LessThanThreshold", 1, 5, 60),
    "redrive-failing": ("Hourbell", "RedrivesFailed", "Maximum", OVER, 0, 3, 300),
    "redrive-broken": ("AWS/Lambda", "Errors", "Sum", OVER, 0, 3, 300),
    "api-failing": ("AWS/ApiGateway", "5XXError", "Sum", OVER, 0, 3, 300),
    "workers-failing": ("AWS/Lambda", "Url5xxCount", "Sum", OVER, 0, 3, 300),
    **dict.fromkeys(ENDS, WAITING),
}

# Which function measures a metric of ours; the materializer by default.
MEASURED_BY = {
    "redrive-failing": "redrive",
    "redrive-broken": "redrive",
    "workers-failing": "workers",
}


def alarms(assembly: Assembly) -> dict[str, dict[str, Any]]:
    return {
        each.properties["AlarmName"].removeprefix("hourbell-"): each.properties
        for each in assembly.of_type(ALARM)
    }


def dimensions(alarm: dict[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Value"] for each in alarm["Dimensions"]}


def test_the_alarms_are_these(assembly: Assembly) -> None:
    found = {
        name: (
            *(alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]),
            *(alarm["ComparisonOperator"], alarm["Threshold"]),
            *(alarm["EvaluationPeriods"], alarm["Period"]),
        )
        for name, alarm in alarms(assembly).items()
    }
    assert found == EXPECTED


def test_an_alarm_watches_what_the_deployment_has(assembly: Assembly) -> None:
    queues = {
        each.properties["QueueName"] for each in assembly.of_type("AWS::SQS::Queue")
    }
    for name, alarm in alarms(assembly).items():
        watched = dimensions(alarm)
        match alarm["Namespace"]:
            case "Hourbell":
                told = assembly.function(MEASURED_BY.get(name, "materializer"))
                service = told.properties["Environment"]["Variables"]
                assert alarm["Namespace"] == service["POWERTOOLS_METRICS_NAMESPACE"]
                assert watched == {"service": service["POWERTOOLS_SERVICE_NAME"]}
            case "AWS/Lambda":
                called = assembly.function(MEASURED_BY.get(name, "materializer"))
                assert watched == {"FunctionName": called.properties["FunctionName"]}
            case "AWS/ApiGateway":
                api = assembly.one("AWS::ApiGateway::RestApi")
                assert watched == {"ApiName": api.properties["Name"]}
            case _:
                assert watched == {"QueueName": f"hourbell-{name}"}
                assert watched["QueueName"] in queues


def test_metrics_of_hourbell_are_measured_by_a_function(assembly: Assembly) -> None:
    for name, alarm in alarms(assembly).items():
        if alarm["Namespace"] == "Hourbell":
            function = MEASURED_BY.get(name, "materializer")
            source = ROOT.joinpath("functions", function, "handler.py")
            assert f'"{alarm["MetricName"]}"' in source.read_text("utf-8")


def test_every_queue_in_which_failures_of_ours_end_has_an_alarm(
    assembly: Assembly,
) -> None:
    names = {
        each.properties["QueueName"].removeprefix("hourbell-")
        for each in assembly.of_type("AWS::SQS::Queue")
    }
    tiers = ("premium-", "standard-", "basic-")
    ends = {
        name
        for name in names
        if name.endswith(("-dlq", "-failures")) and not name.startswith(tiers)
    }
    assert ends <= set(alarms(assembly))


def test_a_dlq_that_ends_nowhere_has_alarms_on_the_function_that_reads_it(
    assembly: Assembly,
) -> None:
    # What it measures tells of messages that fail, but not of calls that crash.
    watched = {
        alarm["MetricName"]
        for name, alarm in alarms(assembly).items()
        if MEASURED_BY.get(name) == "redrive"
    }
    assert watched == {"RedrivesFailed", "Errors"}


def test_every_way_to_call_has_an_alarm_on_what_it_answers(assembly: Assembly) -> None:
    watched = {
        (alarm["MetricName"], *dimensions(alarm).values())
        for alarm in alarms(assembly).values()
    }
    apis = assembly.of_type("AWS::ApiGateway::RestApi")
    ways = {("5XXError", each.properties["Name"]) for each in apis}
    urls = assembly.of_type("AWS::Lambda::Url")
    functions = {
        f"{each.logical_id}.Arn": each.properties["FunctionName"]
        for each in assembly.of_type("AWS::Lambda::Function")
    }
    ways |= {
        ("Url5xxCount", functions[each.properties["TargetFunctionArn"]])
        for each in urls
    }
    assert len(ways) == 2
    assert ways <= watched


def test_silence_is_no_alarm_but_where_passes_should_be(assembly: Assembly) -> None:
    silent = {
        name
        for name, alarm in alarms(assembly).items()
        if alarm["TreatMissingData"] == "breaching"
    }
    assert silent == {"no-passes"}


def test_beginning_and_end_of_an_alarm_are_told(assembly: Assembly) -> None:
    topic = assembly.one("AWS::SNS::Topic")
    for alarm in alarms(assembly).values():
        assert (
            alarm["AlarmActions"] == alarm["OKActions"] == [f"{topic.logical_id}.Ref"]
        )


def test_cloudwatch_may_publish_for_this_account_only_and_nobody_in_plain_http(
    assembly: Assembly,
) -> None:
    policy: Resource = assembly.one("AWS::SNS::TopicPolicy")
    allowed, denied = sorted(statements_of(policy), key=lambda each: each["Effect"])
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Action"] == ["sns:Publish"]
    assert allowed["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "AWS::AccountId.Ref"}
    }
    assert denied["Effect"] == "Deny"
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_addresses_are_told_if_there_are_any(
    assembly: Assembly, large_assembly: Assembly
) -> None:
    kind = "AWS::SNS::Subscription"
    assert assembly.of_type(kind) == []
    told = {each.properties["Endpoint"] for each in large_assembly.of_type(kind)}
    assert told == {"ops@example.com", "night@example.com"}


def test_alarms_can_be_left_out_and_the_local_stack_has_none(
    local_assembly: Assembly, synthesized: Path
) -> None:
    assert local_assembly.of_type(ALARM) == []
    assert Assembly(synthesized / "quiet").of_type(ALARM) == []


def test_every_alarm_has_its_section_in_the_runbook(assembly: Assembly) -> None:
    runbook = ROOT.joinpath("docs", "runbook.md").read_text("utf-8")
    sections = re.split(r"^## ", runbook, flags=re.MULTILINE)[1:]
    told = {name: text for name, _, text in (each.partition("\n") for each in sections)}
    for name, alarm in alarms(assembly).items():
        assert alarm["AlarmDescription"].endswith(f"See docs/runbook.md#{name}.")
        for question in ("**What it means.**", "**Look at.**", "**Do.**"):
            assert question in told[name], (name, question)
