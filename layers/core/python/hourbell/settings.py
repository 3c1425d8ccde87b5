"""What the functions are told by their environment.

A fault of the environment is told when it is first read, with all that is missing or
wrong.
"""

# ruff: noqa: PLC0415 - a cold start pays only for what its own function reads

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from hourbell.domain.shards import MAX_SHARDS, ShardMap

if TYPE_CHECKING:
    from hourbell.usecases.handlers import QueueOffer

T = TypeVar("T")

MAX_HORIZON_SECONDS = 900


class SettingsError(Exception):
    """The environment lacks a variable or has one that makes no sense."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class Environment:
    """Reads variables and remembers what is wrong with them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.faults: list[str] = []

    def text(self, name: str) -> str:
        """Return a mandatory variable."""
        value = self._variables.get(name, "")
        if not value:
            self.faults.append(f"{name} is not set")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number between two bounds."""
        text = self._variables.get(name, "") or str(default)
        if text.isascii() and text.isdecimal() and low <= int(text) <= high:
            return int(text)
        self.faults.append(f"{name} must be {low} to {high}, found {text!r}")
        return default

    def texts(self, name: str) -> dict[str, str]:
        """Return a JSON object of strings."""
        text = self.text(name)
        try:
            members = json.loads(text or "{}")
        except ValueError:
            members = None
        if isinstance(members, dict) and all(
            isinstance(value, str) for value in members.values()
        ):
            return members
        self.faults.append(f"{name} must be a JSON object of strings")
        return {}

    def words(self, name: str) -> tuple[str, ...]:
        """Return a JSON array of strings; empty when it is not set."""
        text = self._variables.get(name, "") or "[]"
        try:
            words = json.loads(text)
        except ValueError:
            words = None
        if isinstance(words, list) and all(isinstance(each, str) for each in words):
            return tuple(words)
        self.faults.append(f"{name} must be a JSON array of strings")
        return ()

    def finish(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.faults:
            raise SettingsError(self.faults)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the tables are and how the timeline is divided.

    Attributes:
        schedules: physical name of the table, as are `timeline` and `control`.
        horizon: how far ahead of now occurrences are materialized.
    """

    schedules: str
    timeline: str
    control: str
    shard_map: ShardMap
    horizon: timedelta


def read_settings(environment: Environment) -> Settings:
    """Read what the functions with tables have in common."""
    horizon = environment.number(
        "HOURBELL_HORIZON_SECONDS", 180, 60, MAX_HORIZON_SECONDS
    )
    return Settings(
        schedules=environment.text("HOURBELL_TABLE_SCHEDULES"),
        timeline=environment.text("HOURBELL_TABLE_TIMELINE"),
        control=environment.text("HOURBELL_TABLE_CONTROL"),
        shard_map=read_shard_map(environment),
        horizon=timedelta(seconds=horizon),
    )


def read_shard_map(environment: Environment) -> ShardMap:
    """Read the shard count and the number of groups."""
    shards = environment.number("HOURBELL_SHARDS", 16, 1, MAX_SHARDS)
    groups = environment.number("HOURBELL_SHARD_GROUPS", min(4, shards), 1, shards)
    return ShardMap.constant(shards, groups)


def read_operators(environment: Environment) -> frozenset[str]:
    """Read the principals of the platform role, normalized."""
    from hourbell.domain.errors import InvalidInput
    from hourbell.usecases.identify import registered_form

    name = "HOURBELL_PLATFORM_PRINCIPALS"
    found = set()
    for word in environment.words(name):
        try:
            found.add(registered_form(word))
        except InvalidInput as error:
            environment.faults.append(f"{name}: {word!r}: {error.message}")
    return frozenset(found)


def read_queue_offer(environment: Environment) -> "QueueOffer":
    """Read which queues besides the shared ones handlers may have."""
    from hourbell.domain.errors import InvalidInput
    from hourbell.domain.queue_arn import QueueArn
    from hourbell.usecases.handlers import QueueOffer

    name = "HOURBELL_QUEUE_ARN_BASE"
    text, own = environment.text(name), None
    try:
        own = QueueArn.parse(text) if text else None
    except InvalidInput as error:
        environment.faults.append(f"{name}: {error.message}")
    return QueueOffer(
        own,
        frozenset(environment.words("HOURBELL_DEDICATED_TENANTS")),
        environment.words("HOURBELL_EXTERNAL_QUEUE_ARNS"),
    )


def read(reader: Callable[[Environment], T]) -> T:
    """Read settings from the process's environment.

    Raises:
        SettingsError: with all that is missing or wrong.
    """
    environment = Environment(os.environ)
    settings = reader(environment)
    environment.finish()
    return settings
