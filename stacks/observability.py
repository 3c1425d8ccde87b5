"""HourbellObservability: alarms on what needs somebody to look."""

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from stacks.acknowledge import acknowledge
from stacks.settings import Settings

NAMESPACE = "Hourbell"
RUNBOOK = "docs/runbook.md"
MINUTE = Duration.minutes(1)
# In health the lowest watermark is two to three minutes old, and nothing is pending.
AGE_SECONDS = 300
AGE_MINUTES = 5
# Where messages end that no function of Hourbell could deal with.
ENDS = ("work-dlq", "sweep-dlq", "jobs-dlq", "stream-failures", "tick-dlq")


class ObservabilityStack(Stack):
    """The alarms, and the topic that tells of them.

    Metrics and queues are named, not referred to, so that this stack can come and go
    without the others.

    Attributes:
        topic: told when an alarm begins and when it ends.
        alarms: by name, without the prefix.
    """

    def __init__(self, scope: Construct, construct_id: str, settings: Settings) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.stack_name("Observability"),
            description="Hourbell: alarms",
            termination_protection=settings.termination_protection,
        )
        self._settings = settings
        self.topic = self._make_topic()
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        self._watch_passes()
        self._watch_letters()
        self._watch_answers()
        self._watch_ends()
        CfnOutput(self, "AlarmTopic", value=self.topic.topic_arn)

    def _make_topic(self) -> sns.Topic:
        topic = sns.Topic(
            self, "Topic", topic_name=self._settings.name("alarms"), enforce_ssl=True
        )
        # A policy of its own takes the place of SNS's, which lets the account publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        acknowledge(
            topic,
            "AwsSolutions-SNS2",
            "What alarms say is no secret, and CloudWatch cannot use AWS's own key.",
        )
        for address in self._settings.watchers:
            topic.add_subscription(subscriptions.EmailSubscription(address))
        return topic

    def _watch_passes(self) -> None:
        """Make the alarms on what the materializer measures."""
        self._alarm(
            "parked-rows",
            self._measured("ParkedRows", Duration.minutes(5)),
            above=0,
            says="Rows are parked: nothing can be done about them.",
        )
        for name, metric, says in (
            ("watermark-age", "WatermarkAge", "Passes do not get on with the past."),
            ("pending-age", "OldestPendingAge", "Work that was due is not done."),
        ):
            self._alarm(
                name,
                self._measured(metric, MINUTE),
                above=AGE_SECONDS,
                minutes=AGE_MINUTES,
                says=says,
            )
        self._alarm(
            "no-passes",
            self._lambda("Invocations", "materializer", MINUTE),
            below=1,
            minutes=AGE_MINUTES,
            says="No pass begins: nothing is materialized.",
        )

    def _watch_letters(self) -> None:
        """Make the alarms on what becomes of messages that nobody took."""
        self._alarm(
            "redrive-failing",
            self._measured("RedrivesFailed", Duration.minutes(5), "redrive"),
            above=0,
            minutes=3,
            says="Messages that delivery queues gave up are not taken in.",
        )
        # Its DLQs end nowhere, and a call that crashed has measured nothing.
        self._alarm(
            "redrive-broken",
            self._lambda("Errors", "redrive", Duration.minutes(5)),
            above=0,
            minutes=3,
            says="The function that takes in what delivery queues gave up crashes.",
        )

    def _watch_answers(self) -> None:
        """Make the alarms on what the API answers for reasons of its own.

        Single ones of these are repeated by who called; what goes on is not. A call
        that crashed, or never reached its function, has measured nothing itself.
        """
        period = Duration.minutes(5)
        refused = cloudwatch.Metric(
            namespace="AWS/ApiGateway",
            metric_name="5XXError",
            dimensions_map={"ApiName": self._settings.name("api")},
            statistic=cloudwatch.Stats.SUM,
            period=period,
        )
        for name, metric, says in (
            ("api-failing", refused, "The API answers 5xx."),
            (
                "workers-failing",
                self._lambda("Url5xxCount", "workers", period),
                "The workers' URL answers 5xx.",
            ),
        ):
            self._alarm(name, metric, above=0, minutes=3, says=says)

    def _watch_ends(self) -> None:
        """Make the alarms on queues where failures end."""
        for name in ENDS:
            waiting = cloudwatch.Metric(
                namespace="AWS/SQS",
                metric_name="ApproximateNumberOfMessagesVisible",
                dimensions_map={"QueueName": self._settings.name(name)},
                statistic=cloudwatch.Stats.MAXIMUM,
                period=Duration.minutes(5),
            )
            says = f"Messages that failed lie in {self._settings.name(name)}."
            self._alarm(name, waiting, above=0, says=says)

    def _measured(
        self, name: str, period: Duration, function: str = "materializer"
    ) -> cloudwatch.Metric:
        """Return a metric of a function, the worst of what its calls measured."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"service": self._settings.name(function)},
            statistic=cloudwatch.Stats.MAXIMUM,
            period=period,
        )

    def _lambda(self, name: str, function: str, period: Duration) -> cloudwatch.Metric:
        """Return what Lambda counts of a function's calls."""
        return cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name=name,
            dimensions_map={"FunctionName": self._settings.name(function)},
            statistic=cloudwatch.Stats.SUM,
            period=period,
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.Metric,
        *,
        says: str,
        above: int | None = None,
        below: int = 0,
        minutes: int = 1,
    ) -> None:
        """Make an alarm that tells the topic.

        Args:
            name: of the alarm, after the prefix; its section in the runbook.
            metric: what is watched.
            says: what is wrong, in a sentence.
            above: alarm over it; None to alarm under `below`.
            below: alarm under it, also where nothing is measured.
            minutes: how many periods in a row it has to be so.
        """
        compared = cloudwatch.ComparisonOperator
        missing = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=self._settings.name(name),
            alarm_description=f"{says} See {RUNBOOK}#{name}.",
            metric=metric,
            threshold=below if above is None else above,
            comparison_operator=(
                compared.LESS_THAN_THRESHOLD
                if above is None
                else compared.GREATER_THAN_THRESHOLD
            ),
            evaluation_periods=minutes,
            treat_missing_data=(
                missing.BREACHING if above is None else missing.NOT_BREACHING
            ),
        )
        told = actions.SnsAction(self.topic)
        alarm.add_alarm_action(told)
        alarm.add_ok_action(told)
        self.alarms[name] = alarm
