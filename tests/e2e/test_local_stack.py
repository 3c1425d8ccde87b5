"""The local stack repairs the engine, survives deaths, and leaves nothing behind."""

import http.client
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningKeys
from botocore.exceptions import ClientError
from hourbell.local import iam
from hourbell.local.assembly import read_assembly
from hourbell.local.deploy import Deployer
from hourbell.local.engine import ACCOUNT, REGION
from hourbell.local.errors import AlreadyRunning, DeployFailed, LocalStackError
from hourbell.local.processes import stack_processes
from hourbell.local.stack import attach, running, take_down
from hourbell.local.state import Credentials, parse_environment
from hourbell.local.supervisor import Options
from hourbell.local.translate import add_engine_actions

from tests.e2e.conftest import Probe, Supervisor, eventually, probe_in
from tests.e2e.probe.assembly import (
    FAILURES,
    QUEUE,
    QUEUE_FUNCTION,
    STREAM_FUNCTION,
    TABLE,
    write_assembly,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timed]


def get(url: str, keys: Credentials | None = None) -> tuple[int, str]:
    """Call the HTTP API, signed when there are keys."""
    request = AWSRequest("GET", url)
    if keys is not None:
        signing = SigningKeys(keys.access_key_id, keys.secret_access_key)
        SigV4Auth(signing, "execute-api", "us-east-1").add_auth(request)
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=30)
    connection.request("GET", place.path, headers=dict(request.headers.items()))
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def failure_messages(probe: Probe) -> list[dict[str, Any]]:
    """Take what lies on the on-failure queue."""
    queue = probe.stack.admin_session().client("sqs")
    url = probe.stack.queues[FAILURES]
    found = queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    messages = found.get("Messages", [])
    for message in messages:
        queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in messages]


def test_every_change_reaches_the_function_once(probe: Probe) -> None:
    keys = [f"once-{number}" for number in range(25)]
    probe.put(*keys)
    probe.wait(lambda: all(probe.seen(key) for key in keys), "25 records")
    probe.put("marker")
    probe.wait(lambda: bool(probe.seen("marker")), "the marker")
    assert [len(probe.seen(key)) for key in keys] == [1] * 25
    assert probe.seen(keys[0])[0]["arn"].startswith("arn:aws:dynamodb:")


def test_records_that_the_filter_does_not_want_stay_away(probe: Probe) -> None:
    probe.put("filtered")
    table = probe.stack.admin_session().client("dynamodb")
    table.delete_item(TableName=TABLE, Key={"pk": {"S": "filtered"}})
    probe.put("after-filtered")
    probe.wait(lambda: bool(probe.seen("after-filtered")), "the record behind it")
    assert len(probe.seen("filtered")) == 1


def test_partiql_writes_reach_the_stream_too(probe: Probe) -> None:
    table = probe.stack.admin_session().client("dynamodb")
    insert = f"INSERT INTO \"{TABLE}\" VALUE {{'pk': ?}}"
    change = f'UPDATE "{TABLE}" SET n = 1 WHERE pk = ?'  # noqa: S608
    for statement in (insert, change):
        table.batch_execute_statement(
            Statements=[{"Statement": statement, "Parameters": [{"S": "packed"}]}]
        )
    probe.wait(lambda: len(probe.seen("packed")) == 2, "two records")


def test_a_reported_failure_is_tried_again(probe: Probe) -> None:
    probe.put("again", wish="fail-once")
    probe.wait(lambda: len(probe.seen("again")) == 2, "a second try")
    assert [entry["failed"] for entry in probe.seen("again")] == [True, False]


def test_a_poison_record_is_given_up_and_the_next_ones_pass(probe: Probe) -> None:
    probe.put("poison", wish="fail")
    probe.put("behind-poison")
    probe.wait(lambda: bool(probe.seen("behind-poison")), "the record behind it")
    found: list[dict[str, Any]] = []

    def reported() -> bool:
        found.extend(failure_messages(probe))
        return bool(found)

    probe.wait(reported, "the report on the on-failure queue")
    info = found[0]["DDBStreamBatchInfo"]
    assert found[0]["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert info["batchSize"] == 1
    assert info["startSequenceNumber"] == info["endSequenceNumber"]


def test_a_slow_stream_function_does_not_hold_up_the_queues(probe: Probe) -> None:
    queue = probe.stack.admin_session().client("sqs")
    url = probe.stack.queues[QUEUE]

    def lag(key: str) -> float:
        sent = time.time()
        queue.send_message(QueueUrl=url, MessageBody=json.dumps({"pk": key}))
        probe.wait(lambda: bool(probe.seen(key)), "the queue's message")
        return float(probe.seen(key)[0]["at"]) - sent

    lag("warm-up")
    probe.put("slow", wish="slow")
    time.sleep(0.3)  # the slow call has begun
    assert not probe.seen("slow")
    assert lag("beside-slow") < 1.0
    assert not probe.seen("slow")
    probe.wait(lambda: bool(probe.seen("slow")), "the slow record")


def test_what_the_engines_cloudformation_drops_is_set(probe: Probe) -> None:
    session = probe.stack.admin_session()
    tables, functions = session.client("dynamodb"), session.client("lambda")
    ttl = tables.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    backups = tables.describe_continuous_backups(TableName=TABLE)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    config = functions.get_function_configuration(FunctionName=QUEUE_FUNCTION)
    reserved = functions.get_function_concurrency(FunctionName=QUEUE_FUNCTION)
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "ttl")
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert config["DeadLetterConfig"]["TargetArn"].endswith(f":{FAILURES}")
    assert reserved["ReservedConcurrentExecutions"] == 5


def test_the_api_answers_its_users_and_nobody_else(probe: Probe) -> None:
    url = f"{probe.stack.api_url}/ping"
    tenant = probe.stack.create_user("tenant-a")
    other = probe.stack.create_user("queue-only", iam.allow(["sqs:SendMessage"]))
    forged = Credentials(tenant.access_key_id, "wrong", tenant.arn)
    status, text = get(url, tenant)
    assert (status, json.loads(text)["path"]) == (200, "/ping")
    assert tenant.arn == "arn:aws:iam::000000000000:user/tenant-a"
    assert [get(url, keys)[0] for keys in (None, forged, other)] == [403, 403, 403]


def test_partiql_rights_hold_once_they_are_translated(probe: Probe) -> None:
    untranslated = iam.allow(["dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"])
    translated = json.loads(json.dumps(untranslated))
    add_engine_actions(translated)
    statement = f"INSERT INTO \"{TABLE}\" VALUE {{'pk': 'by-user'}}"

    def insert(name: str, policy: dict[str, Any]) -> None:
        session = probe.stack.session_of(probe.stack.create_user(name, policy))
        client = session.client("dynamodb")
        client.batch_execute_statement(Statements=[{"Statement": statement}])

    with pytest.raises(ClientError, match="not authorized"):
        insert("as-on-aws", untranslated)
    insert("as-the-engine-has-it", translated)
    probe.wait(lambda: bool(probe.seen("by-user")), "the inserted row")


def test_the_shell_file_gives_an_operator_who_is_not_root(probe: Probe) -> None:
    found = parse_environment(probe.stack.directory.env_file.read_text())
    keys = Credentials(found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"], "")
    session = probe.stack.session_of(keys)
    identity = session.client("sts").get_caller_identity()["Arn"]
    assert identity.endswith(":user/hourbell-operator")
    assert found["HOURBELL_TABLE_TIMELINE"] == TABLE
    assert session.client("dynamodb").describe_table(TableName=TABLE)["Table"]
    with pytest.raises(ClientError, match="not authorized"):
        session.client("iam").list_users()


def test_a_functions_lines_are_found_by_its_name(probe: Probe) -> None:
    probe.put("logged")
    probe.wait(
        lambda: f"probe {STREAM_FUNCTION}" in probe.stack.log_lines("stream"),
        "the function's line",
    )
    with pytest.raises(LocalStackError, match="No log is named 'nothing'"):
        probe.stack.log_lines("nothing")


def test_a_second_stack_in_the_same_place_is_refused(probe: Probe) -> None:
    root = probe.stack.directory.root
    with pytest.raises(AlreadyRunning), running(root, reuse=False):
        pass
    with running(root) as attached:
        assert attached.engine_pid == probe.stack.engine_pid
    assert attach(probe.stack.directory).api_url == probe.stack.api_url


def test_a_killed_worker_is_replaced(probe: Probe) -> None:
    probe.put("before-kill")
    probe.wait(lambda: bool(probe.seen("before-kill")), "a first record")
    assert probe.stack.kill_workers(STREAM_FUNCTION)
    probe.put("after-kill")
    probe.wait(lambda: bool(probe.seen("after-kill")), "the record after the kill")


def test_a_killed_pump_goes_on_where_it_was(probe: Probe) -> None:
    restarts = probe.stack.state.pump_restarts
    killed = probe.stack.kill_pump()
    keys = [f"while-dead-{number}" for number in range(5)]
    probe.put(*keys)
    probe.wait(lambda: all(probe.seen(key) for key in keys), "what came meanwhile")
    probe.wait(
        lambda: probe.stack.state.pump_restarts > restarts, "the restart in the state"
    )
    assert probe.stack.pump_pid not in {None, killed}
    assert len(probe.seen("once-0")) == 1


def test_the_pump_stays_dead_when_asked_to(tmp_path: Path) -> None:
    with probe_in(tmp_path, {"restart_pump": False}) as probe:
        probe.put("alive")
        probe.wait(lambda: bool(probe.seen("alive")), "a first record")
        probe.stack.kill_pump()
        probe.put("dead")
        time.sleep(1.5)
        assert probe.stack.pump_pid is None
        assert not probe.seen("dead")


def test_a_failed_call_is_bisected_to_the_record_that_fails(tmp_path: Path) -> None:
    mapping = {"FunctionResponseTypes": [], "MaximumRetryAttempts": 0}
    with probe_in(tmp_path, {}, mapping=mapping, raises=True) as probe:
        probe.stack.kill_pump()
        probe.put("a", "b")
        probe.put("bad", wish="fail")
        probe.put("c")
        probe.wait(lambda: bool(probe.seen("c")), "the records around it")
        probe.wait(lambda: bool(failure_messages(probe)), "the report")
        assert [entry["failed"] for entry in probe.seen("c")][-1:] == [False]


def test_nothing_is_left_after_the_supervisor_is_killed(
    supervisor: Supervisor,
) -> None:
    stack_id = supervisor.stack_id()
    probe = Probe(attach(supervisor.directory), supervisor.seen_file)
    probe.put("x")
    probe.wait(lambda: bool(probe.seen("x")), "a worker that lives")
    assert len(stack_processes(stack_id)) >= 5  # two guards, engine, pump, worker
    supervisor.process.kill()
    assert eventually(lambda: not stack_processes(stack_id))
    assert not probe.stack.directory.is_locked()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)]
)
def test_nothing_is_left_after_a_signal(
    supervisor: Supervisor, number: signal.Signals, code: int
) -> None:
    stack_id = supervisor.stack_id()
    supervisor.process.send_signal(number)
    assert supervisor.process.wait(15) == code
    assert stack_processes(stack_id) == []
    assert not supervisor.directory.state_file.exists()


def test_a_stack_is_taken_down_from_elsewhere(supervisor: Supervisor) -> None:
    stack_id = supervisor.stack_id()
    assert take_down(supervisor.directory) == 0
    assert supervisor.process.wait(15) == 0
    assert stack_processes(stack_id) == []


def test_a_template_that_is_refused_names_the_resource(tmp_path: Path) -> None:
    with pytest.raises(DeployFailed) as caught, probe_in(tmp_path, {}, break_it=True):
        pass
    assert "ProbeApp" in caught.value.message
    assert "Broken (AWS::Lambda::Function)" in caught.value.message
    assert not (tmp_path / "stack" / "env").exists()


def test_a_port_in_use_is_said(tmp_path: Path, probe: Probe) -> None:
    port = int(probe.stack.endpoint_url.rpartition(":")[2])
    with (
        pytest.raises(LocalStackError, match=f"Port {port} is in use"),
        probe_in(tmp_path, {"port": port}),
    ):
        pass


def test_an_engine_that_does_not_start_shows_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no engine here\nexit 9\n")
    broken.chmod(0o755)
    monkeypatch.setenv("HOURBELL_ENGINE_PYTHON", str(broken))
    with (
        pytest.raises(LocalStackError, match="ended with code 9") as caught,
        probe_in(tmp_path, {}),
    ):
        pass
    assert "no engine here" in caught.value.explain()


def test_the_users_aws_settings_play_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "does-not-exist")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with probe_in(tmp_path, {}) as probe:
        probe.put("x")
        probe.wait(lambda: bool(probe.seen("x")), "a record")
        assert len(probe.seen("x")) == 1


def test_the_command_line_starts_shows_and_stops(tmp_path: Path) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        program = "from hourbell.cli.local import app; app()"
        return subprocess.run(
            [sys.executable, "-c", program, *words, "--dir", str(tmp_path / "stack")],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    assert run("status").returncode == 3
    up = run("up", "--detach")
    assert up.returncode == 0, up.stderr
    shown = json.loads(run("status", "--json").stdout)
    assert (shown["status"], shown["engine_answers"]) == ("ready", True)
    assert run("up", "--detach").returncode == 4
    assert "pumping" in run("logs", "pump").stdout
    assert run("down").returncode == 0
    assert run("down").returncode == 0
    assert run("status").returncode == 3


def test_a_second_deployment_updates_the_stacks(tmp_path: Path, probe: Probe) -> None:
    output = write_assembly(tmp_path, probe.seen_file, mapping={"BatchSize": 3})
    stacks = read_assembly(output, account=ACCOUNT, region=REGION)
    session = probe.stack.admin_session()
    deployer = Deployer(session, tmp_path / "cache", Path(sys.executable))
    deployment = deployer.deploy(stacks)
    mappings = session.client("lambda").list_event_source_mappings(
        FunctionName=STREAM_FUNCTION
    )
    assert deployment.mappings["StreamMapping"]["BatchSize"] == 3
    assert [each["BatchSize"] for each in mappings["EventSourceMappings"]] == [3]
    probe.put("after-update")
    probe.wait(lambda: bool(probe.seen("after-update")), "a record afterwards")
    assert len(probe.seen("after-update")) == 1


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Options().restart_pump is True
    monkeypatch.setenv("HOURBELL_LOCAL_NO_PUMP_RESTART", "1")
    assert Options().restart_pump is False
