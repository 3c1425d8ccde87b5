"""Synthesizes several variants of the app in one process: starting JSII is slow.

Run with the output folder as argument. Each variant is written to a folder of its own;
`outcomes.json` says what went wrong, null where nothing did.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from aws_cdk import App, Stack
from aws_cdk import aws_sqs as sqs

import app as hourbell_app
from stacks.settings import ROOT, SettingError

Plant = Callable[[App], object]


def open_queue(app: App) -> object:
    """Plant a queue that takes plain HTTP and has nowhere to put its failures."""
    stack = app.node.find_child("HourbellQueues")
    assert isinstance(stack, Stack)
    return sqs.Queue(stack, "Open")


VARIANTS: dict[str, tuple[dict[str, object], Plant | None]] = {
    "default": ({}, None),
    "local": ({"platform": "local"}, None),
    "large": (
        {
            "billing": "provisioned",
            "min_capacity": "100",
            "encryption": "customer",
            "warm_writes": "40000",
            "tracing": "true",
            "allowed_accounts": "111111111111, 222222222222",
            "api_log_role": "false",
            "termination_protection": "true",
            "shards": "1024",
            "shard_groups": "64",
            "platform_principals": "arn:aws:iam::111111111111:role/ops/platform, ",
            "dedicated_tenants": "a-1, a1",
            "external_queue_arns": "arn:aws:sqs:*:222222222222:*",
            "alarm_emails": "ops@example.com, night@example.com",
            "workers_concurrency": "200",
        },
        None,
    ),
    "planted": ({}, open_queue),
    "unknown-platform": ({"platform": "mainframe"}, None),
    "too-many-groups": ({"shards": "4", "shard_groups": "8"}, None),
    "no-operator": ({"platform_principals": "arn:aws:iam::111111111111:root"}, None),
    "no-tenant": ({"dedicated_tenants": "Acme"}, None),
    "long-tenant": ({"dedicated_tenants": "a" * 60}, None),
    "quiet": ({"alarms": "false"}, None),
    "no-address": ({"alarm_emails": "ops"}, None),
    "no-queue": ({"external_queue_arns": "*"}, None),
    "no-layer": ({"dependencies_layer": "nowhere"}, None),
}


def outcome(
    folder: Path, context: dict[str, object], plant: Plant | None
) -> str | None:
    """Synthesize one variant; return the error's text."""
    try:
        app = hourbell_app.build(outdir=str(folder), context=context)
        if plant is not None:
            plant(app)
        app.synth()
    except (SettingError, RuntimeError) as error:
        return str(error)
    return None


def main(target: Path) -> None:
    layer = target / "layer"
    (layer / "python").mkdir(parents=True)
    (layer / "python" / "package.py").touch()
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    base = {**flags, "dependencies_layer": str(layer)}
    outcomes = {
        name: outcome(target / name, {**base, **context}, plant)
        for name, (context, plant) in VARIANTS.items()
    }
    (target / "outcomes.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
