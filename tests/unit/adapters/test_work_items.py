"""Items of work on occurrences: keys, what is absent, what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.control_items import decode_tenant, encode_tenant
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    encode_dispatch,
    encode_occurrence,
    is_attempt,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_schedule,
    decode_version,
    encode_schedule,
    encode_version,
)
from hourbell.adapters.dynamodb.stream import read_stream
from hourbell.adapters.dynamodb.work_items import (
    dead_shard,
    decode_attempt,
    decode_letter,
    encode_attempt,
    encode_letter,
    lane_item_key,
    running_item_key,
)
from hourbell.domain.definition import Quotas, Tenant, Tier
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import Permanent
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Failure, Retry

from tests.conformance import samples
from tests.conformance.samples import DUE, acknowledging, planned, scheduling
from tests.conformance.work_samples import (
    FAILURE,
    attempt,
    enqueued,
    full,
    letter,
    running,
)

TABLES = layout.DOCUMENT["tables"]
ROWS = TABLES["timeline"]["items"]
SCHEDULE = samples.schedule_id("one")
WORK = {
    *("attempt", "attempts_before", "lease_token", "lease_expires_at", "worker"),
    *("started_at", "begun_at", "slot", "waits", "failure", "cancel_requested_at"),
    *("replayed_at", "told_at"),
}
RUN = "00c0ffee00c0ffee"


def filled(template: str, **values: object) -> str:
    for name, value in values.items():
        template = template.replace(f"<{name}>", str(value))
    assert "<" not in template
    return template


def test_what_no_worker_had_is_no_larger_than_before() -> None:
    sent = acknowledging(scheduling(planned()).row).row

    assert not WORK & set(encode_occurrence(sent))
    assert set(encode_occurrence(full())) > WORK


def test_a_running_row_stays_below_one_write_unit() -> None:
    worker = replace(running(), worker="w" * 128, lease_token="t" * 64)
    item = encode_occurrence(replace(worker, tenant_id="t" * 64))

    # At least what DynamoDB counts, whose numbers are smaller than their digits.
    size = sum(len(name) + len(str(*typed.values())) for name, typed in item.items())
    assert size < 1_000


def test_a_row_with_all_of_its_work_is_read_back() -> None:
    assert decode_occurrence(encode_occurrence(full())) == full()


@pytest.mark.parametrize(
    "failure",
    [
        FAILURE,
        Failure(ErrorClass.PERMANENT),
        Failure(ErrorClass.RETRYABLE, "", "x", 0),
        Failure(ErrorClass.LEASE_EXPIRED, "K", '"\\\n\x00€'),
    ],
)
def test_a_failure_is_read_back(failure: Failure) -> None:
    row = replace(full(), failure=failure)
    item = encode_occurrence(row)

    assert decode_occurrence(item) == row


def test_a_failure_has_only_what_it_says_and_more_is_ignored() -> None:
    item = encode_occurrence(replace(full(), failure=Failure(ErrorClass.PERMANENT)))
    assert item["failure"] == {"S": '{"error_class":"PERMANENT"}'}

    item["failure"] = {"S": '{"error_class":"PERMANENT","advice":"rest"}'}

    assert decode_occurrence(item).failure == Failure(ErrorClass.PERMANENT)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"error_class":"BORED"}'])
def test_a_failure_that_makes_no_sense_makes_the_row_unreadable(text: str) -> None:
    item = {**encode_occurrence(full()), "failure": {"S": text}}
    with pytest.raises(Permanent):
        decode_occurrence(item)


def test_the_key_of_an_attempt_is_that_of_the_document() -> None:
    parts = {"scheduled_for": "20260309T063000Z", "schedule_id": SCHEDULE}
    expected = filled(ROWS["attempt"]["sort"], **parts, version=1, attempt=12)
    row = enqueued()
    run = replace(row, run=RUN)

    item = encode_attempt(attempt(row, 12))

    assert item[layout.TIMELINE.sort] == {"S": expected}
    assert attempt(row, 12).sort == expected
    assert item[layout.TIMELINE.partition] == {"S": row.key.partition}
    sort = encode_attempt(attempt(run, 3))[layout.TIMELINE.sort]["S"]
    assert sort == f"{run.key.sort}#A3" == attempt(run, 3).sort
    assert decode_attempt(item) == attempt(row, 12)


def test_attempts_are_told_from_all_other_rows() -> None:
    row = enqueued()
    run = replace(row, run="a" * 16)
    assert is_attempt(encode_attempt(attempt(row, 1)))
    assert is_attempt(encode_attempt(attempt(run, 10)))
    others = [encode_occurrence(row), encode_occurrence(run)]
    others += [encode_dispatch(each) for each in NUMBERED]
    assert not any(map(is_attempt, others))


@pytest.mark.parametrize("name", ["schema", "result", "worker", "started_at"])
def test_a_damaged_attempt_is_refused(name: str) -> None:
    item = encode_attempt(attempt(enqueued(), 1))
    del item[name]
    with pytest.raises(Permanent) as raised:
        decode_attempt(item)
    assert raised.value.code == "unreadable_item"


def test_an_attempt_in_the_stream_is_passed_over() -> None:
    def record(item: dict[str, Any], number: int) -> dict[str, Any]:
        keys = {name: item[name] for name in ("bucket_shard", "row_key")}
        change = {"Keys": keys, "NewImage": item, "SequenceNumber": str(number)}
        return {"dynamodb": change}

    row = enqueued()
    items = [encode_attempt(attempt(row, 1)), encode_occurrence(row)]

    batch = read_stream([record(item, n) for n, item in enumerate(items)])

    assert batch.rows == [row]
    assert batch.sequences == {row.key: "1"}
    assert (batch.unreadable, batch.faults) == ([], [])


WATCH = Dispatch(
    DispatchKind.WATCH,
    SCHEDULE,
    2,
    "acme",
    DUE,
    samples.SHARD,
    samples.NOW,
    scheduled_for=samples.DUE,
    number=3,
)
NUMBERED = [
    WATCH,
    replace(WATCH, run=RUN),
    replace(WATCH, number=0),
    replace(WATCH, kind=DispatchKind.LETTER, number=12),
    replace(WATCH, kind=DispatchKind.UNCLAIMED, number=3),
    replace(WATCH, kind=DispatchKind.RELEASE, run=RUN, number=1),
    replace(WATCH, kind=DispatchKind.RELEASE, number=None),
]


@pytest.mark.parametrize("row", NUMBERED)
def test_a_dispatch_row_with_a_number_is_read_back(row: Dispatch) -> None:
    assert decode_dispatch(encode_dispatch(row)) == row


@pytest.mark.parametrize("kind", ["watch", "letter"])
def test_the_keys_of_numbered_rows_are_those_of_the_document(kind: str) -> None:
    row = replace(WATCH, kind=DispatchKind(kind))
    parts = {"due": "20260309T063000Z", "schedule_id": SCHEDULE, "version": 2}
    parts |= {"scheduled_for": "20260309T063000Z", "attempt": 3}

    sort = encode_dispatch(row)[layout.TIMELINE.sort]["S"]

    assert sort == filled(ROWS[kind]["sort"], **parts)
    of_a_run = encode_dispatch(replace(row, run=RUN))[layout.TIMELINE.sort]["S"]
    assert of_a_run == f"{sort.removesuffix('#n3')}#r{RUN}#n3"


@pytest.mark.parametrize(
    "target",
    [
        "",
        "#n1",
        "#20260309T063000Z#n",
        "#20260309T063000Z#n01",
        "#20260309T063000Z#n-1",
        "#20260309T063000Z#nx",
        f"#20260309T063000Z#n1#r{RUN}",
        "#20260309T063000Z#n1#n2",
    ],
)
@pytest.mark.parametrize("kind", ["watch", "letter", "release"])
def test_a_numbered_row_that_makes_no_sense_is_refused(kind: str, target: str) -> None:
    sort = f"20260310T010203Z#{SCHEDULE}#v2#{kind}{target}"
    item = {**encode_dispatch(WATCH), layout.TIMELINE.sort: {"S": sort}}
    with pytest.raises(Permanent):
        decode_dispatch(item)


def test_control_keys_are_those_of_the_document() -> None:
    control = TABLES["control"]["items"]

    def keys(item: dict[str, Any]) -> tuple[str, str]:
        return item[layout.CONTROL.partition]["S"], item[layout.CONTROL.sort]["S"]

    lane, place, dead = (control[name] for name in ("lane", "running", "dead"))
    assert keys(lane_item_key(SCHEDULE)) == (
        filled(lane["partition"], schedule_id=SCHEDULE),
        lane["sort"],
    )
    assert keys(running_item_key("acme", 7)) == (
        filled(place["partition"], tenant_id="acme"),
        place["sort"].replace("<4-digit number>", "0007"),
    )
    shard = f"{dead_shard(SCHEDULE):02}"
    partition = dead["partition"].replace("<2-digit list shard>", shard)
    sort = filled(
        dead["sort"],
        finished_at="2026-03-09T06:28:17.250000Z",
        occurrence_id=f"{SCHEDULE}.v1.20260309T063000Z",
        attempt=1,
    )
    assert keys(encode_letter(letter("one"))) == (
        filled(partition, tenant_id="acme"),
        sort,
    )


def test_the_dead_letters_of_many_schedules_are_spread() -> None:
    shards = {dead_shard(samples.schedule_id(number)) for number in range(200)}

    assert shards == set(range(TABLES["control"]["items"]["dead"]["shards"]))


@pytest.mark.parametrize(
    "change",
    [
        {"schema": {"N": "99"}},
        {"item": {"S": "yesterday#x#A1"}},
        {"item": {"S": "2026-03-09T06:28:17.250000Z#x"}},
        {"reason": {"N": "1"}},
    ],
)
def test_a_damaged_dead_letter_is_refused(change: dict[str, Any]) -> None:
    item = encode_letter(letter("one"))
    assert decode_letter("acme", item) == letter("one")
    with pytest.raises(Permanent):
        decode_letter("acme", item | change)


RETRY = Retry(
    max_attempts=2,
    base_seconds=3,
    cap_seconds=4,
    deadline_seconds=None,
    retryable=(ErrorClass.THROTTLED,),
)


def test_policies_of_work_are_stored_with_definition_and_version() -> None:
    changed = replace(samples.definition(), overlap=Overlap.QUEUE_ONE, retry=RETRY)
    schedule = replace(samples.schedule(), definition=changed)
    version = replace(samples.version(), definition=changed)

    assert decode_schedule(encode_schedule(schedule)) == schedule
    assert decode_version(encode_version(version)) == version
    assert encode_version(version)["overlap"] == {"S": "QUEUE_ONE"}


def test_the_usual_policies_of_work_are_left_out() -> None:
    for item in (
        encode_schedule(samples.schedule()),
        encode_version(samples.version()),
    ):
        assert not {"overlap", "retry"} & set(item)


def test_quotas_of_work_are_left_out_when_there_are_none() -> None:
    plain = Tenant("acme", Tier.BASIC)
    limited = replace(plain, quotas=Quotas(running=5, retries_per_minute=70))

    assert not {"quota_running", "quota_retries_per_minute"} & set(encode_tenant(plain))
    assert decode_tenant(encode_tenant(plain)) == plain
    assert decode_tenant(encode_tenant(limited)) == limited
