"""HourbellScheduling: tick, materializers, relay, jobs, and what queues give up."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import tables
from stacks.acknowledge import acknowledge, acknowledge_plain_http
from stacks.data import DataStack
from stacks.functions import (
    Access,
    Functions,
    allow_external,
    allow_indexes,
    allow_receive,
    allow_send,
)
from stacks.queues import (
    JOBS_TIMEOUT,
    MATERIALIZER_TIMEOUT,
    MAXIMUM_RETENTION,
    REDRIVE_TIMEOUT,
    RELAY_TIMEOUT,
    TIERS,
    QueuesStack,
)
from stacks.settings import Settings

TICK_TIMEOUT = Duration.seconds(15)
# A tick that comes after the next one is worth nothing.
TICK_AGE = Duration.minutes(1)
STREAM_BATCH = 100
SWEEP_BATCH = 10
# The relay hands single rows that failed to the sweep queue; a batch fails as a whole
# only when it crashes, and then what bisecting leaves is found by the sweep.
STREAM_RETRIES = 5
LEAST_RECORD_AGE_SECONDS = 60  # Lambda's own limit
REDRIVE_BATCH = 10
# What consumers did not get done in an hour need not be taken in within a second.
REDRIVES_AT_ONCE = 2
# Jobs are rare, and must not take from the relay what time is short for.
JOBS_AT_ONCE = 5

# Packed writes are PartiQL: IAM knows their statements, not the call that carries them.
MATERIALIZER_ACCESS: Access = {
    # Finishing a handover updates versions, and puts the first row of the new one;
    # completing a schedule frees its name.
    "schedules": ["BatchGetItem", "DeleteItem", "GetItem", "UpdateItem"],
    # While the shard count changes, both places of a row must be free.
    "timeline": [
        "BatchGetItem",
        "ConditionCheckItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
    # Parked rows are put, put off and deleted.
    "control": [
        "BatchGetItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
}
# What the API may do to change and create schedules, and no more.
JOBS_ACCESS: Access = {
    "schedules": [
        "BatchGetItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
    # Rows are found by a scan and moved when the shard count changes; of what is
    # replayed, the attempts are found by its key.
    "timeline": [
        "BatchGetItem",
        "ConditionCheckItem",
        "DeleteItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PutItem",
        "Query",
        "Scan",
        "UpdateItem",
    ],
    # Dead letters are found by their tenant, and forgotten when they are replayed.
    "control": [
        "BatchGetItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    ],
}
RELAY_ACCESS: Access = {
    "schedules": ["BatchGetItem"],
    # A record that its queue refuses ends together with what sees to its letter.
    "timeline": ["BatchGetItem", "PartiQLUpdate", "PutItem", "UpdateItem"],
    "control": ["BatchGetItem", "GetItem", "PutItem"],
}
# To end an occurrence, and let the next one of its schedule run.
REDRIVE_ACCESS: Access = {
    "schedules": ["BatchGetItem"],
    "timeline": ["BatchGetItem", "PutItem", "UpdateItem"],
    "control": ["BatchGetItem", "GetItem", "PutItem", "UpdateItem"],
}


class SchedulingStack(Stack):
    """What turns a planned row into a message on a delivery queue."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        data: DataStack,
        queues: QueuesStack,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.stack_name("Scheduling"),
            description="Hourbell: tick, materializer, relay, jobs, redrive",
            termination_protection=settings.termination_protection,
        )
        self._settings = settings
        self._data = data
        self._queues = queues
        acknowledge_plain_http(self, settings)
        self._functions = Functions(self, "Layers", settings, data)
        self.tick = self._make_tick()
        self.materializer = self._make_materializer()
        self.relay = self._make_relay()
        self.jobs = self._make_jobs()
        self.redrive = self._make_redrive()

    def _make_tick(self) -> lambda_.Function:
        tick = self._functions.make(
            "tick",
            timeout=TICK_TIMEOUT,
            memory_mb=512,
            # The shard count of the settings is stored once; reminders of jobs move.
            access={
                "schedules": [],
                "timeline": [],
                "control": ["DeleteItem", "GetItem", "PutItem", "Query"],
            },
            environment={
                "HOURBELL_JOBS_QUEUE_URL": self._queues.jobs.queue_url,
                "HOURBELL_WORK_QUEUE_URL": self._queues.work.queue_url,
            },
        )
        allow_send(tick, [self._queues.jobs, self._queues.work])
        # In this stack, since its policy names the rule.
        failures = sqs.Queue(
            self,
            "TickDlq",
            queue_name=self._settings.name("tick-dlq"),
            retention_period=MAXIMUM_RETENTION,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=self._settings.enforces_tls,
        )
        acknowledge(
            failures,
            "AwsSolutions-SQS3",
            "It is where failures end: EventBridge's and Lambda's, not a queue's.",
        )
        tick.configure_async_invoke(
            max_event_age=TICK_AGE,
            retry_attempts=1,
            on_failure=destinations.SqsDestination(failures),
        )
        events.Rule(
            self,
            "EveryMinute",
            rule_name=self._settings.name("tick"),
            description="Starts Hourbell's pass over the shard groups",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            targets=[
                targets.LambdaFunction(
                    tick,
                    dead_letter_queue=failures,
                    max_event_age=TICK_AGE,
                    retry_attempts=2,
                )
            ],
        )
        return tick

    def _make_materializer(self) -> lambda_.Function:
        materializer = self._functions.make(
            "materializer",
            timeout=MATERIALIZER_TIMEOUT,
            memory_mb=1024,
            access=MATERIALIZER_ACCESS,
            environment={
                "HOURBELL_SWEEP_QUEUE_URL": self._queues.sweep.queue_url,
                "HOURBELL_WORK_QUEUE_URL": self._queues.work.queue_url,
            },
        )
        # Back to its own queue goes the order for the rest of a backlog.
        allow_send(materializer, [self._queues.sweep, self._queues.work])
        allow_receive(materializer, self._queues.work)
        lambda_.EventSourceMapping(
            self,
            "WorkToMaterializer",
            target=materializer,
            event_source_arn=self._queues.work.queue_arn,
            batch_size=1,
            # More would wait for each other's leases. Lambda's own minimum is two.
            max_concurrency=max(2, self._settings.shard_groups),
            report_batch_item_failures=True,
        )
        return materializer

    def _make_relay(self) -> lambda_.Function:
        queues = self._queues
        urls = {
            key: queue.queue_url
            for key, queue in (queues.delivery | queues.dead).items()
            if key.startswith(TIERS)
        }
        relay = self._functions.make(
            "relay",
            timeout=RELAY_TIMEOUT,
            memory_mb=1024,
            access=RELAY_ACCESS,
            environment={
                "HOURBELL_QUEUE_URLS": self.to_json_string(urls),
                "HOURBELL_SWEEP_QUEUE_URL": self._queues.sweep.queue_url,
            },
        )
        every = (queues.delivery | queues.dedicated | queues.dead).values()
        allow_send(relay, [*every, queues.sweep])
        allow_external(relay, self._settings)
        allow_receive(relay, self._queues.sweep)
        self._allow_stream(relay)
        self._map_stream(relay)
        lambda_.EventSourceMapping(
            self,
            "SweepToRelay",
            target=relay,
            event_source_arn=self._queues.sweep.queue_arn,
            batch_size=SWEEP_BATCH,
            max_concurrency=self._settings.sweep_concurrency,
            report_batch_item_failures=True,
        )
        return relay

    def _make_jobs(self) -> lambda_.Function:
        jobs = self._functions.make(
            "jobs",
            timeout=JOBS_TIMEOUT,
            memory_mb=1024,
            access=JOBS_ACCESS,
            environment={"HOURBELL_JOBS_QUEUE_URL": self._queues.jobs.queue_url},
        )
        allow_send(jobs, [self._queues.jobs])
        allow_receive(jobs, self._queues.jobs)
        allow_indexes(jobs, self._data)
        lambda_.EventSourceMapping(
            self,
            "JobsToWorker",
            target=jobs,
            event_source_arn=self._queues.jobs.queue_arn,
            batch_size=1,
            max_concurrency=JOBS_AT_ONCE,
            report_batch_item_failures=True,
        )
        return jobs

    def _make_redrive(self) -> lambda_.Function:
        dead = self._queues.dead
        urls = {
            key: queue.queue_url for key, queue in dead.items() if key.startswith(TIERS)
        }
        redrive = self._functions.make(
            "redrive",
            timeout=REDRIVE_TIMEOUT,
            memory_mb=512,
            access=REDRIVE_ACCESS,
            environment={"HOURBELL_QUEUE_URLS": self.to_json_string(urls)},
        )
        allow_send(redrive, list(dead.values()))
        # A handler's dead-letter queue may be another one by now.
        allow_external(redrive, self._settings)
        for readers, queue in self._queues.given_up.items():
            allow_receive(redrive, queue)
            words = "".join(word.capitalize() for word in readers.split("-"))
            lambda_.EventSourceMapping(
                self,
                f"{readers if readers.startswith('tenant-') else words}ToRedrive",
                target=redrive,
                event_source_arn=queue.queue_arn,
                batch_size=REDRIVE_BATCH,
                max_concurrency=REDRIVES_AT_ONCE,
                report_batch_item_failures=True,
            )
        return redrive

    def _allow_stream(self, relay: lambda_.Function) -> None:
        timeline = self._data.tables["timeline"]
        name = f"{self._settings.name('timeline')}/stream/*"
        relay.add_to_role_policy(
            iam.PolicyStatement(
                actions=[
                    "dynamodb:DescribeStream",
                    "dynamodb:GetRecords",
                    "dynamodb:GetShardIterator",
                ],
                resources=[str(timeline.table_stream_arn)],
            )
        )
        relay.add_to_role_policy(
            iam.PolicyStatement(
                actions=["dynamodb:ListStreams"],
                resources=[
                    self.format_arn(
                        service="dynamodb", resource="table", resource_name=name
                    )
                ],
            )
        )
        acknowledge(
            self,
            "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:dynamodb:"
            f"<AWS::Region>:<AWS::AccountId>:table/{name}]",
            "ListStreams is asked of a table's streams, not of one of them.",
        )

    def _map_stream(self, relay: lambda_.Function) -> None:
        settings = self._settings
        lambda_.EventSourceMapping(
            self,
            "StreamToRelay",
            target=relay,
            event_source_arn=self._data.tables["timeline"].table_stream_arn,
            # Rows may have been written before the mapping was there.
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=STREAM_BATCH,
            max_batching_window=Duration.seconds(settings.relay_window_seconds),
            parallelization_factor=settings.parallelization_factor,
            filters=[outbox_filter()],
            report_batch_item_failures=True,
            bisect_batch_on_error=True,
            retry_attempts=STREAM_RETRIES,
            # Older ones were due already, so the sweep has them; they must not hold
            # up those that come after them.
            max_record_age=Duration.seconds(
                max(LEAST_RECORD_AGE_SECONDS, settings.horizon_seconds)
            ),
            on_failure=event_sources.SqsDlq(self._queues.stream_failures),
        )


def outbox_filter() -> dict[str, str]:
    """Return the stream's filter: records whose new image the relay has to look at.

    Those are outbox records, and DEAD rows, whose letters it sends.
    """
    states = tables.load()["timeline"].outbox_states
    pattern = lambda_.FilterCriteria.filter(
        {
            "eventName": lambda_.FilterRule.or_("INSERT", "MODIFY"),
            "dynamodb": {"NewImage": {"state": {"S": lambda_.FilterRule.or_(*states)}}},
        }
    )
    return {key: str(value) for key, value in pattern.items()}
