"""Log groups that end: nothing is kept for ever because nobody said otherwise."""

from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings import SettingError, Settings

RETENTIONS = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    731: logs.RetentionDays.TWO_YEARS,
}


def log_group(
    scope: Construct, construct_id: str, settings: Settings, name: str | None = None
) -> logs.LogGroup:
    """Make a log group that keeps its lines for `log_retention_days`.

    Args:
        scope: where it belongs.
        construct_id: of the group.
        settings: of the deployment.
        name: of a group that a service writes to without being told where.

    Raises:
        SettingError: CloudWatch does not offer that many days.
    """
    days = settings.log_retention_days
    if days not in RETENTIONS:
        allowed = ", ".join(map(str, RETENTIONS))
        msg = f"context log_retention_days={days}: allowed are {allowed}"
        raise SettingError(msg)
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=RETENTIONS[days],
        removal_policy=settings.removal_policy,
    )
