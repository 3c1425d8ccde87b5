"""Start the parts of a local stack in order, keep the pump alive, take all down."""

import os
import re
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from hourbell.local import iam
from hourbell.local.assembly import read_assembly
from hourbell.local.clock import now_seconds
from hourbell.local.deploy import Deployer, Deployment
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.engine import (
    ACCOUNT,
    REGION,
    Engine,
    engine_python,
    package_python,
    start_engine,
)
from hourbell.local.errors import LocalStackError
from hourbell.local.imports import check_imports
from hourbell.local.processes import (
    STACK_VARIABLE,
    Guarded,
    clean_environment,
    kill_stack,
    start_guarded,
)
from hourbell.local.progress import Reporter
from hourbell.local.pump_config import PumpConfig, mappings_of, save_config
from hourbell.local.seed import seed
from hourbell.local.state import (
    FAILED,
    READY,
    STARTING,
    Credentials,
    StackState,
    load_state,
    save_environment,
    save_state,
)
from hourbell.local.synth import synthesize

if TYPE_CHECKING:
    import boto3

FIRST_RESTART_SECONDS = 0.2
MAX_RESTART_SECONDS = 5.0
STEADY_SECONDS = 30.0  # a pump that lived this long starts its backoff anew
PUMP_SECONDS = 15.0
PUMP_READY = "pump.ready"
NO_RESTART_VARIABLE = "HOURBELL_LOCAL_NO_PUMP_RESTART"
OWN_VARIABLE = "HOURBELL_"
TABLE_VARIABLE = "HOURBELL_TABLE_"
API_OUTPUT = "ApiUrl"
WORKERS_OUTPUT = "WorkersUrl"
API_ID = re.compile(r"https?://([a-z0-9]+)\.execute-api\.[^/]+/([^/]+)")
FUNCTION_URL_ID = re.compile(r"https://([a-z0-9-]+)\.lambda-url\.")


@dataclass(frozen=True, slots=True)
class Options:
    """How to start a stack.

    Attributes:
        project: root of the project; found from the working directory by default.
        assembly: deploy this CDK output instead of synthesizing the project's app.
        port: the engine's loopback port; a free one by default.
        restart_pump: start the pump again when it ends.
    """

    project: Path | None = None
    assembly: Path | None = None
    port: int | None = None
    restart_pump: bool = field(
        default_factory=lambda: os.environ.get(NO_RESTART_VARIABLE) != "1"
    )


class Supervisor:
    """Owns the processes of one stack; they end when this process does."""

    def __init__(
        self, directory: StackDirectory, options: Options, reporter: Reporter
    ) -> None:
        self._directory = directory
        self._options = options
        self._reporter = reporter
        self._project = options.project or project_root()
        self._stack_id = uuid4().hex
        self._held = ExitStack()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._started = False
        self._engine: Engine | None = None
        self._pump: Guarded | None = None
        self.failed = threading.Event()

    def start(self) -> StackState:
        """Bring everything up and return the written state.

        Raises:
            AlreadyRunning: the directory has a stack.
            LocalStackError: a step failed; everything is down again.
        """
        self._held.enter_context(self._directory.locked())
        self._started = True
        try:
            return self._start()
        except BaseException as error:
            self._take_down()
            self._note_failure(error)
            raise

    def stop(self) -> None:
        """Take everything down; safe to call twice, and without a start."""
        if not self._started:
            return
        self._take_down()
        if not self.failed.is_set():
            self._directory.forget()

    def _start(self) -> StackState:
        self._remove_leftovers()
        self._directory.wipe()
        assembly, stamp = self._synthesize()
        with self._reporter.step("Start the engine"):
            engine = self._start_engine()
        state = self._first_state(engine, stamp)
        session = self._root_session(engine)
        with self._reporter.step("Deploy the stacks"):
            deployment = self._deploy(session, assembly)
        with self._reporter.step("Start the stream pump"):
            self._configure_pump(engine, deployment)
            self._start_pump(engine)
            self._await_pump()
        operator = iam.create_user(session, iam.OPERATOR, iam.operator_policy())
        state = describe(state, session, deployment, engine.endpoint_url)
        seed(self._directory, state, session, operator)
        state = state.change(
            status=READY, operator=operator, pump_pid=self._pump and self._pump.pid
        )
        save_environment(self._directory, state)
        save_state(self._directory, state)
        self._watch(engine)
        return state

    def _synthesize(self) -> tuple[Path, str]:
        if self._options.assembly is not None:
            return self._options.assembly, ""
        log = self._directory.log("synth")
        with self._reporter.step("Synthesize the templates"):
            output, stamp, reused = synthesize(self._project, log)
        if reused:
            self._reporter.note("nothing changed since the last time")
        return output, stamp

    def _start_engine(self) -> Engine:
        engine = start_engine(
            self._directory, self._project, self._stack_id, self._options.port
        )
        self._engine = engine
        return engine

    def _first_state(self, engine: Engine, stamp: str) -> StackState:
        state = StackState(
            stack_id=self._stack_id,
            supervisor_pid=os.getpid(),
            status=STARTING,
            started_at=now_seconds(),
            region=REGION,
            endpoint_url=engine.endpoint_url,
            root=Credentials(
                engine.keys.access_key_id,
                engine.keys.secret_access_key,
                f"arn:aws:iam::{ACCOUNT}:root",
            ),
            engine_pid=engine.process.pid,
            stamp=stamp,
        )
        save_state(self._directory, state)
        return state

    def _root_session(self, engine: Engine) -> "boto3.Session":
        from hourbell.local.aws import engine_session  # noqa: PLC0415

        keys = engine.keys
        return engine_session(
            engine.endpoint_url, REGION, keys.access_key_id, keys.secret_access_key
        )

    def _deploy(self, session: "boto3.Session", assembly: Path) -> Deployment:
        stacks = read_assembly(assembly, account=ACCOUNT, region=REGION)
        cache = self._project / ".local/assets"
        python = engine_python(self._project)
        deployment = Deployer(session, cache, python).deploy(stacks)
        check_imports(deployment.functions, python, cache)
        for stack in stacks:
            count = len(stack.template["Resources"])
            self._reporter.note(f"{stack.name}: {count} resources")
        return deployment

    def _configure_pump(self, engine: Engine, deployment: Deployment) -> None:
        config = PumpConfig(
            endpoint_url=engine.endpoint_url,
            region=REGION,
            checkpoint_file=str(self._directory.run / "checkpoints.json"),
            ready_file=str(self._directory.run / PUMP_READY),
            mappings=mappings_of(deployment.mappings),
        )
        save_config(self._directory.run / "pump.json", config)

    def _start_pump(self, engine: Engine) -> None:
        environment = clean_environment(
            AWS_ACCESS_KEY_ID=engine.keys.access_key_id,
            AWS_SECRET_ACCESS_KEY=engine.keys.secret_access_key,
            PYTHONPATH=os.environ.get("PYTHONPATH", ""),
            **{STACK_VARIABLE: self._stack_id},
        )
        config = self._directory.run / "pump.json"
        self._pump = start_guarded(
            "pump",
            [package_python(), "-m", "hourbell.local.pump", str(config)],
            environment,
            self._directory.log("pump"),
        )

    def _await_pump(self) -> None:
        """Wait until every mapping's starting position is anchored."""
        pump = self._pump
        ready = self._directory.run / PUMP_READY
        deadline = time.monotonic() + PUMP_SECONDS
        while pump and not ready.exists():
            if pump.ended.is_set() or time.monotonic() > deadline:
                raise LocalStackError("The stream pump does not start.", log=pump.log)
            time.sleep(0.02)

    def _watch(self, engine: Engine) -> None:
        for work in (self._watch_engine, self._watch_pump):
            threading.Thread(target=work, args=(engine,), daemon=True).start()

    def _watch_engine(self, engine: Engine) -> None:
        engine.process.ended.wait()
        if not self._stopping.is_set():
            code = engine.process.exit_code
            self._change(status=FAILED, failure=f"the engine ended (code {code})")
            self.failed.set()

    def _watch_pump(self, engine: Engine) -> None:
        """Start the pump again, after a pause that doubles while it keeps dying."""
        pause = FIRST_RESTART_SECONDS
        restarts = 0
        while True:
            started = time.monotonic()
            if self._pump:
                self._pump.ended.wait()
            if self._stopping.is_set() or not self._options.restart_pump:
                return
            if time.monotonic() - started > STEADY_SECONDS:
                pause = FIRST_RESTART_SECONDS
            if self._stopping.wait(pause) or self.failed.is_set():
                return
            pause = min(2 * pause, MAX_RESTART_SECONDS)
            restarts += 1
            self._restart_pump(engine, restarts)

    def _restart_pump(self, engine: Engine, restarts: int) -> None:
        with self._lock:
            if self._stopping.is_set():
                return
            try:
                self._start_pump(engine)
            except LocalStackError as error:
                self._reporter.note(error.explain())
                return
            pid = self._pump.pid if self._pump else None
        self._change(pump_pid=pid, pump_restarts=restarts)

    def _change(self, **members: object) -> None:
        state = load_state(self._directory)
        save_state(self._directory, state.change(**members))

    def _note_failure(self, error: BaseException) -> None:
        """Keep the reason for whoever waits for a detached start."""
        if self._directory.state_file.is_file() and isinstance(error, LocalStackError):
            self._change(status=FAILED, failure=error.explain())
            self.failed.set()

    def _take_down(self) -> None:
        self._stopping.set()
        with self._lock:
            parts = [self._pump, self._engine and self._engine.process]
        stoppers = [threading.Thread(target=part.stop) for part in parts if part]
        for thread in stoppers:
            thread.start()
        for thread in stoppers:
            thread.join()
        kill_stack(self._stack_id)
        self._held.close()

    def _remove_leftovers(self) -> None:
        """Kill what a stack without a supervisor left in this directory."""
        with suppress(LocalStackError):  # no earlier stack
            kill_stack(load_state(self._directory).stack_id)


def describe(
    state: StackState,
    session: "boto3.Session",
    deployment: Deployment,
    endpoint_url: str,
) -> StackState:
    """Return the state with what the deployment made: names, URLs, environment."""
    client = session.client("lambda")
    functions = {
        name: client.get_function_configuration(FunctionName=name)
        for name in deployment.resources.get("AWS::Lambda::Function", [])
    }
    environment = {
        key: text
        for config in functions.values()
        for key, text in config.get("Environment", {}).get("Variables", {}).items()
        if key.startswith(OWN_VARIABLE)
    }
    return state.change(
        api_url=local_api_url(deployment.outputs.get(API_OUTPUT, ""), endpoint_url),
        workers_url=local_function_url(
            deployment.outputs.get(WORKERS_OUTPUT, ""), endpoint_url
        ),
        environment=environment,
        tables={
            name.removeprefix(TABLE_VARIABLE).lower(): text
            for name, text in environment.items()
            if name.startswith(TABLE_VARIABLE)
        },
        queues={
            url.rpartition("/")[2]: url
            for url in deployment.resources.get("AWS::SQS::Queue", [])
        },
        outputs=deployment.outputs,
        functions={
            name: config["LoggingConfig"]["LogGroup"]
            for name, config in functions.items()
        },
    )


def local_api_url(output: str, endpoint_url: str) -> str:
    """Turn an API Gateway URL into the engine's path for the same API and stage."""
    found = API_ID.match(output)
    if not found:
        return output.rstrip("/")
    return f"{endpoint_url}/_aws/execute-api/{found.group(1)}/{found.group(2)}"


def local_function_url(output: str, endpoint_url: str) -> str:
    """Turn the URL of a function into the engine's path for the same one."""
    found = FUNCTION_URL_ID.match(output)
    if not found:
        return output.rstrip("/")
    return f"{endpoint_url}/_aws/lambda-url/{found.group(1)}"
