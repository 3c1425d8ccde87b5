"""Run a developer command: `python3 dev.py <command> [arguments]`.

This file is the one index of developer commands. It needs nothing but Python 3.11's
standard library: what else a command needs, it installs from the locks into the
project's own folders (`.venv`, `node_modules`, `.local/engine-venv`).
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - says it before a newer syntax does
    sys.exit(f"dev.py needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

from devtools import commands, shell

COMMANDS = {
    "demo": (commands.demo, "watch 203 schedules reach their queues [--json --keep]"),
    "test": (
        commands.test,
        "run the fast tests, --all of the gate, or the --long ones",
    ),
    "check": (commands.check, "run the whole gate, as CI does"),
    "up": (commands.up, "start the local stack and stay in front of it [--detach]"),
    "down": (commands.down, "stop the local stack"),
    "synth": (commands.synth, "write the CloudFormation templates, checked by cdk-nag"),
    "bench": (
        commands.bench,
        "measure: api | blackout | cron | idle | outage | writes [--json]",
    ),
    "simulate": (
        commands.simulate,
        "run seeded worlds full of faults [--seeds N --seed S]",
    ),
    "crash": (
        commands.crash,
        "stop a process at every port call of an occurrence's life [--json]",
    ),
    "fuzz": (commands.fuzz, "send made-up requests to the local stack [--cases N]"),
    "schemas": (commands.schemas, "write schemas/openapi.json, or --check it"),
    "tzdata": (
        commands.tzdata,
        "keep the zones' rules of a past release, such as 2026e",
    ),
    "layers": (commands.layers, "build the dependency layer for Lambda and for here"),
    "lock": (commands.lock, "renew the locks, or --check that they are fresh"),
    "format": (commands.format_code, "let ruff fix and format the code"),
    "setup": (commands.setup, "install what every command needs, then stop"),
}


def usage() -> str:
    """Return the list of commands, one line each."""
    lines = [f"  {name:<8} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["usage: python3 dev.py <command> [arguments]", "", *lines])


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code: 2 when there is no such command."""
    name, *rest = arguments or ["--help"]
    if name in {"-h", "--help", "help"}:
        print(usage())
        return 0
    if name not in COMMANDS:
        print(f"dev.py: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    command, _ = COMMANDS[name]
    try:
        command(rest)
    except shell.StepFailedError as failure:
        shell.complain(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
