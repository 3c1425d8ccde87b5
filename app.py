"""Synthesize Hourbell's stacks: `python3 dev.py synth`, or `npx cdk synth`.

It asks no account, no network and no Docker. cdk-nag's AwsSolutions rules run with it:
a finding that nobody acknowledged, with a reason, fails the synthesis.
"""

import os
import sys
from typing import Any

# Read by the JSII runtime when aws_cdk is imported: its banners about releases of
# Node.js would bury our own messages. The first one wants the releases by name.
os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "18,19,20,21,22,23,24"
os.environ["JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION"] = "1"
os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"

from aws_cdk import App, Tags, Validations
from cdk_nag import AwsSolutionsChecks

from stacks.api import ApiStack
from stacks.data import DataStack
from stacks.observability import ObservabilityStack
from stacks.queues import QueuesStack
from stacks.scheduling import SchedulingStack
from stacks.settings import SettingError, Settings


def build(**app_options: Any) -> App:  # noqa: ANN401 (CDK's own options)
    """Make the app with its stacks and rules.

    Raises:
        SettingError: a context value is not allowed, or the dependency layer missing.
    """
    app = App(
        analytics_reporting=False,
        stack_traces=False,
        tree_metadata=False,
        **app_options,
    )
    settings = Settings.from_context(app.node)
    data = DataStack(app, "HourbellData", settings)
    queues = QueuesStack(app, "HourbellQueues", settings)
    SchedulingStack(app, "HourbellScheduling", settings, data, queues)
    ApiStack(app, "HourbellApi", settings, data, queues)
    if settings.has_alarms:
        ObservabilityStack(app, "HourbellObservability", settings)
    Tags.of(app).add("hourbell:deployment", settings.prefix)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


def main() -> None:
    """Synthesize into the folder that the CDK command line names."""
    try:
        app = build()
    except SettingError as error:
        sys.exit(f"error: {error}")
    try:
        app.synth()
    except RuntimeError as error:
        # JSII has no types for JavaScript's errors; the findings are printed already.
        if not str(error).startswith("ValidationFailed"):
            raise
        sys.exit("error: rules of cdk-nag are broken (findings above)")


if __name__ == "__main__":
    main()
