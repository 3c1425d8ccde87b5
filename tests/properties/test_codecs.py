"""Every domain value survives the way through its item or message."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hourbell.adapters.dynamodb.codec import encode
from hourbell.adapters.dynamodb.control_items import (
    decode_handler,
    decode_lease,
    decode_listed,
    decode_own_principal,
    decode_principal,
    decode_tenant,
    encode_group,
    encode_handler,
    encode_listed,
    encode_own_principal,
    encode_principal,
    encode_tenant,
)
from hourbell.adapters.dynamodb.models import GroupItem
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    decode_row_key,
    encode_dispatch,
    encode_occurrence,
    is_dispatch,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_entry,
    decode_name,
    decode_schedule,
    decode_version,
    encode_name,
    encode_schedule,
    encode_version,
)
from hourbell.adapters.listing import Position, listing_key, position_of
from hourbell.adapters.messages import (
    decode_keys,
    decode_work,
    encode_keys,
    encode_work,
)
from hourbell.domain.dates import DateRange
from hourbell.domain.definition import (
    Definition,
    Handler,
    HandlerState,
    Quotas,
    Routing,
    Schedule,
    ScheduleState,
    Tenant,
    TenantState,
    Tier,
    Tracking,
    Version,
)
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.misfire import Decision, Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import Fold, Gap
from hourbell.usecases.ports import GroupWork, Lease
from hypothesis import given
from hypothesis import strategies as st

FIRST, LAST = datetime(1970, 1, 1), datetime(2199, 12, 31)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
name = text.filter(bool)
number = st.integers(0, 10**9)
instant = st.datetimes(FIRST, LAST, timezones=st.just(UTC))
whole_second = instant.map(lambda moment: moment.replace(microsecond=0))
ids = st.integers(0, 10**6).map(lambda n: f"sch{n:026d}")
optional_instant = st.none() | instant


def days(first: date, length: int) -> DateRange:
    return DateRange(first, first + timedelta(days=length))


timings = st.builds(
    Timing,
    expression=st.sampled_from(["0 9 * * MON-FRI", "rate(5 minutes)", "@hourly"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    start_at=optional_instant,
    end_at=optional_instant,
    max_occurrences=st.none() | st.integers(1, 10**6),
    exclude=st.lists(
        st.builds(days, st.dates(FIRST.date(), date(2190, 1, 1)), st.integers(0, 90)),
        max_size=3,
    ).map(tuple),
    anchor=st.none() | whole_second,
)
misfires = st.builds(
    Misfire,
    st.sampled_from(MisfirePolicy),
    st.none() | number,
    st.none() | number,
)
definitions = st.builds(
    Definition,
    timing=timings,
    handler=name,
    payload_json=text,
    tracking=st.sampled_from(Tracking),
    flexible_window_seconds=st.integers(0, 86_400),
    misfire=misfires,
)
schedules = st.builds(
    Schedule,
    schedule_id=ids,
    tenant_id=name,
    name=name,
    definition=definitions,
    state=st.sampled_from(ScheduleState),
    version=number,
    revision=number,
    created_at=instant,
    updated_at=instant,
    description=text,
    tags=st.dictionaries(name, text, max_size=4),
    home_region=text,
    generation=number,
    handover=st.booleans(),
)
versions = st.builds(
    Version,
    schedule_id=ids,
    version=number,
    tenant_id=name,
    name=name,
    definition=definitions,
    effective_from=optional_instant,
    tzdb=name,
    created_at=instant,
    created_by=name,
    effective_to=optional_instant,
    source=name,
    reason=st.none() | text,
    body_hash=st.none() | name,
    state=st.sampled_from(ScheduleState),
    base_sequence=number,
    ends_at=optional_instant,
    ends_as=st.none() | st.sampled_from(ScheduleState),
)
handovers = st.builds(
    Dispatch,
    kind=st.just(DispatchKind.HANDOVER),
    schedule_id=ids,
    version=number,
    tenant_id=name,
    due=whole_second,
    shard=st.integers(0, 1023),
    written_at=instant,
    state=st.sampled_from(DispatchState),
    expires_at=st.none() | whole_second,
)
releases = st.builds(
    replace,
    handovers,
    kind=st.just(DispatchKind.RELEASE),
    scheduled_for=whole_second,
    run=st.none() | st.from_regex("[0-9a-f]{16}", fullmatch=True),
)
dispatches = handovers | releases
tenants = st.builds(
    Tenant,
    name,
    st.sampled_from(Tier),
    st.sampled_from(TenantState),
    st.builds(
        Quotas,
        *[number] * 4,
        *[st.none() | number] * 3,
        number,
        st.none() | number,
    ),
    weight=number,
    revision=number,
    reason=text,
)
handlers = st.builds(
    Handler,
    name,
    name,
    st.sampled_from(Routing),
    st.sampled_from(HandlerState),
    queue_arn=st.none() | name,
    dead_letter_queue_arn=st.none() | name,
    dispatch_rate=st.none() | number,
    description=text,
    revision=number,
)
decisions = st.builds(
    Decision,
    as_of=instant,
    last=whole_second,
    count=number,
    sequence=number,
    runs_from=st.none() | whole_second,
    runs=number,
    following=st.none() | whole_second,
    per_minute=st.integers(1, 10**9),
)
occurrences = st.builds(
    Occurrence,
    schedule_id=ids,
    version=number,
    scheduled_for=whole_second,
    shard=st.integers(0, 1023),
    tenant_id=name,
    sequence=number,
    tzdb=name,
    planned_at=instant,
    state=st.sampled_from(State),
    available_at=optional_instant,
    lane=st.none() | st.sampled_from(Lane),
    queue=st.none() | name,
    scheduled_at=optional_instant,
    enqueued_at=optional_instant,
    visible_at=optional_instant,
    sends=number,
    misfire=st.booleans(),
    reason=st.none() | text,
    finished_at=optional_instant,
    expires_at=st.none() | whole_second,
    backfilled_at=optional_instant,
    overlap=st.none() | st.sampled_from(Overlap),
    decision=st.none() | decisions,
)
minutes = instant.map(lambda moment: moment.replace(second=0, microsecond=0))


@given(schedules)
def test_definitions(schedule: Schedule) -> None:
    assert decode_schedule(encode_schedule(schedule)) == schedule


@given(versions)
def test_versions(version: Version) -> None:
    assert decode_version(encode_version(version)) == version


@given(occurrences)
def test_rows(row: Occurrence) -> None:
    item = encode_occurrence(row)

    assert decode_occurrence(item) == row
    assert decode_row_key(item) == row.key


@given(occurrences)
def test_what_is_none_is_left_out(row: Occurrence) -> None:
    item = encode_occurrence(row)

    optional = ("available_at", "lane", "queue", "reason", "expires_at")
    for attribute in optional:
        assert (attribute in item) == (getattr(row, attribute) is not None)
    assert all("NULL" not in value for value in item.values())


@given(dispatches)
def test_dispatch_rows(row: Dispatch) -> None:
    item = encode_dispatch(row)

    assert is_dispatch(item)
    assert decode_dispatch(item) == row
    assert decode_row_key(item) == row.key


@given(schedules)
def test_names(schedule: Schedule) -> None:
    assert decode_name(encode_name(schedule)) == schedule.schedule_id


@given(schedules)
def test_entries_of_a_list(schedule: Schedule) -> None:
    entry = decode_entry(encode_schedule(schedule))

    assert (entry.schedule_id, entry.name) == (schedule.schedule_id, schedule.name)
    assert (entry.state, entry.tags) == (schedule.state, schedule.tags)
    assert (entry.version, entry.revision) == (schedule.version, schedule.revision)
    times = (schedule.created_at, schedule.updated_at)
    assert (entry.created_at, entry.updated_at) == times


@given(schedules, st.integers(0, 15))
def test_cursors(schedule: Schedule, shard: int) -> None:
    for position in (Position(shard), Position(shard, listing_key(schedule))):
        cursor = position.written()
        assert position_of(cursor, prefix="", shards=16) == position
        assert cursor.isascii()


@given(tenants)
def test_tenants(tenant: Tenant) -> None:
    assert decode_tenant(encode_tenant(tenant)) == tenant


@given(handlers)
def test_handlers(handler: Handler) -> None:
    assert decode_handler(encode_handler(handler)) == handler


@given(name, name)
def test_principals(principal: str, tenant_id: str) -> None:
    assert decode_principal(encode_principal(principal, tenant_id)) == tenant_id
    assert decode_own_principal(encode_own_principal(principal, tenant_id)) == principal
    assert decode_listed(encode_listed(tenant_id)) == tenant_id


@given(
    st.builds(
        Lease,
        group=st.integers(0, 10**4),
        holder=name,
        generation=number,
        expires_at=instant,
        floor=instant,
        watermarks=st.dictionaries(st.integers(0, 1023), minutes, max_size=8),
    )
)
def test_leases(lease: Lease) -> None:
    written = {
        "generation": lease.generation,
        "holder": lease.holder,
        "lease_until": lease.expires_at,
        "watermarks": dict(lease.watermarks),
    }

    item = encode_group(lease.group, lease.floor) | encode(GroupItem, written)

    assert decode_lease(item) == lease


@given(instant, instant)
def test_the_order_of_lease_ends_is_the_order_of_their_texts(
    first: datetime, second: datetime
) -> None:
    texts = [
        encode(GroupItem, {"lease_until": moment})["lease_until"]["S"]
        for moment in (first, second)
    ]

    assert (texts[0] < texts[1]) == (first < second)


@given(st.builds(GroupWork, group=number, tick=instant))
def test_orders_to_scan(work: GroupWork) -> None:
    assert decode_work(encode_work(work)) == work


@given(st.lists(occurrences.map(lambda row: row.key), max_size=50))
def test_keys_to_sweep(keys: list[object]) -> None:
    assert decode_keys(encode_keys(keys)) == tuple(keys)  # type: ignore[arg-type]


@given(occurrences, instant)
def test_a_ttl_is_never_earlier_than_asked(row: Occurrence, end: datetime) -> None:
    read = decode_occurrence(encode_occurrence(replace(row, expires_at=end)))

    assert read.expires_at is not None
    assert timedelta() <= read.expires_at - end < timedelta(seconds=1)
