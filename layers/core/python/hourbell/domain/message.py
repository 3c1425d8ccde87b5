"""The message that a consumer receives: a CloudEvents 1.0 event as JSON text."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType

from hourbell.domain.definition import Version
from hourbell.domain.instants import format_instant
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.template import fill

EVENT_TYPE = "com.hourbell.occurrence.due.v1"

# SQS refuses these two code points in a body; as JSON escapes they pass.
_ESCAPES = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


def encode(
    row: Occurrence,
    version: Version,
    send: int,
    event_type: str = EVENT_TYPE,
    more: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return the message of one send of an occurrence.

    Args:
        row: the occurrence, SCHEDULED.
        version: the version that it belongs to; the payload comes from it.
        send: 1 for the first send, growing with every acknowledged one.
        event_type: of another event about the occurrence.
        more: members that such an event has in `data` besides.

    Returns:
        compact JSON; all members but `traceparent` are CloudEvents 1.0's own, and
        `data` holds handler, tracking, schedule_id, version, tenant, available_at,
        send, attempt, misfire and payload, in which the tokens of `template` are
        filled in. `attempt` is that which a claim would begin, as things stand.
    """
    data: dict[str, object] = {
        "handler": version.definition.handler,
        "tracking": version.definition.tracking,
        "schedule_id": row.schedule_id,
        "version": row.version,
        "tenant": row.tenant_id,
        "available_at": format_instant(row.available_at or row.scheduled_for),
        "send": send,
        "attempt": row.attempts + 1,
        "misfire": row.misfire,
    }
    data |= more
    event = {
        "specversion": "1.0",
        "type": event_type,
        "source": f"/hourbell/schedules/{row.schedule_id}",
        "id": row.occurrence_id,
        "time": format_instant(row.scheduled_for),
        "subject": version.name,
        "datacontenttype": "application/json",
        "traceparent": traceparent(row.occurrence_id, send),
        "data": data,
    }
    # The payload is spliced in as the text that was accepted: no number in it may
    # change by being parsed and written again.
    head = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f'{head[:-2]},"payload":{_payload(row, version)}}}}}'.translate(_ESCAPES)


def _payload(row: Occurrence, version: Version) -> str:
    values = {
        "scheduled_for": format_instant(row.scheduled_for),
        "occurrence_id": row.occurrence_id,
        "schedule_name": version.name,
        "attempt": str(row.attempts + 1),
    }
    return fill(version.definition.payload_json, values)


def traceparent(occurrence_id: str, send: int) -> str:
    """Return the W3C trace context of a send.

    One trace per occurrence and one parent span per send, derived from both, so that
    a message sent twice belongs to the same trace.
    """
    trace = hashlib.sha256(occurrence_id.encode()).hexdigest()[:32]
    span = hashlib.sha256(f"{occurrence_id}/{send}".encode()).hexdigest()[:16]
    return f"00-{trace}-{span}-01"
