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


def test_a_part_of_a_job_is_no_larger_than_the_request_it_came_with() -> None:
    # 25 schedules of 10 KB in whatever script, as the body of a request spells them.
    value, emoji = "\u6642" * 256, "\U0001f514" * 256
    tags = {f"k{n}": value for n in range(12)}
    wishes = [
        replace(NEW, name=f"bell-{n}", tags=tags, description=emoji) for n in range(25)
    ]
    item = encode_items(JOB, 0, wishes)
    assert decode_items(item) == tuple(wishes)
    body = len(json.dumps([tags, emoji], ensure_ascii=False).encode())
    # Besides: timing, policies and names of each.
    assert len(item["schedules"]["S"].encode()) < 25 * (body + 800) < 400 * 1024


def test_parts_of_jobs_that_an_earlier_release_wrote_in_ascii_are_read() -> None:
    wish = replace(NEW, description="um f\xfcnf")
    item = encode_items(JOB, 0, [wish])
    item["schedules"]["S"] = json.dumps(json.loads(item["schedules"]["S"]))
    assert item["schedules"]["S"].isascii()
    assert decode_items(item) == (wish,)
