"""The developer commands: each takes its own arguments and raises when it fails."""

from __future__ import annotations

from devtools import environments, gate, locks, shell
from devtools import layers as layer_builds

FAST = "not e2e and not slow"


def setup(arguments: list[str]) -> None:
    """Install what every command needs."""
    no_more(arguments)
    prepare()


def prepare() -> None:
    """Install what a run of the local stack needs: all environments and layers."""
    environments.ensure_venv()
    environments.ensure_engine()
    environments.ensure_node()
    for target in layer_builds.TARGETS:
        layer_builds.ensure(target)


def demo(arguments: list[str]) -> None:
    """Run the demo on a local stack of its own."""
    prepare()
    shell.become("demo", [environments.PYTHON, "-m", "hourbell.local.demo", *arguments])


def up(arguments: list[str]) -> None:
    """Start the local stack."""
    prepare()
    shell.become("up", [environments.VENV / "bin/hourbell", "local", "up", *arguments])


def down(arguments: list[str]) -> None:
    """Stop the local stack, with the environment that is there, fresh or not."""
    program = environments.VENV / "bin/hourbell"
    if not program.exists():
        environments.ensure_venv()
    shell.become("down", [program, "local", "down", *arguments])


def test(arguments: list[str]) -> None:
    """Run the fast tests, all of the gate with `--all`, or what it leaves to `--long`.

    Other arguments are pytest's.
    """
    everything, long = "--all" in arguments, "--long" in arguments
    rest = [each for each in arguments if each not in {"--all", "--long"}]
    prepare()
    # Naming tests or a marker is a choice already; nothing more is left out then.
    if any(word.startswith("tests") or word in {"-m", "-k"} for word in rest):
        gate.pytest("chosen tests", rest)
    elif long:
        gate.pytest("long tests", ["-m", "long and not e2e", *rest])
        gate.pytest("long end-to-end tests", ["-m", "long and e2e", *rest], workers="0")
    elif everything:
        gate.pytest("tests", ["-m", gate.UNTIMED, *rest])
        gate.timed_tests(rest)
    else:
        gate.pytest("fast tests", ["-m", FAST, *rest])


def check(arguments: list[str]) -> None:
    """Run the whole gate."""
    no_more(arguments)
    gate.check(prepare)


def synth(arguments: list[str]) -> None:
    """Write the CloudFormation templates to cdk.out."""
    environments.ensure_venv()
    environments.ensure_node()
    for target in layer_builds.TARGETS:
        layer_builds.ensure(target)
    gate.synth(arguments)


def bench(arguments: list[str]) -> None:
    """Run one benchmark of loadtest/bench, named by the first argument."""
    known = sorted(
        path.stem
        for path in (shell.ROOT / "loadtest" / "bench").glob("*.py")
        if not path.stem.startswith("_")
    )
    name, *rest = arguments or [""]
    if name not in known:
        raise shell.StepFailedError("bench", 2, f"name one of: {', '.join(known)}")
    prepare()
    shell.become("bench", [environments.PYTHON, "-m", f"loadtest.bench.{name}", *rest])


def simulate(arguments: list[str]) -> None:
    """Run seeds of the simulation; the arguments are its own."""
    environments.ensure_venv()
    module = "tests.simulation.run"
    shell.become("simulate", [environments.PYTHON, "-m", module, *arguments])


def crash(arguments: list[str]) -> None:
    """Enumerate the crashes of occurrences' lives; the arguments are its own."""
    prepare()
    module = "tests.simulation.crash"
    shell.become("crash", [environments.PYTHON, "-m", module, *arguments])


def fuzz(arguments: list[str]) -> None:
    """Send made-up requests to the API of a local stack of its own."""
    prepare()
    shell.become("fuzz", [environments.PYTHON, "-m", "loadtest.fuzz_api", *arguments])


def schemas(arguments: list[str]) -> None:
    """Write the OpenAPI document, or only say with `--check` whether it is current."""
    environments.ensure_venv()
    gate.schemas(arguments)


def tzdata(arguments: list[str]) -> None:
    """Keep the rules of a past release of the zone database."""
    environments.ensure_venv()
    module = "devtools.zone_history"
    shell.become("tzdata", [environments.PYTHON, "-m", module, *arguments])


def layers(arguments: list[str]) -> None:
    """Build the dependency layers, or those named: lambda, local."""
    environments.ensure_venv()
    for target in arguments or layer_builds.TARGETS:
        if target not in layer_builds.TARGETS:
            raise shell.StepFailedError("layers", 2, f"no target {target!r}")
        folder = layer_builds.ensure(target)
        size = layer_builds.megabytes(folder)
        print(f"{folder.relative_to(shell.ROOT)}: {size:.1f} MB unzipped")


def lock(arguments: list[str]) -> None:
    """Renew the locks, or only say with `--check` whether they are fresh."""
    if "--check" in arguments:
        gate.check_locks()
        return
    environments.ensure_venv()
    locks.renew(shell.ROOT, arguments)


def format_code(arguments: list[str]) -> None:
    """Let ruff repair what it can, then format."""
    environments.ensure_venv()
    shell.run("ruff check --fix", ["ruff", "check", "--fix-only", *arguments])
    shell.run("ruff format", ["ruff", "format", *arguments])


def no_more(arguments: list[str]) -> None:
    """Refuse arguments where a command takes none.

    Raises:
        StepFailedError: There are arguments (code 2).
    """
    if arguments:
        raise shell.StepFailedError("arguments", 2, f"unknown: {' '.join(arguments)}")
