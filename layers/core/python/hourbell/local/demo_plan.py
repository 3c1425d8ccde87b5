"""What the demo orders: three tenants of three tiers, and 203 schedules."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hourbell.domain.definition import Handler, Tenant, Tier
from hourbell.domain.errors import HourbellError
from hourbell.domain.instants import ceil_second
from hourbell.local.demo_oracle import Customer, Kind, Order
from hourbell.local.errors import LocalStackError
from hourbell.local.state import Credentials
from hourbell.usecases.identify import normalize_principal
from hourbell.usecases.ports import Directory, Write

# Half an hour off the full one, so that a zone that is ignored shows; and without
# daylight saving, so that every whole minute is due on every day of the year.
ZONE = "Asia/Kolkata"

CUSTOMERS = (
    Customer("harbor", "premium", "settle-payments"),
    Customer("meadow", "standard", "send-report"),
    Customer("pebble", "basic", "tidy-cache"),
)
BURST_SIZE = 200
FLEXIBLE_WINDOW_SECONDS = 10
ONE_TIME_AFTER = timedelta(seconds=6)
FLEXIBLE_AFTER = timedelta(seconds=5)


def every_minute() -> Order:
    """Return the order of the recurring schedule."""
    return Order("every-minute", Kind.EVERY_MINUTE, CUSTOMERS[1], None, {"step": 1})


def one_time(now: datetime) -> Order:
    """Return the order of one single time, a few seconds away."""
    at = ceil_second(now + ONE_TIME_AFTER)
    payload: dict[str, object] = {"invoice": "A-1", "total": 12.5, "memo": "caf\u00e9"}
    return Order("one-time", Kind.ONE_TIME, CUSTOMERS[0], at, payload)


def flexible(now: datetime) -> Order:
    """Return the order of a time that may be moved within ten seconds."""
    at = ceil_second(now + FLEXIBLE_AFTER)
    payload: dict[str, object] = {"keep_days": 30}
    return Order(
        "flexible", Kind.FLEXIBLE, CUSTOMERS[2], at, payload, FLEXIBLE_WINDOW_SECONDS
    )


def burst(at: datetime, size: int = BURST_SIZE) -> tuple[Order, ...]:
    """Return the orders that are all due at one instant, dealt out in turn."""
    return tuple(
        Order(
            f"burst-{number:03d}",
            Kind.BURST,
            CUSTOMERS[number % len(CUSTOMERS)],
            at,
            {"number": number},
        )
        for number in range(size)
    )


def request_body(order: Order) -> dict[str, Any]:
    """Return the document that asks the API for an order."""
    expression = "* * * * *"
    if order.at is not None:
        here = order.at.astimezone(ZoneInfo(ZONE))
        expression = f"at({here:%Y-%m-%dT%H:%M:%S})"
    body: dict[str, Any] = {
        "name": order.name,
        "expression": expression,
        "zone": ZONE,
        "handler": order.customer.handler,
        "payload": order.payload,
    }
    if order.window_seconds:
        body["flexible_window_seconds"] = order.window_seconds
    return body


def seed(
    directory: Directory, customer: Customer, principals: Sequence[Credentials]
) -> None:
    """Register a tenant, the IAM users that act for it, and its handler.

    Raises:
        LocalStackError: one of them is there already.
    """
    tenant = Tenant(customer.tenant_id, Tier(customer.tier))
    names = [normalize_principal(each.arn) for each in principals]
    handler = Handler(customer.tenant_id, customer.handler)
    try:
        answers = [
            directory.register_tenant(tenant, names),
            directory.register_handler(handler),
        ]
    except HourbellError as error:
        raise LocalStackError(f"Tenants cannot be registered: {error}") from error
    if set(answers) != {Write.APPLIED}:
        raise LocalStackError(f"Tenant {customer.tenant_id} is registered already.")
