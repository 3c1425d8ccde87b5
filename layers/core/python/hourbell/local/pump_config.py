"""Settings of the pump, read from the deployed template's stream mappings."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hourbell.domain.errors import InvalidInput
from hourbell.local.batches import UNLIMITED, Rules
from hourbell.local.directory import write_private
from hourbell.local.patterns import parse_filters

DEFAULT_BATCH_SIZE = 100
REPORT = "ReportBatchItemFailures"
STARTS = ("TRIM_HORIZON", "LATEST")


@dataclass(frozen=True, slots=True)
class MappingConfig:
    """One stream mapping.

    Attributes:
        filters: event patterns; a record must match one of them.
        on_failure: ARN of the SQS queue for what was given up; empty for none.
    """

    name: str
    stream_arn: str
    function: str
    starting_position: str
    batch_size: int
    window_seconds: float
    parallelization: int
    filters: tuple[Mapping[str, Any], ...]
    on_failure: str
    rules: Rules

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> "MappingConfig":
        """Read the resolved properties of an event source mapping.

        Raises:
            InvalidInput: a value is one that the pump cannot honour.
        """
        start = settings["StartingPosition"]
        if start not in STARTS:
            raise _refuse("StartingPosition", start, "TRIM_HORIZON or LATEST")
        destination = settings.get("DestinationConfig", {}).get("OnFailure", {})
        on_failure = destination.get("Destination", "")
        if on_failure and ":sqs:" not in on_failure:
            raise _refuse("DestinationConfig", on_failure, "the ARN of an SQS queue")
        return cls(
            name=name,
            stream_arn=settings["EventSourceArn"],
            function=settings["FunctionName"],
            starting_position=start,
            batch_size=int(settings.get("BatchSize", DEFAULT_BATCH_SIZE)),
            window_seconds=float(settings.get("MaximumBatchingWindowInSeconds", 0)),
            parallelization=int(settings.get("ParallelizationFactor", 1)),
            filters=parse_filters(settings.get("FilterCriteria")),
            on_failure=on_failure,
            rules=Rules(
                bisect=bool(settings.get("BisectBatchOnFunctionError", False)),
                report_item_failures=REPORT
                in settings.get("FunctionResponseTypes", ()),
                max_retries=int(settings.get("MaximumRetryAttempts", UNLIMITED)),
                max_age_seconds=float(
                    settings.get("MaximumRecordAgeInSeconds", UNLIMITED)
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class PumpConfig:
    """Everything the pump is told; its keys come by the environment.

    Attributes:
        checkpoint_file: where it keeps how far each shard is settled.
        ready_file: what it makes when every starting position is anchored.
    """

    endpoint_url: str
    region: str
    checkpoint_file: str
    ready_file: str
    mappings: tuple[MappingConfig, ...]


def mappings_of(
    resources: Mapping[str, Mapping[str, Any]],
) -> tuple[MappingConfig, ...]:
    """Return the enabled mappings among resolved template resources."""
    return tuple(
        MappingConfig.of(name, settings)
        for name, settings in resources.items()
        if settings.get("Enabled", True)
    )


def save_config(path: Path, config: PumpConfig) -> None:
    """Write the pump's settings as JSON."""
    write_private(path, json.dumps(asdict(config), indent=2))


def load_config(path: Path) -> PumpConfig:
    """Read what `save_config` wrote."""
    members = json.loads(path.read_text(encoding="utf-8"))
    members["mappings"] = tuple(
        MappingConfig(
            **{
                **mapping,
                "filters": tuple(mapping["filters"]),
                "rules": Rules(**mapping["rules"]),
            }
        )
        for mapping in members["mappings"]
    )
    return PumpConfig(**members)


def _refuse(field: str, found: str, allowed: str) -> InvalidInput:
    return InvalidInput.of(
        field,
        "unsupported_mapping",
        f"The local stream pump needs {allowed} as {field}.",
        found=found,
    )
