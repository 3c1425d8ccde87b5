"""Bodies and answers of batches and jobs."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from hourbell.api.documents import Answer, Instant, WholeBody, judged, one_of
from hourbell.api.json_text import write_json
from hourbell.api.requests import MAX_REASON, TAGS, CreateSchedule, judge_tags
from hourbell.domain.errors import Finding, InvalidInput, NotFound
from hourbell.domain.instants import format_instant
from hourbell.domain.job import (
    Job,
    JobState,
    Letters,
    Operation,
    Outcome,
    Refusal,
    Result,
    Target,
)
from hourbell.domain.names import SCHEDULE_ID
from hourbell.domain.replanning import Shift
from hourbell.usecases.get_schedule import check_id
from hourbell.usecases.jobs import JobPage, NewJob, ResultPage

MAX_SCHEDULES: Final = 100
MAX_IDS: Final = 1_000
MAX_TAGS: Final = 10


def _id(text: str) -> None:
    try:
        check_id(text)
    except NotFound as error:
        message = "Allowed is sch and 26 of 0-9 and small letters."
        raise InvalidInput.of("", "invalid_value", message, found=text) from error


Tag = Annotated[
    dict[str, str],
    Field(min_length=1, max_length=MAX_TAGS),
    AfterValidator(lambda tags: judge_tags(tags, "tag")),
    WithJsonSchema(TAGS | {"minProperties": 1, "maxProperties": MAX_TAGS}),
]
ScheduleId = Annotated[
    str,
    Field(json_schema_extra={"pattern": SCHEDULE_ID}),
    judged(_id),
]


class BatchSchedules(WholeBody):
    """The body of POST /v1/schedules/batch."""

    operation: Literal["create", "pause", "resume", "cancel"]
    schedules: Annotated[
        list[CreateSchedule] | None,
        Field(min_length=1, max_length=MAX_SCHEDULES, description="To create."),
    ] = None
    schedule_ids: Annotated[
        list[ScheduleId] | None,
        Field(min_length=1, max_length=MAX_IDS, description="To change."),
    ] = None
    tag: Annotated[
        Tag | None, Field(description="What all schedules have that are to change.")
    ] = None
    reason: Annotated[
        str | None, Field(max_length=MAX_REASON, description="For the version log.")
    ] = None

    def to_domain(self, key: str, *, dry_run: bool) -> NewJob:
        """Return what the use cases take.

        Raises:
            InvalidInput: fields do not go together, or something is named twice.
        """
        findings = tuple(self._findings())
        if findings:
            raise InvalidInput(findings=findings)
        new = [each.to_domain() for each in self.schedules or ()]
        ids = self.schedule_ids or []
        members = {
            "operation": self.operation,
            "dry_run": dry_run,
            "reason": self.reason,
            "schedules": [each.body_hash for each in new],
            "schedule_ids": ids,
            "tag": self.tag,
        }
        text = write_json(members, sort_keys=True)
        return NewJob(
            operation=Operation(self.operation),
            key=key,
            body_hash=hashlib.sha256(text.encode()).hexdigest(),
            items=(*new, *map(Target, ids)),
            tags=self.tag,
            reason=self.reason,
            dry_run=dry_run,
        )

    def _findings(self) -> Iterator[Finding]:
        targets = ("schedule_ids", "tag")
        said = [name for name in targets if getattr(self, name) is not None]
        if self.operation == "create":
            for name in (*said, *(["reason"] if self.reason is not None else [])):
                message = "This field is not for operation create."
                yield Finding(name, "unexpected", message)
            if self.schedules is None:
                message = "Operation create needs the schedules to create."
                yield Finding("schedules", "missing", message)
        else:
            if self.schedules is not None:
                message = "This field is for operation create only."
                yield Finding("schedules", "unexpected", message)
            if len(said) != 1:
                message = "Needed is either schedule_ids or tag."
                code = "unexpected" if said else "missing"
                yield Finding(said[-1] if said else "schedule_ids", code, message)
        names = [each.name for each in self.schedules or ()]
        yield from _repeated("schedules.{}.name", names)
        yield from _repeated("schedule_ids.{}", self.schedule_ids or [])


def _repeated(place: str, texts: Sequence[str]) -> Iterator[Finding]:
    seen: Counter[str] = Counter()
    for index, text in enumerate(texts):
        if seen[text]:
            message = "It stands in the list before; each may be there once."
            yield Finding(place.format(index), "repeated_value", message, text[:80])
        seen[text] += 1


class ProgressAnswer(Answer):
    """How far a job is; `total` is null while a search by tag is not finished.

    `changed` counts what was created or changed, or would be in a dry run.
    """

    total: int | None
    done: int
    changed: int
    unchanged: int
    refused: int


class LettersAnswer(Answer):
    """Which dead letters a job replays; `since` is null for any."""

    schedule_id: str | None
    since: Instant | None
    until: Instant
    per_minute: int


class JobAnswer(Answer):
    """A job.

    `tag` is null but of a search by tag, `dead_letters` but of a replay.

    `failure` is the code of what made it FAILED: `tenant_suspended`, `tenant_removed`
    or `principal_removed`. It and its results are kept until `expires_at`.
    """

    job_id: str
    operation: Annotated[str, one_of(Operation)]
    dry_run: bool
    tag: dict[str, str] | None
    dead_letters: LettersAnswer | None
    reason: str | None
    state: Annotated[str, one_of(JobState)]
    failure: str | None
    progress: ProgressAnswer
    created_at: Instant
    created_by: str
    updated_at: Instant
    finished_at: Instant | None
    expires_at: Instant


class JobListAnswer(Answer):
    """A page of jobs, the newest first."""

    jobs: list[JobAnswer]
    cursor: str | None


class ItemProblemAnswer(Answer):
    """Why an item was refused, as the route for one schedule answers it.

    `members` has what comes with some codes, `errors` what is wrong with fields, the
    first ten of them.
    """

    status: int
    code: str
    detail: str
    errors: list[dict[str, str]]
    members: dict[str, Any]


class ShiftAnswer(Answer):
    """A local time that a replan moves, with its instants before and after it.

    `before` is null for a time that only the new rules have, `after` for one that
    they no longer have.
    """

    local: str
    before: Instant | None
    after: Instant | None


class ResultAnswer(Answer):
    """What became of one item; `problem` only if it was refused, or would be.

    `shifts` has the first times that move, of a replan. `occurrence_id` is that of a
    replay, and `available_at` when its message may be received again.
    """

    index: int
    schedule_id: str | None
    name: str | None
    outcome: Annotated[str, one_of(Outcome)]
    problem: ItemProblemAnswer | None
    shifts: list[ShiftAnswer]
    occurrence_id: str | None
    available_at: Instant | None


class ResultsAnswer(Answer):
    """A page of a job's results, in the order of its items."""

    results: list[ResultAnswer]
    cursor: str | None


def job_answer(job: Job) -> JobAnswer:
    """Return a job."""
    progress, letters = job.progress, job.walk and job.walk.letters
    return JobAnswer(
        job_id=job.job_id,
        operation=job.operation,
        dry_run=job.dry_run,
        tag=dict(job.walk.tags) or None if job.walk is not None else None,
        dead_letters=letters and _letters(letters),
        reason=job.reason,
        state=job.state,
        failure=job.failure,
        progress=ProgressAnswer(
            total=progress.total,
            done=progress.done,
            changed=progress.changed,
            unchanged=progress.unchanged,
            refused=progress.refused,
        ),
        created_at=format_instant(job.created_at),
        created_by=job.creator.arn,
        updated_at=format_instant(job.updated_at),
        finished_at=job.finished_at and format_instant(job.finished_at),
        expires_at=format_instant(job.expires_at),
    )


def _letters(letters: Letters) -> LettersAnswer:
    return LettersAnswer(
        schedule_id=letters.schedule_id,
        since=letters.since and format_instant(letters.since),
        until=format_instant(letters.until),
        per_minute=letters.per_minute,
    )


def job_list_answer(page: JobPage) -> JobListAnswer:
    """Return a page of jobs."""
    return JobListAnswer(
        jobs=[job_answer(each) for each in page.jobs], cursor=page.after
    )


def results_answer(page: ResultPage) -> ResultsAnswer:
    """Return a page of results."""
    return ResultsAnswer(
        results=[_result(each) for each in page.results], cursor=page.after
    )


def _result(result: Result) -> ResultAnswer:
    refusal = result.refusal
    return ResultAnswer(
        index=result.index,
        schedule_id=result.schedule_id,
        name=result.name,
        outcome=result.outcome,
        problem=None if refusal is None else _problem(refusal),
        shifts=[_shift(each) for each in result.shifts],
        occurrence_id=result.occurrence_id,
        available_at=result.available_at and format_instant(result.available_at),
    )


def _shift(shift: Shift) -> ShiftAnswer:
    return ShiftAnswer(
        local=shift.local.isoformat(),
        before=shift.before and format_instant(shift.before),
        after=shift.after and format_instant(shift.after),
    )


def _problem(refusal: Refusal) -> ItemProblemAnswer:
    return ItemProblemAnswer(
        status=refusal.status,
        code=refusal.code,
        detail=refusal.message,
        errors=[each.as_dict() for each in refusal.findings],
        members=dict(refusal.members),
    )
