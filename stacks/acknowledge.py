"""The one way to accept a finding of cdk-nag: on one construct, with the reason."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct

from stacks.settings import Settings


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept what a rule finds on a construct and below it.

    Args:
        construct: as near to the finding as possible.
        rule: `AwsSolutions-<rule>`, with `[<finding>]` where a rule has several.
        reason: why it is right here.
    """
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))


def acknowledge_plain_http(construct: IConstruct, settings: Settings) -> None:
    """Accept queues that take plain HTTP, on the local stack and nowhere else."""
    if not settings.enforces_tls:
        acknowledge(
            construct,
            "AwsSolutions-SQS4",
            "The local engine speaks plain HTTP, on the loopback interface only.",
        )
