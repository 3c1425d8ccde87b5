"""Consumers of Hourbell's messages in Python.

    consumer = Consumer.connect()

    @consumer.handler("report")
    def report(message: Message, context: Context) -> None:
        ...

    consumer.run()

It needs botocore and the standard library only; docs/consumers.md tells what it does.
"""

from hourbell.consumer.clock import Clock
from hourbell.consumer.consumer import Consumer
from hourbell.consumer.context import Context
from hourbell.consumer.errors import Permanent, Stopped, Throttled
from hourbell.consumer.idempotency import SCHEMA, once
from hourbell.consumer.messages import Message, Tracking
from hourbell.consumer.options import Options
from hourbell.consumer.roles import AssumedRoles

__all__ = [
    "SCHEMA",
    "AssumedRoles",
    "Clock",
    "Consumer",
    "Context",
    "Message",
    "Options",
    "Permanent",
    "Stopped",
    "Throttled",
    "Tracking",
    "once",
]
