"""`hourbell tenants`, `handlers` and `usage`, against the API's handler."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
import typer
from hourbell.cli import client, handlers, parked, tenants, usage
from hourbell.domain.definition import Handler, Tenant, Tier
from typer.testing import CliRunner, Result

from tests.functions.cli import answer_commands
from tests.functions.conftest import Api
from tests.functions.events import ANN
from tests.functions.test_api_parked import park

PLATFORM = "arn:aws:sts::123456789012:assumed-role/platform/ops-1"
EVE = "arn:aws:iam::222222222222:user/team/eve"

Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command as somebody, its requests answered by the handler."""
    who = [ANN]
    answer_commands(api, monkeypatch, lambda: who[0])

    def invoke(app: typer.Typer, *words: str, arn: str = PLATFORM) -> Result:
        who[0] = arn
        return CliRunner().invoke(app, words)

    return invoke


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_tenant_is_created_changed_and_shown(run: Run) -> None:
    options = (
        *("--tier", "basic", "--principal", EVE, "--schedules", "7"),
        *("--catch-up-per-minute", "90", "--json"),
    )
    created = document(run(tenants.app, "create", "north", *options))
    assert (created["tier"], created["quotas"]["schedules"]) == ("basic", 7)
    done = document(run(tenants.app, "change", "north", "--weight", "3", "--json"))
    assert (done["weight"], done["revision"]) == (3, 2)
    shown = run(tenants.app, "get", "north")
    assert "north" in shown.stdout
    assert "ACTIVE" in shown.stdout
    assert "90 a minute" in shown.stdout
    words = ("change", "north", "--catch-up-per-minute", "30", "--json")
    quotas = document(run(tenants.app, *words))["quotas"]
    assert (quotas["catch_up_per_minute"], quotas["schedules"]) == (30, 7)


def test_a_rate_of_triggers_is_set_and_lifted(run: Run) -> None:
    assert "any number" in run(tenants.app, "get", "acme").stdout
    run(tenants.app, "change", "acme", "--triggers-per-minute", "40")
    assert "40 a minute" in run(tenants.app, "get", "acme").stdout
    words = ("change", "acme", "--any-triggers", "--json")
    assert document(run(tenants.app, *words))["quotas"]["triggers_per_minute"] is None


def test_what_workers_may_do_is_set_and_lifted(run: Run) -> None:
    words = ("change", "acme", "--running", "7", "--retries-per-minute", "40", "--json")
    quotas = document(run(tenants.app, *words))["quotas"]
    assert (quotas["running"], quotas["retries_per_minute"]) == (7, 40)
    assert "40 a minute" in run(tenants.app, "get", "acme").stdout
    lifting = ("change", "acme", "--any-running", "--any-retries", "--json")
    quotas = document(run(tenants.app, *lifting))["quotas"]
    assert (quotas["running"], quotas["retries_per_minute"]) == (None, None)


def test_bounds_of_retry_policies_are_set_and_lifted(run: Run) -> None:
    bounds = ("--retry-attempts", "3", "--retry-deadline-seconds", "600")
    quotas = document(run(tenants.app, "change", "acme", *bounds, "--json"))["quotas"]
    assert (quotas["retry_attempts"], quotas["retry_deadline_seconds"]) == (3, 600)
    assert "600 s" in run(tenants.app, "get", "acme").stdout
    words = ("change", "acme", "--any-deadline", "--json")
    assert (
        document(run(tenants.app, *words))["quotas"]["retry_deadline_seconds"] is None
    )


def test_a_change_may_name_its_revision(run: Run) -> None:
    words = ("change", "acme", "--weight", "3", "--revision", "9")
    refused = run(tenants.app, *words)
    assert refused.exit_code == 1
    assert "precondition_failed" in refused.stderr


def test_a_change_of_nothing_or_nobody_is_refused(run: Run) -> None:
    assert run(tenants.app, "change", "acme").exit_code == 2
    nobody = run(tenants.app, "change", "nobody", "--weight", "3")
    assert nobody.exit_code == 1
    assert "not_found" in nobody.stderr


def test_a_tenant_is_suspended_and_activated(run: Run) -> None:
    suspended = run(tenants.app, "suspend", "acme", "--reason", "[unpaid]")
    assert "SUSPENDED: [unpaid]" in suspended.stdout
    refused = run(usage.app, arn=ANN)
    assert refused.exit_code == 1
    assert "tenant_suspended" in refused.stderr
    active = document(run(tenants.app, "activate", "acme", "--json"))
    assert (active["state"], active["reason"]) == ("ACTIVE", "")


def test_principals_come_and_go(run: Run) -> None:
    words = ("principals", "add", "acme", EVE)
    assert run(tenants.app, *words).stdout == "222222222222:user/team/eve\n"
    listed = run(tenants.app, "principals", "list", "acme")
    assert "222222222222:user/team/eve" in listed.stdout.splitlines()
    gone = document(run(tenants.app, "principals", "remove", "acme", EVE, "--json"))
    assert gone["principal"] == unquote("222222222222:user/team/eve")


def test_lists_have_all_pages(
    run: Run, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 2)
    for number in range(3):
        api.world.directory.register_tenant(Tenant(f"n-{number}", Tier.BASIC), [])
        api.world.directory.register_handler(Handler("acme", f"n-{number}"))
    listed = document(run(tenants.app, "list", "--json"))["tenants"]
    ids = [each["tenant_id"] for each in listed]
    assert ids == ["acme", "dodo", "n-0", "n-1", "n-2", "zenith"]
    found = document(run(handlers.app, "list", "--json", arn=ANN))["handlers"]
    assert [each["name"] for each in found] == ["n-0", "n-1", "n-2", "ring"]
    table = run(handlers.app, "list", arn=ANN).stdout
    assert "n-2" in table
    refused = run(tenants.app, "list", arn=ANN)
    assert refused.exit_code == 1
    assert "forbidden" in refused.stderr


def test_a_handler_lives_from_registration_to_retirement(run: Run) -> None:
    words = ("register", "bill", "--dispatch-rate", "9", "--description", "[bills]")
    registered = run(handlers.app, *words, arn=ANN)
    assert "9 a second" in registered.stdout
    assert "[bills]" in registered.stdout
    any_rate = ("change", "bill", "--any-rate", "--json")
    assert document(run(handlers.app, *any_rate, arn=ANN))["dispatch_rate"] is None
    assert run(handlers.app, "change", "bill", arn=ANN).exit_code == 2
    retired = run(handlers.app, "retire", "bill", arn=ANN)
    assert "RETIRED" in retired.stdout
    restored = run(handlers.app, "restore", "bill", arn=ANN)
    assert "ACTIVE" in restored.stdout
    shown = run(handlers.app, "get", "bill", arn=ANN)
    assert "shared" in shown.stdout


def test_usage_is_a_table(run: Run) -> None:
    shown = run(usage.app, arn=ANN).stdout
    assert shown.startswith("acme, standard\n")
    assert "schedules" in shown


def test_parked_rows_are_listed_and_tried_again(run: Run, api: Api) -> None:
    assert "No row is parked." in run(parked.app, "list").stdout
    _, first = park(api.world, 0)
    _, second = park(api.world, 1, group=1, tenant_id="zenith")
    rows = document(run(parked.app, "list", "--json"))["parked"]
    assert [each["parked_id"] for each in rows] == [first, second]
    for words in (("--group", "1"), ("--tenant", "zenith"), ("--limit", "1")):
        rows = document(run(parked.app, "list", *words, "--json"))["parked"]
        assert len(rows) == 1
    assert "UNSENT" in run(parked.app, "list", "--reason", "UNSENT").stdout
    assert document(run(parked.app, "retry", second, "--json"))["asked_at"]
    shown = run(parked.app, "retry", first)
    assert "20260309T1200Z#0000" in shown.stdout
    refused = run(parked.app, "retry", "nonsense")
    assert refused.exit_code == 1
    assert "not_found" in refused.stderr
