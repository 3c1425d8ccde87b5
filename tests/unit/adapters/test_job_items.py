"""The items of jobs that an earlier release wrote."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from hourbell.adapters.dynamodb.job_items import decode_items, encode_items
from hourbell.domain.definition import NewSchedule, Tracking
from hourbell.domain.job import Creator, Job, Operation
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import Retry
from hourbell.domain.schedule import Timing

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
JOB = Job(
    job_id=f"job{'0' * 26}",
    tenant_id="acme",
    operation=Operation.CREATE,
    dry_run=False,
    creator=Creator("1:user/ann", "arn:aws:iam::1:user/ann", "api"),
    body_hash="h",
    created_at=NOW,
    updated_at=NOW,
    expires_at=NOW,
)
NEW = NewSchedule("bell", Timing("0 9 * * *"), "ring", "h", tracking=Tracking.TRACKED)


def test_schedules_to_create_without_policies_have_the_usual_ones() -> None:
    item = encode_items(
        JOB, 0, [replace(NEW, overlap=Overlap.QUEUE_ONE, retry=Retry(2))]
    )
    members = json.loads(item["schedules"]["S"])
    for each in members:
        del each["overlap"], each["retry"]
    item["schedules"]["S"] = json.dumps(members)
    assert decode_items(item) == (NEW,)
