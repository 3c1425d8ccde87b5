"""Bodies that are right, for the routes of the fuzz that seldom get one."""

from datetime import timedelta
from typing import Any, Final

from hourbell.adapters.clock import SystemClock

HANDLER: Final = "report"
EXPRESSIONS: Final = (
    "0 9 * * MON-FRI",
    "rate(2 hours)",
    "cron(0 12 L * ? *)",
    "at(2099-01-31T09:00:00)",
    "*/7 3 29 2 *",
)
OPERATIONS: Final = ("pause", "resume")
# The most that are created at once.
BATCH: Final = 7
ZONES: Final = ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
# Well written, and nobody's: a worker is answered for each item.
_NOBODYS: Final = {"occurrence_id": f"sch{'0' * 26}.v1.20260309T120000Z"}
_HELD: Final = {**_NOBODYS, "lease_token": "0123456789abcdef"}
# A body that is right, for the routes that seldom get one.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "POST /v1/occurrences/claim": {"worker": "fuzz", "items": [{**_NOBODYS}]},
    "POST /v1/occurrences/heartbeat": {"items": [_HELD]},
    "POST /v1/occurrences/complete": {"items": [_HELD]},
    "POST /v1/occurrences/fail": {
        "items": [{**_HELD, "error": {"class": "PERMANENT"}}]
    },
    "POST /v1/occurrences/{occurrence_id}/cancel": {"reason": "right"},
    # So far ahead that nothing else feels it.
    "POST /v1/admin/shards": {
        "shards": 64,
        "since": f"{SystemClock().now() + timedelta(days=29):%Y-%m-%dT%H:%M:00Z}",
    },
    "PATCH /v1/admin/tenants/{tenant_id}": {"weight": 2},
    "POST /v1/schedules/{schedule_id}/backfill": {
        "from": "2020-01-01T00:00:00Z",
        "to": "2020-01-02T00:00:00Z",
    },
    "POST /v1/dead-letters/replay": {"since": "2020-01-01T00:00:00Z"},
    "PATCH /v1/handlers/{name}": {"description": "changed"},
    "POST /v1/schedules": {
        "name": "right",
        "expression": "0 9 * * *",
        "handler": HANDLER,
    },
    "POST /v1/schedules/preview": {"expression": "rate(2 hours)"},
    "PUT /v1/schedules/by-name/{name}": {
        "expression": "0 9 * * *",
        "handler": HANDLER,
    },
    "POST /v1/schedules/batch": {
        "operation": "pause",
        "tag": {"key": "right"},
    },
    "PATCH /v1/schedules/{schedule_id}": {"tags": {"changed": "yes"}},
}


def batch(chance: int) -> dict[str, Any]:
    """Return a body of many that is right, every other one of schedules to create."""
    if chance & 4:
        operation = OPERATIONS[chance % len(OPERATIONS)]
        return {"operation": operation, "tag": {"key": str(chance)}}
    new = [
        {
            "name": f"batch/{chance}/{number}",
            "expression": EXPRESSIONS[number % len(EXPRESSIONS)],
            "handler": HANDLER,
            "zone": ZONES[number % len(ZONES)],
        }
        for number in range(1 + chance % BATCH)
    ]
    return {"operation": "create", "schedules": new}
