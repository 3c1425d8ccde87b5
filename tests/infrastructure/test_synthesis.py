"""Synthesis: nothing unexplained, clear refusals, far from CloudFormation's limits."""

from pathlib import Path

import orjson
import pytest

from tests.infrastructure.synthesis import VARIANTS
from tests.infrastructure.templates import STACKS, Assembly

pytestmark = pytest.mark.xdist_group("infrastructure")

SOUND = ["default", "local", "large", "quiet"]
MAX_RESOURCES = 500
MAX_TEMPLATE_BYTES = 1_000_000
MAX_ENVIRONMENT_BYTES = 4_096


def findings(folder: Path) -> list[str]:
    """Return the rules that the validation report names as broken."""
    report = orjson.loads((folder / "validation-report.json").read_bytes())
    return [
        f"{violation['ruleName']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
    ]


def test_every_variant_was_tried(outcomes: dict[str, str | None]) -> None:
    assert set(outcomes) == set(VARIANTS)


@pytest.mark.parametrize("variant", SOUND)
def test_no_finding_is_unexplained(
    outcomes: dict[str, str | None], synthesized: Path, variant: str
) -> None:
    assert outcomes[variant] is None
    assert findings(synthesized / variant) == []


def test_a_planted_violation_fails_the_synthesis(
    outcomes: dict[str, str | None], synthesized: Path
) -> None:
    assert str(outcomes["planted"]).startswith("ValidationFailed")
    broken = findings(synthesized / "planted")
    assert [rule for rule in broken if "SQS4" in rule]
    assert [rule for rule in broken if "SQS3" in rule]


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("unknown-platform", "context platform=mainframe: allowed are lambda, local"),
        ("too-many-groups", "context shard_groups=8: allowed are 1 to 4"),
        ("no-operator", "context platform_principals: arn:aws:iam::111111111111:root"),
        ("no-tenant", "context dedicated_tenants: Acme"),
        ("long-tenant", "makes queue names too long"),
        ("no-address", "context alarm_emails: ops"),
        ("no-queue", "context external_queue_arns: *"),
        ("no-layer", "run `python3 dev.py layers` first"),
    ],
)
def test_a_wrong_choice_is_named_with_what_is_allowed(
    outcomes: dict[str, str | None], variant: str, message: str
) -> None:
    assert message in str(outcomes[variant])


@pytest.mark.parametrize("stack", STACKS)
def test_templates_keep_far_from_the_limits(assembly: Assembly, stack: str) -> None:
    size = (assembly.folder / f"{stack}.template.json").stat().st_size
    assert len(assembly.templates[stack]["Resources"]) <= MAX_RESOURCES / 2
    assert size <= MAX_TEMPLATE_BYTES / 2


def test_environments_fit_into_lambdas_limit(assembly: Assembly) -> None:
    url = "https://sqs.ap-southeast-1.amazonaws.com/123456789012/" + "x" * 80
    for function in assembly.functions().values():
        variables = function.properties["Environment"]["Variables"]
        size = sum(len(name) + len(value) for name, value in variables.items())
        # References are longer once they are URLs.
        references = str(variables).count(".Ref")
        assert size + references * len(url) <= MAX_ENVIRONMENT_BYTES


def test_termination_protection_is_a_choice(synthesized: Path) -> None:
    manifest = orjson.loads((synthesized / "large" / "manifest.json").read_bytes())
    protected = {
        name
        for name, artifact in manifest["artifacts"].items()
        if artifact.get("properties", {}).get("terminationProtection")
    }
    assert protected == set(STACKS)


def test_nothing_in_the_templates_names_an_account(assembly: Assembly) -> None:
    manifest = orjson.loads((assembly.folder / "manifest.json").read_bytes())
    environments = {
        artifact["environment"]
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert environments == {"aws://unknown-account/unknown-region"}
