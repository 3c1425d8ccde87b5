"""What work, moves and jobs store survives the way through items, at every edge."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from hourbell.adapters.dynamodb.codec import Item, fields_of
from hourbell.adapters.dynamodb.job_items import (
    decode_items,
    decode_job,
    decode_results,
    encode_items,
    encode_job,
    encode_results,
)
from hourbell.adapters.dynamodb.models import OccurrenceItem
from hourbell.adapters.dynamodb.moves import update_of
from hourbell.adapters.dynamodb.packed import transition
from hourbell.adapters.dynamodb.row_items import decode_occurrence, encode_occurrence
from hourbell.adapters.dynamodb.work_items import (
    decode_attempt,
    decode_letter,
    encode_attempt,
    encode_letter,
)
from hourbell.domain.definition import NewSchedule
from hourbell.domain.errors import Finding
from hourbell.domain.job import (
    Creator,
    Job,
    JobState,
    Letters,
    Operation,
    Outcome,
    Progress,
    Refusal,
    Result,
    Target,
    Walk,
)
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, Transition
from hourbell.domain.overlap import Overlap
from hourbell.domain.replanning import Shift
from hourbell.domain.retry import RETRYABLE_CLASSES, ErrorClass, Failure, Retry
from hourbell.domain.work import Attempt, AttemptResult, DeadLetter
from hourbell.usecases.ports import Change
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.test_codecs import (
    definitions,
    ids,
    instant,
    name,
    number,
    occurrences,
    optional_instant,
    text,
    whole_second,
)

failures = st.builds(
    Failure, st.sampled_from(ErrorClass), text, text, st.none() | number
)
worked = st.builds(
    replace,
    occurrences,
    run=st.none() | st.from_regex("[0-9a-f]{16}", fullmatch=True),
    attempt=number,
    attempts_before=number,
    lease_token=st.none() | text,
    lease_expires_at=optional_instant,
    worker=st.none() | text,
    started_at=optional_instant,
    begun_at=optional_instant,
    slot=st.none() | number,
    waits=number,
    failure=st.none() | failures,
    cancel_requested_at=optional_instant,
    replayed_at=optional_instant,
    told_at=optional_instant,
)
letters = st.builds(
    DeadLetter,
    name,
    worked.map(lambda row: row.occurrence_id),
    instant,
    number,
    text,
    whole_second,
)
attempts = st.builds(
    Attempt,
    worked.map(lambda row: row.key),
    *(number, text, text, instant, instant),
    st.sampled_from(AttemptResult),
    st.none() | failures,
    whole_second,
)
retries = st.builds(
    lambda attempts, base, more, deadline, classes: Retry(
        attempts, base, base + more, deadline, tuple(classes)
    ),
    st.integers(1, 100),
    st.integers(1, 43_200),
    st.integers(0, 43_200),
    st.none() | st.integers(60, 14 * 86_400),
    st.lists(st.sampled_from(RETRYABLE_CLASSES), unique=True),
)
wishes = st.builds(
    lambda wanted, called, hashed, described, tags, overlap, retry: NewSchedule(
        called,
        *(wanted.timing, wanted.handler, hashed, wanted.payload_json),
        tracking=wanted.tracking,
        flexible_window_seconds=wanted.flexible_window_seconds,
        misfire=wanted.misfire,
        description=described,
        tags=tags,
        overlap=overlap,
        retry=retry,
    ),
    *(definitions, name, name, text, st.dictionaries(name, text, max_size=3)),
    st.sampled_from(Overlap),
    retries,
)
targets = st.builds(Target, ids, st.none() | text, st.none() | letters)
walks = st.builds(
    Walk,
    st.dictionaries(name, text, max_size=3),
    st.none() | text,
    st.booleans(),
    st.lists(targets, max_size=3).map(tuple),
    st.none() | st.builds(Letters, st.none() | ids, optional_instant, instant, number),
    optional_instant,
)
jobs = st.builds(
    Job,
    job_id=name,
    tenant_id=name,
    operation=st.sampled_from(Operation),
    dry_run=st.booleans(),
    creator=st.builds(Creator, text, text, text),
    body_hash=text,
    created_at=instant,
    updated_at=instant,
    expires_at=whole_second,
    reason=st.none() | text,
    state=st.sampled_from(JobState),
    finished_at=optional_instant,
    failure=st.none() | text,
    progress=st.builds(Progress, st.none() | number, number, number, number),
    walk=st.none() | walks,
    step=number,
)
refusals = st.builds(
    Refusal,
    *(number, text, text),
    st.lists(
        st.builds(Finding, text, text, text, text, st.none() | name), max_size=2
    ).map(tuple),
    st.dictionaries(text, st.none() | text | number | st.booleans(), max_size=2),
)
shifts = st.builds(
    Shift,
    st.datetimes(datetime(1970, 1, 1), datetime(2199, 1, 1)),
    optional_instant,
    optional_instant,
)
results = st.builds(
    Result,
    number,
    st.sampled_from(Outcome),
    st.none() | ids,
    st.none() | text,
    st.none() | refusals,
    st.lists(shifts, max_size=2).map(tuple),
    st.none() | text,
    optional_instant,
)
NOW = datetime(2026, 3, 9, tzinfo=UTC)
NOBODY = Creator("", "", "")
JOB = Job("job", "acme", Operation.CREATE, False, NOBODY, "h", NOW, NOW, NOW)
# What tells a row from others, and a move never changes.
IDENTITY = ("schedule_id", "version", "scheduled_for", "shard", "run")


@given(worked)
def test_rows_that_were_worked_on(row: Occurrence) -> None:
    assert decode_occurrence(encode_occurrence(row)) == row


@given(worked, worked, st.sampled_from(Transition))
def test_a_move_stores_what_it_writes_and_leaves_all_else(
    before: Occurrence, after: Occurrence, move: Transition
) -> None:
    row = replace(after, **{each: getattr(before, each) for each in IDENTITY})
    item, change = encode_occurrence(before), Change(row, move)
    writes, target = TRANSITIONS[move].writes, TRANSITIONS[move].target
    written = {each: getattr(row, each) for each in writes}
    expected = replace(before, state=target, **written)
    assert decode_occurrence(_packed(item, change)) == expected
    assert decode_occurrence(_updated(item, change)) == expected


def _packed(item: Item, change: Change) -> Item:
    """Return an item after a packed statement: its targets, in order."""
    wire = fields_of(OccurrenceItem)
    move = TRANSITIONS[change.transition]
    values = transition("t", change).parameters[: len(move.writes)]
    names = [wire[each].wire for each in move.writes]
    state = {"state": {"S": move.target.value}}
    return item | dict(zip(names, values, strict=True)) | state


def _updated(item: Item, change: Change) -> Item:
    """Return an item after a conditional update, by its expression."""
    request: Any = update_of("t", change).as_request()["Update"]
    names = request["ExpressionAttributeNames"]
    values = request["ExpressionAttributeValues"]
    sets, _, removes = request["UpdateExpression"].partition(" REMOVE ")
    result = dict(item)
    for each in sets.removeprefix("SET ").split(", "):
        path, value = each.split(" = ")
        result[names[path]] = values[value]
    for path in filter(None, removes.split(", ")):
        result.pop(names[path], None)
    return result


@given(letters)
def test_dead_letters(letter: DeadLetter) -> None:
    assert decode_letter(letter.tenant_id, encode_letter(letter)) == letter


@given(attempts)
def test_attempts(attempt: Attempt) -> None:
    assert decode_attempt(encode_attempt(attempt)) == attempt


@given(jobs)
def test_jobs(job: Job) -> None:
    assert decode_job(encode_job(job)) == job


@given(st.lists(wishes, min_size=1, max_size=2) | st.lists(ids.map(Target), min_size=1))
def test_items_of_jobs(items: list[NewSchedule | Target]) -> None:
    assert decode_items(encode_items(JOB, 0, items)) == tuple(items)


@given(st.lists(results, min_size=1, max_size=2))
def test_results_of_jobs(found: list[Result]) -> None:
    assert list(decode_results(encode_results(JOB, found))) == found


def test_no_field_of_a_row_is_forgotten() -> None:
    known = set(fields_of(OccurrenceItem)) - {"bucket_shard", "row_key", "schema"}
    assert {each.name for each in fields(Occurrence)} == known | set(IDENTITY)
