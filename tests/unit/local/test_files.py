"""What the local stack writes down and reads back."""

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.local.batches import Rules
from hourbell.local.directory import StackDirectory, project_root, write_private
from hourbell.local.errors import (
    AlreadyRunning,
    LocalStackError,
    NotPrepared,
    NotRunning,
)
from hourbell.local.pump_config import (
    MappingConfig,
    PumpConfig,
    load_config,
    mappings_of,
    save_config,
)
from hourbell.local.state import (
    Credentials,
    StackState,
    environment_lines,
    load_state,
    parse_environment,
    render_environment,
    save_environment,
    save_state,
)
from hourbell.local.supervisor import local_api_url, local_function_url
from hypothesis import given
from hypothesis import strategies as st

SETTINGS: dict[str, Any] = {
    "EventSourceArn": "arn:aws:dynamodb:us-east-1:0:table/t/stream/x",
    "FunctionName": "relay",
    "StartingPosition": "LATEST",
    "BatchSize": 25,
    "MaximumBatchingWindowInSeconds": 1,
    "ParallelizationFactor": 2,
    "MaximumRetryAttempts": 0,
    "MaximumRecordAgeInSeconds": 60,
    "BisectBatchOnFunctionError": True,
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
    "FilterCriteria": {"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
    "DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:0:dlq"}},
}


def state() -> StackState:
    return StackState(
        stack_id="abc",
        supervisor_pid=1,
        status="ready",
        started_at=12.5,
        region="us-east-1",
        endpoint_url="http://127.0.0.1:1",
        root=Credentials("root", "s", "arn:root"),
        engine_pid=2,
        operator=Credentials("user", "secret", "arn:user"),
        environment={"HOURBELL_QUEUE_URLS": '{"basic-strict": "http://q"}'},
    )


def test_the_state_is_read_back_as_written_and_nobody_else_may_read_it(
    tmp_path: Path,
) -> None:
    directory = StackDirectory(tmp_path)
    save_state(directory, state())
    assert load_state(directory) == state()
    assert stat.S_IMODE(directory.state_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", [None, "", "{", "{}", '{"version": 0}'])
def test_without_a_readable_state_nothing_runs(tmp_path: Path, text: str) -> None:
    directory = StackDirectory(tmp_path)
    if text is not None:
        directory.state_file.write_text(text)
    with pytest.raises(NotRunning) as caught:
        load_state(directory)
    assert "hourbell local up" in caught.value.explain()


def test_queue_urls_come_from_what_the_functions_were_told() -> None:
    assert state().queue_urls == {"basic-strict": "http://q"}


def test_the_shell_file_names_the_operator_and_never_root(tmp_path: Path) -> None:
    directory = StackDirectory(tmp_path)
    save_environment(directory, state())
    found = parse_environment(directory.env_file.read_text())
    assert found == environment_lines(state())
    assert found["AWS_ACCESS_KEY_ID"] == "user"
    assert "root" not in found.values()
    assert stat.S_IMODE(directory.env_file.stat().st_mode) == 0o600


def test_a_shell_reads_the_file_as_python_does(tmp_path: Path) -> None:
    file = tmp_path / "env"
    written = {"A": "plain", "B": '{"k": "it\'s $HOME `x`"}', "C": ""}
    file.write_text(render_environment(written))
    shell = subprocess.run(
        ["/bin/sh", "-c", f'. {file}; printf "%s\\n%s\\n%s" "$A" "$B" "$C"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout.split("\n") == list(written.values())
    assert parse_environment(file.read_text()) == written


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text()))
def test_any_value_survives_the_shell_file(values: dict[str, str]) -> None:
    assert parse_environment(render_environment(values)) == values


def test_a_mapping_reads_every_property_that_the_pump_honours() -> None:
    mapping = MappingConfig.of("StreamToRelay", SETTINGS)
    assert mapping.rules == Rules(
        bisect=True, report_item_failures=True, max_retries=0, max_age_seconds=60.0
    )
    assert (mapping.batch_size, mapping.window_seconds) == (25, 1.0)
    assert (mapping.parallelization, mapping.starting_position) == (2, "LATEST")
    assert mapping.filters == ({"eventName": ["INSERT"]},)
    assert mapping.on_failure == "arn:aws:sqs:us-east-1:0:dlq"


def test_a_mapping_without_options_has_lambdas_defaults() -> None:
    bare = {name: SETTINGS[name] for name in list(SETTINGS)[:3]}
    mapping = MappingConfig.of("StreamToRelay", bare)
    assert (mapping.batch_size, mapping.parallelization) == (100, 1)
    assert mapping.rules == Rules()


@pytest.mark.parametrize(
    "change",
    [
        {"StartingPosition": "AT_TIMESTAMP"},
        {"DestinationConfig": {"OnFailure": {"Destination": "arn:aws:s3:::bucket"}}},
    ],
)
def test_what_the_pump_cannot_honour_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="local stream pump needs"):
        MappingConfig.of("StreamToRelay", {**SETTINGS, **change})


def test_mappings_that_are_switched_off_are_left_out() -> None:
    off = {**SETTINGS, "Enabled": False}
    found = mappings_of({"On": SETTINGS, "Off": off})
    assert [mapping.name for mapping in found] == ["On"]


def test_the_pumps_settings_are_read_back_as_written(tmp_path: Path) -> None:
    config = PumpConfig("http://e", "us-east-1", "c", "r", mappings_of({"M": SETTINGS}))
    save_config(tmp_path / "pump.json", config)
    assert load_config(tmp_path / "pump.json") == config


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "https://a1b2.execute-api.us-east-1.amazonaws.com/prod/",
            "http://127.0.0.1:9/_aws/execute-api/a1b2/prod",
        ),
        ("http://elsewhere/v1/", "http://elsewhere/v1"),
        ("", ""),
    ],
)
def test_the_apis_url_becomes_the_engines_path(output: str, expected: str) -> None:
    assert local_api_url(output, "http://127.0.0.1:9") == expected


def test_a_directory_holds_one_stack_at_a_time(tmp_path: Path) -> None:
    directory = StackDirectory(tmp_path)
    with directory.locked():
        assert directory.is_locked()
        with pytest.raises(AlreadyRunning, match="already runs"), directory.locked():
            pass
    assert not directory.is_locked()


def test_wiping_leaves_what_is_not_the_stacks(tmp_path: Path) -> None:
    directory = StackDirectory(tmp_path)
    other = tmp_path / "engine-venv" / "python"
    other.parent.mkdir()
    other.touch()
    save_state(directory, state())
    leaked = directory.run / "tmp" / "ministack-lambda-x"
    leaked.mkdir(parents=True)
    directory.wipe()
    assert other.exists()
    assert not leaked.exists()
    assert not directory.state_file.exists()
    assert (directory.run / "tmp").is_dir()


def test_a_private_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_private(file, "one")
    write_private(file, "two")
    assert file.read_text() == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_the_project_is_found_from_a_folder_below_it(tmp_path: Path) -> None:
    for name in ("app.py", "cdk.json"):
        (tmp_path / name).touch()
    below = tmp_path / "stacks" / "deep"
    below.mkdir(parents=True)
    assert project_root(below) == tmp_path.resolve()


def test_an_error_explains_itself_with_its_log_and_a_hint(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("\n".join(f"line {number}" for number in range(40)))
    error = LocalStackError("It broke.", log=log, hint="turn it off and on")
    text = error.explain()
    assert text.startswith("It broke.\n")
    assert "line 39" in text
    assert "line 2\n" not in text
    assert f"Log: {log}" in text
    assert text.endswith("Try: turn it off and on")


def test_each_kind_of_error_has_its_exit_code() -> None:
    kinds = (LocalStackError, NotRunning, AlreadyRunning, NotPrepared)
    assert len({kind.exit_code for kind in kinds}) == len(kinds)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-east-1.on.aws/",
            "http://127.0.0.1:9/_aws/lambda-url/abcdefghijklmnopqrstuvwxyz012345",
        ),
        ("http://elsewhere/", "http://elsewhere"),
        ("", ""),
    ],
)
def test_the_url_of_a_function_becomes_the_engines(output: str, expected: str) -> None:
    assert local_function_url(output, "http://127.0.0.1:9") == expected
