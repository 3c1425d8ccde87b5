"""One performance of the demo on a running stack."""

import http
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from hourbell.adapters.clock import SystemClock
from hourbell.adapters.dynamodb import DynamoDirectory, DynamoTimeline, TableNames
from hourbell.adapters.dynamodb import connect as connect_database
from hourbell.adapters.dynamodb.epochs import DynamoEpochBook, DynamoShardMaps
from hourbell.adapters.dynamodb.relocation import DynamoRelocation
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import Occurrence, row_key
from hourbell.domain.shards import ShardMap
from hourbell.local.demo_client import SignedApi
from hourbell.local.demo_consumer import Consumer
from hourbell.local.demo_oracle import (
    FIRST_VERSION,
    Created,
    Customer,
    Expected,
    Forecast,
    Order,
    closing_instant,
    forecast,
)
from hourbell.local.demo_plan import (
    BURST_SIZE,
    CUSTOMERS,
    burst,
    every_minute,
    flexible,
    one_time,
    request_body,
    seed,
)
from hourbell.local.demo_verdict import Verdict, arrived_ids, judge
from hourbell.local.demo_watch import Standing, Watch
from hourbell.local.errors import LocalStackError
from hourbell.local.progress import Reporter
from hourbell.local.stack import StackInfo
from hourbell.usecases.twins import TwinTimeline

if TYPE_CHECKING:
    from hourbell.usecases.ports import Clock

# Each makes the engine start a worker, in a second of CPU time; more do not help.
CREATORS = 4
LOOK_SECONDS = 0.1
LINGER_SECONDS = 1.0
SHORTEST_LEAD_SECONDS = 10.0
# Three answers tell little of two hundred, least so on a machine that others use too.
HEADROOM = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What may differ between performances.

    Attributes:
        burst_size: how many schedules are due at one instant.
        patience_seconds: how long to wait for stragglers after the closing instant.
        on_creating: called once, right before the first schedule is created.
        on_waiting: called once, when everything is created and the wait begins.
    """

    burst_size: int = BURST_SIZE
    patience_seconds: float = 15.0
    on_creating: Callable[[], None] = lambda: None
    on_waiting: Callable[[], None] = lambda: None


def perform(
    stack: StackInfo, settings: Settings, reporter: Reporter, watch: Watch
) -> Verdict:
    """Seed tenants, create the schedules, receive, and judge what came.

    Raises:
        LocalStackError: the stack did not let us.
    """
    return _Performance(stack, settings, reporter, watch).run()


class _Performance:
    """The things that the steps share."""

    def __init__(
        self, stack: StackInfo, settings: Settings, reporter: Reporter, watch: Watch
    ) -> None:
        self._stack = stack
        self._settings = settings
        self._reporter = reporter
        self._watch = watch
        self._clock: Clock = SystemClock()
        self._pause = threading.Event()
        self._apis: dict[str, SignedApi] = {}
        self._database = connect_database(
            TableNames(**stack.tables),
            session=stack.operator_session(),
            endpoint_url=stack.endpoint_url,
        )

    def run(self) -> Verdict:
        """Go through all steps."""
        with self._reporter.step("Register three tenants of three tiers"):
            self._register()
        sqs = self._stack.operator_session().client("sqs")
        with Consumer(sqs, self._stack.queue_urls, self._clock) as consumer:
            with self._reporter.step("Create the schedules through the HTTP API"):
                created = self._create_all()
            closing = closing_instant(created)
            due = forecast(created, closing)
            self._settings.on_waiting()
            self._wait(consumer, due, closing)
            receipts = consumer.receipts()
        return judge(due, receipts, self._rows(list(due.expected.values())))

    def _register(self) -> None:
        directory = DynamoDirectory(self._database, self._clock)
        for customer in CUSTOMERS:
            keys = self._stack.create_user(f"demo-{customer.tenant_id}")
            seed(directory, customer, [keys])
            self._apis[customer.tenant_id] = SignedApi(
                self._stack.api_url, keys, self._stack.region
            )

    def _create_all(self) -> list[Created]:
        """Create the three single ones, then the burst as soon as can be promised."""
        with ThreadPoolExecutor(CREATORS) as pool:
            # Each creator's cold start lies behind us when the times are fixed.
            for _ in pool.map(self._warm_up, CUSTOMERS * CREATORS):
                pass
            return self._create_in_time(pool)

    def _create_in_time(self, pool: ThreadPoolExecutor) -> list[Created]:
        self._settings.on_creating()
        created = [
            self._create(order)
            for make in (one_time, flexible, lambda _: every_minute())
            for order in [make(self._clock.now())]
        ]
        usual = median((c.answered_at - c.asked_at).total_seconds() for c in created)
        # One request after the other would take this long; threads only help.
        needed = HEADROOM * usual * self._settings.burst_size
        lead = max(SHORTEST_LEAD_SECONDS, needed)
        at = ceil_second(self._clock.now() + timedelta(seconds=lead))
        created += pool.map(self._create, burst(at, self._settings.burst_size))
        return created

    def _warm_up(self, customer: Customer) -> None:
        """Ask for a preview.

        Raises:
            LocalStackError: the API does not answer as it must.
        """
        question = {
            name: text
            for name, text in request_body(every_minute()).items()
            if name in {"expression", "zone"}
        }
        answer = self._apis[customer.tenant_id].post("/v1/schedules/preview", question)
        if answer.status != http.HTTPStatus.OK:
            raise LocalStackError(
                f"The API refused a preview ({answer.status}): {answer.document}"
            )

    def _create(self, order: Order) -> Created:
        api = self._apis[order.customer.tenant_id]
        asked_at = self._clock.now()
        answer = api.post(
            "/v1/schedules",
            request_body(order),
            idempotency_key=f"demo-{order.name}",
        )
        answered_at = self._clock.now()
        if answer.status != http.HTTPStatus.CREATED:
            raise LocalStackError(
                f"The API refused {order.name} ({answer.status}): {answer.document}"
            )
        schedule_id = str(answer.document["schedule_id"])
        return Created(order, schedule_id, asked_at, answered_at)

    def _wait(self, consumer: Consumer, due: Forecast, closing: datetime) -> None:
        """Wait until everything is here and no copy follows, or patience ends."""
        patience = timedelta(seconds=self._settings.patience_seconds)
        while True:
            now = self._clock.now()
            standing = _standing(consumer, due, now)
            self._watch.show(standing)
            if not standing.pending:
                self._pause.wait(LINGER_SECONDS)
                return
            if now > closing + patience:
                return
            self._pause.wait(LOOK_SECONDS)

    def _rows(self, expected: Sequence[Expected]) -> dict[str, Occurrence]:
        """Read the timeline rows, for the lags before the queue."""
        environment = self._stack.state.environment
        initial = ShardMap.constant(
            int(environment["HOURBELL_SHARDS"]),
            int(environment["HOURBELL_SHARD_GROUPS"]),
        )
        book = DynamoEpochBook(self._database)
        shards = DynamoShardMaps(book, initial, self._clock).current()
        keys = [
            row_key(
                each.schedule_id,
                FIRST_VERSION,
                each.scheduled_for,
                shards.shard_of(each.schedule_id, each.scheduled_for),
            )
            for each in expected
        ]
        timeline = TwinTimeline(
            DynamoTimeline(self._database), shards, DynamoRelocation(self._database)
        )
        rows = timeline.read(keys)
        return {row.occurrence_id: row for row in rows.values()}


def _standing(consumer: Consumer, due: Forecast, now: datetime) -> Standing:
    arrived = arrived_ids(consumer.receipts())
    pending = sorted(
        (each.available_at, each.order.name)
        for occurrence_id, each in due.expected.items()
        if occurrence_id not in arrived
    )
    delivered = len(due.expected) - len(pending)
    return Standing(now, delivered, len(due.expected), tuple(pending))
