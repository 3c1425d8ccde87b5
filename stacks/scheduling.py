"""HourbellScheduling: the tick, the materializers, the relay, the job worker."""

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
    RELAY_TIMEOUT,
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
    # Rows are found by a scan and moved when the shard count changes.
    "timeline": [
        "BatchGetItem",
        "ConditionCheckItem",
        "DeleteItem",
        "PartiQLInsert",
        "PartiQLUpdate",
        "PutItem",
        "Scan",
        "UpdateItem",
    ],
    "control": ["BatchGetItem", "GetItem", "PutItem", "UpdateItem"],
}
RELAY_ACCESS: Access = {
    "schedules": ["BatchGetItem"],
    "timeline": ["BatchGetItem", "PartiQLUpdate"],
    "control": [],
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
            description="Hourbell: tick, materializer, relay, jobs",
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

    def _make_tick(self) -> lambda_.Function:
        tick = self._functions.make(
            "tick",
            timeout=TICK_TIMEOUT,
            memory_mb=512,
            # The shard count of the settings is stored once.
            access={"control": ["GetItem", "PutItem"]},
            environment={"HOURBELL_WORK_QUEUE_URL": self._queues.work.queue_url},
        )
        allow_send(tick, [self._queues.work])
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
        delivery = self._queues.delivery
        urls = {key: queue.queue_url for key, queue in delivery.items()}
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
        dedicated = self._queues.dedicated.values()
        allow_send(relay, [*delivery.values(), *dedicated, self._queues.sweep])
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
    """Return the stream's filter: records whose new image is an outbox record."""
    state = tables.load()["timeline"].outbox_state
    pattern = lambda_.FilterCriteria.filter(
        {
            "eventName": lambda_.FilterRule.or_("INSERT", "MODIFY"),
            "dynamodb": {
                "NewImage": {"state": {"S": lambda_.FilterRule.is_equal(str(state))}}
            },
        }
    )
    return {key: str(value) for key, value in pattern.items()}
