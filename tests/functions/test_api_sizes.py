"""The largest page of each list is one that Lambda can answer.

What a function returns is JSON in which its body is a text, so that quotes and
backslashes of the body are escaped once more; Lambda takes 6 MB of it. Of each list the
largest page is made from the bounds of its fields, with the characters that take the
most room: where a field takes any, a control character, which is seven bytes; where it
takes letters, one beyond the BMP, which is four.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from hourbell.api.dead_letter_models import DeadLetterAnswer, DeadLetterListAnswer
from hourbell.api.documents import Answer as Document
from hourbell.api.handler_models import HandlerAnswer, HandlerListAnswer
from hourbell.api.job_models import (
    ItemProblemAnswer,
    JobAnswer,
    JobListAnswer,
    LettersAnswer,
    ProgressAnswer,
    ResultAnswer,
    ResultsAnswer,
    ShiftAnswer,
)
from hourbell.api.occurrence_models import told_answer
from hourbell.api.paging import MAX_CURSOR, MAX_PAGE
from hourbell.api.parked_models import ParkedAnswer, ParkedListAnswer
from hourbell.api.tenant_models import QuotasAnswer, TenantAnswer, TenantListAnswer
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.usecases.work_values import Told

from tests.conformance.work_samples import attempt, running
from tests.functions.conftest import Answer, Api
from tests.functions.schedules import create, listing, versions

LAMBDA_BYTES = 6_000_000
MOST_BYTES = 4 * 1024 * 1024
CONTROL, LETTER = "\x01", "\U0001d400"
AT = "2026-03-09T12:00:00.123456Z"
MANY = 10**17
SCHEDULE_ID = "sch" + "0" * 26
OCCURRENCE_ID = f"{SCHEDULE_ID}.v9999999999.20260309T120000Z.r0123456789abcdef"
ARN = f"arn:aws-us-gov:sqs:ap-southeast-1:123456789012:{'q' * 80}"
CURSOR = "c" * MAX_CURSOR


def tags(count: int) -> dict[str, str]:
    """Return tags whose keys have 128 letters and whose values have 256."""
    return {f"{n:02}{LETTER * 126}": LETTER * 256 for n in range(count)}


def wire_bytes(text: str) -> int:
    """Return how many bytes Lambda gets for a body."""
    return len(json.dumps(text, ensure_ascii=False).encode())


HANDLER = HandlerAnswer(
    name="n" * 64, state="RETIRED", routing="dedicated", queue_arn=ARN,
    dead_letter_queue_arn=ARN, dispatch_rate=100_000, description=CONTROL * 512,
    revision=MANY,
    queues={lane: f"tenant-{'t' * 63}-{lane}" for lane in ("strict", "catchup")},
)  # fmt: skip
QUOTAS = dict.fromkeys(QuotasAnswer.model_fields, MANY)
TENANT = TenantAnswer(
    tenant_id="t" * 63, tier="standard", state="SUSPENDED", reason=CONTROL * 512,
    quotas=QuotasAnswer(**QUOTAS), weight=100, revision=MANY,
)  # fmt: skip
JOB = JobAnswer(
    job_id="job" + "0" * 26, operation="replay", dry_run=False, tag=tags(10),
    dead_letters=LettersAnswer(
        schedule_id=SCHEDULE_ID, since=AT, until=AT, per_minute=100_000
    ),
    reason=CONTROL * 512, state="SUCCEEDED", failure="principal_removed",
    progress=ProgressAnswer(
        total=MANY, done=MANY, changed=MANY, unchanged=MANY, refused=MANY
    ),
    created_at=AT, created_by="a" * 2_048, updated_at=AT, finished_at=AT, expires_at=AT,
)  # fmt: skip
# Texts of findings are ours, with up to 80 characters of what was found.
FINDING = {
    "field": f"tags.{LETTER * 80}", "code": "invalid_characters",
    "message": f"{'m' * 300}{CONTROL * 80}", "found": CONTROL * 80,
    "suggestion": LETTER * 80,
}  # fmt: skip
RESULT = ResultAnswer(
    index=10**9, schedule_id=SCHEDULE_ID, name="n" * 128, outcome="WOULD_REFUSE",
    problem=ItemProblemAnswer(
        status=400, code="invalid_input", detail=f"{'m' * 300}{CONTROL * 80}",
        errors=[FINDING] * 10, members=QUOTAS,
    ),
    shifts=[ShiftAnswer(local=AT, before=AT, after=AT)] * 5,
    occurrence_id=OCCURRENCE_ID, available_at=AT,
)  # fmt: skip
DEAD = DeadLetterAnswer(
    occurrence_id=OCCURRENCE_ID, schedule_id=SCHEDULE_ID, died_at=AT,
    reason="RETRY_DEADLINE_PASSED", attempt=10**9,
)  # fmt: skip
PARKED = ParkedAnswer(
    parked_id="p" * MAX_CURSOR, group=255, partition="20260309T1210Z#0000",
    sort=f"20260309T121000Z#{OCCURRENCE_ID}#release", reason="VERSION_UNREADABLE",
    tenant_id="t" * 63, since=AT, tries=10**9, next_try_at=AT, asked_at=AT,
)  # fmt: skip
PAGES: dict[str, Document] = {
    "handlers": HandlerListAnswer(handlers=[HANDLER] * MAX_PAGE, cursor=CURSOR),
    "tenants": TenantListAnswer(tenants=[TENANT] * MAX_PAGE, cursor=CURSOR),
    "jobs": JobListAnswer(jobs=[JOB] * MAX_PAGE, cursor=CURSOR),
    "results": ResultsAnswer(results=[RESULT] * MAX_PAGE, cursor=CURSOR),
    "dead letters": DeadLetterListAnswer(dead_letters=[DEAD] * MAX_PAGE, cursor=CURSOR),
    "parked": ParkedListAnswer(parked=[PARKED] * MAX_PAGE, cursor=CURSOR),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_largest_page_of_these_lists_needs_no_cut(name: str) -> None:
    assert wire_bytes(PAGES[name].text) < MOST_BYTES


def told(answer: Answer) -> Any:
    """Return what a page says, whose size must be one that Lambda takes."""
    assert answer.status == 200, answer.text
    # A thousand bytes for what stands around the entries.
    assert wire_bytes(answer.text) < MOST_BYTES + 1_000 < LAMBDA_BYTES
    return answer.body


def test_a_page_of_schedules_with_the_largest_tags_ends_early(api: Api) -> None:
    made = api.world.store.schedules[create(api, tags=tags(50))["schedule_id"]]
    for n in range(1, 120):
        copy = replace(made, schedule_id=f"sch{n:026}", name=f"bell-{n}")
        api.world.store.schedules[copy.schedule_id] = copy
    names: list[str] = []
    query: dict[str, Any] = {"limit": 100}
    while True:
        page = told(listing(api, **query))
        assert len(page["schedules"]) >= 50 or page["cursor"] is None
        names += [each["name"] for each in page["schedules"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert sorted(names) == sorted(["bell", *(f"bell-{n}" for n in range(1, 120))])


def test_a_page_of_the_largest_versions_ends_early(api: Api) -> None:
    # What is not the payload counts, too: exclusions, and control characters.
    ranges = [{"from": "2026-12-27", "to": "2026-12-31"}] * 366
    made = create(api, exclude=ranges, payload="x" * 20_000)
    log = api.world.store.versions
    (first,) = log.values()
    for number in range(1, 101):
        copy = replace(first, version=number, reason=CONTROL * 512)
        log[copy.ref] = copy
    numbers: list[int] = []
    query: dict[str, Any] = {"limit": 100}
    while True:
        page = told(versions(api, made["schedule_id"], **query))
        numbers += [each["version"] for each in page["versions"]]
        if page["before"] is None:
            break
        assert len(page["versions"]) > 50
        query["before"] = page["before"]
    assert numbers == list(range(100, 0, -1))


def test_of_very_many_attempts_the_latest_are_told() -> None:
    failure = Failure(ErrorClass.RETRYABLE, CONTROL * 128, CONTROL * 1_024)
    row = replace(running(), attempt=700)
    earlier = [
        replace(attempt(row, number), worker=CONTROL * 128, failure=failure)
        for number in range(1, 700)
    ]
    answer = told_answer(Told(row, tuple(earlier)))
    assert wire_bytes(answer.text) < MOST_BYTES + 10_000 < LAMBDA_BYTES
    numbers = [each.number for each in answer.attempts]
    # Each takes some 9,300 bytes.
    assert len(numbers) > 440
    assert numbers == list(range(numbers[0], 701))
