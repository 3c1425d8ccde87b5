"""HourbellQueues: where occurrences wait for consumers, and work for functions."""

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.acknowledge import acknowledge, acknowledge_plain_http
from stacks.settings import Settings

TIERS = ("premium", "standard", "basic")
LANES = ("strict", "flexible", "catchup")
# What names of dead-letter queues end with, where others have a lane.
DEAD = "dead"

MATERIALIZER_TIMEOUT = Duration.seconds(50)
RELAY_TIMEOUT = Duration.seconds(30)
JOBS_TIMEOUT = Duration.seconds(50)
REDRIVE_TIMEOUT = Duration.seconds(30)

# A throttled function's message comes back to its queue; AWS asks for six times the
# timeout, so that such returns do not use up the receives.
VISIBILITY_PER_TIMEOUT = 6
MEBIBYTE = 1_048_576
MAXIMUM_RETENTION = Duration.days(14)
# QUEUE_RETENTION of the core: what nobody claimed ends when it has passed.
DELIVERY_RETENTION = Duration.days(4)


class QueuesStack(Stack):
    """The delivery queues of every tier and lane, and the internal queues.

    A message of a DLQ ages from its first enqueue, so each DLQ keeps as long as SQS
    can: the queue's own retention is taken out of it.

    Whoever reads delivery queues, a tier's consumers or a tenant's, has one DLQ for
    all lanes, from which the function `redrive` takes what was received too often: a
    queue that Lambda polls costs money in silence, too. And they have one dead-letter
    queue, which nobody but them reads: there the occurrences go that are DEAD.

    Attributes:
        delivery: by queue key, `<tier>-<lane>`.
        dedicated: of the tenants that have queues of their own, by
            `tenant-<tenant_id>-<lane>`.
        given_up: the DLQs of both, by `<tier>` or `tenant-<tenant_id>`.
        dead: the dead-letter queues, by `<tier>-dead` or `tenant-<tenant_id>-dead`.
        work: from tick to materializer.
        sweep: outbox records that the stream did not get through, to the relay.
        jobs: jobs that a worker is to go on with.
        stream_failures: positions of stream records that the relay gave up.
    """

    def __init__(self, scope: Construct, construct_id: str, settings: Settings) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.stack_name("Queues"),
            description="Hourbell: delivery queues and internal queues",
            termination_protection=settings.termination_protection,
        )
        self._settings = settings
        acknowledge_plain_http(self, settings)
        readers = [*TIERS, *(f"tenant-{tenant}" for tenant in settings.tenants)]
        self.given_up = {each: self._given_up_queue(each) for each in readers}
        self.dead = {f"{each}-{DEAD}": self._dead_queue(each) for each in readers}
        self.delivery = {
            f"{tier}-{lane}": self._delivery_queue(tier, lane)
            for tier in TIERS
            for lane in LANES
        }
        self.dedicated = {
            f"tenant-{tenant}-{lane}": self._delivery_queue(f"tenant-{tenant}", lane)
            for tenant in settings.tenants
            for lane in LANES
        }
        self.work = self._work_queue()
        self.sweep = self._sweep_queue()
        self.jobs = self._jobs_queue()
        self.stream_failures = self._queue("stream-failures", MAXIMUM_RETENTION)
        acknowledge(
            self.stream_failures,
            "AwsSolutions-SQS3",
            "It is where failures end: those of the stream, which is not a queue.",
        )
        for key, queue in self.delivery.items():
            CfnOutput(self, f"{_identifier(key)}QueueUrl", value=queue.queue_url)

    def _delivery_queue(self, readers: str, lane: str) -> sqs.Queue:
        """Make a queue that consumers read.

        Receives times visibility is an hour by default: an outage of the consumers, or
        of what they claim from, that is shorter must not empty the queue into its DLQ.
        A poison message costs no more than those receives.
        """
        return self._queue(
            f"{readers}-{lane}",
            DELIVERY_RETENTION,
            visibility=Duration.seconds(self._settings.visibility_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.given_up[readers],
                max_receive_count=self._settings.max_receives,
            ),
        )

    def _given_up_queue(self, readers: str) -> sqs.Queue:
        """Make the DLQ of all lanes of a tier or a tenant, read by `redrive`."""
        return self._queue(
            f"{readers}-dlq",
            MAXIMUM_RETENTION,
            visibility=_times(REDRIVE_TIMEOUT, VISIBILITY_PER_TIMEOUT),
        )

    def _dead_queue(self, readers: str) -> sqs.Queue:
        """Make the dead-letter queue of a tier's handlers, or of a tenant's."""
        queue = self._queue(f"{readers}-{DEAD}", MAXIMUM_RETENTION)
        acknowledge(
            queue,
            "AwsSolutions-SQS3",
            "It is where dead letters end; each is kept in a table, too.",
        )
        return queue

    def _work_queue(self) -> sqs.Queue:
        """Make the queue of scans to do.

        Each minute brings new orders for the same groups, so an old one is worth
        little: after an outage at most an hour of them is worked off.
        """
        return self._queue_with_dlq(
            "work",
            retention=Duration.hours(1),
            visibility=_times(MATERIALIZER_TIMEOUT, VISIBILITY_PER_TIMEOUT),
            max_receives=3,
        )

    def _sweep_queue(self) -> sqs.Queue:
        """Make the queue of stuck outbox records.

        Losing a message loses nothing: the next pass finds the same records again.
        """
        return self._queue_with_dlq(
            "sweep",
            retention=DELIVERY_RETENTION,
            visibility=_times(RELAY_TIMEOUT, VISIBILITY_PER_TIMEOUT),
            max_receives=10,
        )

    def _jobs_queue(self) -> sqs.Queue:
        """Make the queue of jobs to work at.

        A message that ended in the DLQ leaves its job where it stood; its reminder, or
        a resume, puts another one. The reminder waits for what the queue repeats.
        """
        return self._queue_with_dlq(
            "jobs",
            retention=DELIVERY_RETENTION,
            visibility=_times(JOBS_TIMEOUT, VISIBILITY_PER_TIMEOUT),
            max_receives=10,
        )

    def _queue_with_dlq(
        self,
        logical: str,
        *,
        retention: Duration,
        visibility: Duration,
        max_receives: int,
    ) -> sqs.Queue:
        dlq = self._queue(f"{logical}-dlq", MAXIMUM_RETENTION)
        return self._queue(
            logical,
            retention,
            visibility=visibility,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=dlq, max_receive_count=max_receives
            ),
        )

    def _queue(
        self,
        logical: str,
        retention: Duration,
        *,
        visibility: Duration | None = None,
        dead_letter_queue: sqs.DeadLetterQueue | None = None,
    ) -> sqs.Queue:
        settings = self._settings
        return sqs.Queue(
            self,
            _identifier(logical),
            queue_name=settings.name(logical),
            retention_period=retention,
            visibility_timeout=visibility,
            dead_letter_queue=dead_letter_queue,
            max_message_size_bytes=MEBIBYTE,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.enforces_tls,
        )


def _times(duration: Duration, factor: int) -> Duration:
    return Duration.seconds(int(duration.to_seconds()) * factor)


def _identifier(logical: str) -> str:
    if logical.startswith("tenant-"):
        # As it is: tenants' ids may differ in a hyphen alone.
        return logical
    return "".join(word.capitalize() for word in logical.split("-"))
