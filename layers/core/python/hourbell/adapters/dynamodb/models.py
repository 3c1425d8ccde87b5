"""The items of the tables, described once as PynamoDB models.

Attribute names are read from here by the codec, the conditions and the packed
statements. Key names come from schemas/tables.json. `null=True` marks what an item
may lack; readers ignore attributes that they do not know.
"""

from pynamodb.attributes import JSONAttribute, UnicodeAttribute
from pynamodb.models import Model

from hourbell.adapters.dynamodb.attributes import (
    CountsAttribute,
    DecisionAttribute,
    EnumAttribute,
    ExpiryAttribute,
    FailureAttribute,
    FlagAttribute,
    InstantAttribute,
    IntegerAttribute,
    JsonTextAttribute,
    RetryAttribute,
    SortableInstantAttribute,
    TextMapAttribute,
    TextsAttribute,
    WatermarksAttribute,
)
from hourbell.adapters.dynamodb.layout import BY_TENANT, CONTROL, SCHEDULES, TIMELINE
from hourbell.domain.definition import (
    HandlerState,
    Routing,
    ScheduleState,
    TenantState,
    Tier,
    Tracking,
)
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.job import JobState, Operation
from hourbell.domain.misfire import MisfirePolicy
from hourbell.domain.occurrence import Lane, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.parking import ParkReason
from hourbell.domain.work import AttemptResult


class _Defined(Model):
    """What a definition and a version log entry have in common."""

    schedule_id = UnicodeAttribute(hash_key=True, attr_name=SCHEDULES.partition)
    item = UnicodeAttribute(range_key=True, attr_name=SCHEDULES.sort)
    schema = IntegerAttribute()
    tenant_id = UnicodeAttribute()
    name = UnicodeAttribute()
    version = IntegerAttribute()
    timing: JSONAttribute = JSONAttribute()
    handler = UnicodeAttribute()
    payload = UnicodeAttribute()
    tracking = EnumAttribute(Tracking)
    flexible_window_seconds = IntegerAttribute(null=True)
    misfire = EnumAttribute(MisfirePolicy, null=True)
    catch_up_limit = IntegerAttribute(null=True)
    max_lateness_seconds = IntegerAttribute(null=True)
    overlap = EnumAttribute(Overlap, null=True)
    retry = RetryAttribute(null=True)
    created_at = InstantAttribute()


class DefinitionItem(_Defined):
    """`DEF` of the schedules table: the current definition."""

    tenant_shard = UnicodeAttribute(attr_name=BY_TENANT.partition)
    listing_key = UnicodeAttribute(attr_name=BY_TENANT.sort)
    state = EnumAttribute(ScheduleState)
    revision = IntegerAttribute()
    updated_at = InstantAttribute()
    description = UnicodeAttribute(null=True)
    tags = TextMapAttribute(null=True)
    home_region = UnicodeAttribute(null=True)
    generation = IntegerAttribute()
    handover = IntegerAttribute(null=True)
    slot = IntegerAttribute(null=True)


class VersionItem(_Defined):
    """`V#<version>` of the schedules table: an entry of the version log."""

    effective_from = InstantAttribute(null=True)
    effective_to = InstantAttribute(null=True)
    tzdb = UnicodeAttribute()
    created_by = UnicodeAttribute()
    source = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    body_hash = UnicodeAttribute(null=True)
    state = EnumAttribute(ScheduleState, null=True)
    base_sequence = IntegerAttribute(null=True)
    ends_at = InstantAttribute(null=True)
    ends_as = EnumAttribute(ScheduleState, null=True)


class RunItem(Model):
    """`P#r<run>` of the schedules table: a manual run, which no rule can recompute."""

    schedule_id = UnicodeAttribute(hash_key=True, attr_name=SCHEDULES.partition)
    item = UnicodeAttribute(range_key=True, attr_name=SCHEDULES.sort)
    schema = IntegerAttribute()
    key_hash = UnicodeAttribute()
    version = IntegerAttribute()
    scheduled_for = InstantAttribute()
    requested_by = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)


class BackfillItem(Model):
    """`P#b<time>` of the schedules table: a time that a backfill made."""

    schedule_id = UnicodeAttribute(hash_key=True, attr_name=SCHEDULES.partition)
    item = UnicodeAttribute(range_key=True, attr_name=SCHEDULES.sort)
    schema = IntegerAttribute()
    scheduled_for = InstantAttribute()
    version = IntegerAttribute()
    requested_at = InstantAttribute()
    requested_by = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)


class NameItem(Model):
    """`NAME` of the schedules table: which schedule of a tenant has a name."""

    schedule_id = UnicodeAttribute(hash_key=True, attr_name=SCHEDULES.partition)
    item = UnicodeAttribute(range_key=True, attr_name=SCHEDULES.sort)
    schema = IntegerAttribute()
    held_by = UnicodeAttribute()


class OccurrenceItem(Model):
    """An occurrence; its schedule, version, time and shard stand in its key."""

    bucket_shard = UnicodeAttribute(hash_key=True, attr_name=TIMELINE.partition)
    row_key = UnicodeAttribute(range_key=True, attr_name=TIMELINE.sort)
    schema = IntegerAttribute()
    state = EnumAttribute(State)
    tenant_id = UnicodeAttribute()
    sequence = IntegerAttribute()
    tzdb = UnicodeAttribute()
    planned_at = InstantAttribute()
    available_at = InstantAttribute(null=True)
    lane = EnumAttribute(Lane, null=True)
    queue = UnicodeAttribute(null=True)
    scheduled_at = InstantAttribute(null=True)
    enqueued_at = InstantAttribute(null=True)
    visible_at = InstantAttribute(null=True)
    sends = IntegerAttribute(null=True)
    misfire = FlagAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    finished_at = InstantAttribute(null=True)
    expires_at = ExpiryAttribute(null=True)
    backfilled_at = InstantAttribute(null=True)
    overlap = EnumAttribute(Overlap, null=True)
    decision = DecisionAttribute(null=True)
    attempt = IntegerAttribute(null=True)
    attempts_before = IntegerAttribute(null=True)
    lease_token = UnicodeAttribute(null=True)
    lease_expires_at = InstantAttribute(null=True)
    worker = UnicodeAttribute(null=True)
    started_at = InstantAttribute(null=True)
    begun_at = InstantAttribute(null=True)
    slot = IntegerAttribute(null=True)
    waits = IntegerAttribute(null=True)
    failure = FailureAttribute(null=True)
    cancel_requested_at = InstantAttribute(null=True)
    replayed_at = InstantAttribute(null=True)
    told_at = InstantAttribute(null=True)


class DispatchItem(Model):
    """A dispatch row; what is to be done, and about what, stands in its key."""

    bucket_shard = UnicodeAttribute(hash_key=True, attr_name=TIMELINE.partition)
    row_key = UnicodeAttribute(range_key=True, attr_name=TIMELINE.sort)
    schema = IntegerAttribute()
    kind = UnicodeAttribute()
    state = EnumAttribute(DispatchState)
    tenant_id = UnicodeAttribute()
    written_at = InstantAttribute()
    expires_at = ExpiryAttribute(null=True)


class AttemptItem(Model):
    """An attempt without success; its occurrence and number stand in its key."""

    bucket_shard = UnicodeAttribute(hash_key=True, attr_name=TIMELINE.partition)
    row_key = UnicodeAttribute(range_key=True, attr_name=TIMELINE.sort)
    schema = IntegerAttribute()
    lease_token = UnicodeAttribute()
    worker = UnicodeAttribute()
    started_at = InstantAttribute()
    finished_at = InstantAttribute()
    result = EnumAttribute(AttemptResult)
    failure = FailureAttribute(null=True)
    expires_at = ExpiryAttribute()


class _Control(Model):
    """The key of the control table."""

    control_key = UnicodeAttribute(hash_key=True, attr_name=CONTROL.partition)
    item = UnicodeAttribute(range_key=True, attr_name=CONTROL.sort)
    schema = IntegerAttribute()


class TenantItem(_Control):
    """A tenant."""

    tenant_id = UnicodeAttribute()
    tier = EnumAttribute(Tier)
    state = EnumAttribute(TenantState)
    reason = UnicodeAttribute(null=True)
    weight = IntegerAttribute(null=True)
    revision = IntegerAttribute(null=True)
    quota_schedules = IntegerAttribute(null=True)
    quota_payload_bytes = IntegerAttribute(null=True)
    quota_min_interval_seconds = IntegerAttribute(null=True)
    quota_catch_up_per_minute = IntegerAttribute(null=True)
    quota_triggers_per_minute = IntegerAttribute(null=True)
    quota_running = IntegerAttribute(null=True)
    quota_retries_per_minute = IntegerAttribute(null=True)
    quota_retry_attempts = IntegerAttribute(null=True)
    quota_retry_deadline_seconds = IntegerAttribute(null=True)


class HandlerItem(_Control):
    """A handler of a tenant."""

    tenant_id = UnicodeAttribute()
    name = UnicodeAttribute()
    routing = EnumAttribute(Routing)
    state = EnumAttribute(HandlerState, null=True)
    queue_arn = UnicodeAttribute(null=True)
    dead_letter_queue_arn = UnicodeAttribute(null=True)
    dispatch_rate = IntegerAttribute(null=True)
    description = UnicodeAttribute(null=True)
    revision = IntegerAttribute(null=True)


class PrincipalItem(_Control):
    """The tenant of an IAM identity, under the identity and under the tenant."""

    tenant_id = UnicodeAttribute()


class ListedItem(_Control):
    """A tenant's id in the list of all."""


class CountItem(_Control):
    """How many schedules of a tenant count against its quota, and what is granted."""

    used = IntegerAttribute()
    quota = IntegerAttribute(null=True)
    grants = IntegerAttribute(null=True)


class SlotItem(_Control):
    """A sub-counter of a tenant's schedules."""

    used = IntegerAttribute()
    granted = IntegerAttribute()
    quota = IntegerAttribute(null=True)


class GroupItem(_Control):
    """Lease and watermarks of a shard group. Without `lease_until` it is free."""

    floor = InstantAttribute()
    generation = IntegerAttribute()
    holder = UnicodeAttribute(null=True)
    lease_until = SortableInstantAttribute(null=True)
    watermarks = WatermarksAttribute(null=True)
    passed_at = InstantAttribute(null=True)
    looked_at = InstantAttribute(null=True)
    looked_until = InstantAttribute(null=True)


class EpochsItem(_Control):
    """The shard count of every bucket, and how far a change of it has come.

    `epochs` is a list of [since or null, shards, groups, phase], the oldest first.
    """

    epochs = JSONAttribute()
    revision = IntegerAttribute()
    changed_at = InstantAttribute()
    requested_by = UnicodeAttribute(null=True)
    round = IntegerAttribute()
    segments = IntegerAttribute()
    done = JSONAttribute()
    moved = IntegerAttribute()
    left = IntegerAttribute()


def minute_name(number: int) -> str:
    """Return the attribute of a minute of an hour's loads: `m00` to `m59`."""
    return f"m{number:02}"


class LoadItem(_Control):
    """How many occurrences fall on each minute of a UTC hour; 0 is left out."""

    expires_at = ExpiryAttribute()
    # One attribute each: an update can add to what is not there, but not within a map.
    vars().update(
        {minute_name(number): IntegerAttribute(null=True) for number in range(60)}
    )


class RateItem(_Control):
    """The places of a rate that are taken in a minute."""

    taken = CountsAttribute()
    revision = IntegerAttribute()
    expires_at = ExpiryAttribute()


class JobItem(_Control):
    """A job and its progress."""

    job_id = UnicodeAttribute()
    tenant_id = UnicodeAttribute()
    operation = EnumAttribute(Operation)
    dry_run = FlagAttribute()
    principal = UnicodeAttribute()
    created_by = UnicodeAttribute()
    source = UnicodeAttribute()
    body_hash = UnicodeAttribute()
    created_at = InstantAttribute()
    updated_at = InstantAttribute()
    finished_at = InstantAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    state = EnumAttribute(JobState)
    failure = UnicodeAttribute(null=True)
    total = IntegerAttribute(null=True)
    changed = IntegerAttribute()
    unchanged = IntegerAttribute()
    refused = IntegerAttribute()
    tags = TextMapAttribute(null=True)
    walk_after = UnicodeAttribute(null=True)
    walk_finished = FlagAttribute(null=True)
    walk_rest: JsonTextAttribute = JsonTextAttribute(null=True)
    walk_letters: JsonTextAttribute = JsonTextAttribute(null=True)
    walk_next_at = InstantAttribute(null=True)
    step = IntegerAttribute()
    expires_at = ExpiryAttribute()


class JobItemsItem(_Control):
    """Up to 25 items of a job, of one kind."""

    schedule_ids = TextsAttribute(null=True)
    schedules: JsonTextAttribute = JsonTextAttribute(null=True)
    payloads = TextsAttribute(null=True)
    expires_at = ExpiryAttribute()


class JobResultsItem(_Control):
    """Up to 25 results of a job."""

    results: JsonTextAttribute = JsonTextAttribute()
    expires_at = ExpiryAttribute()


class ListedJobItem(_Control):
    """A job's place in the list of its tenant's."""

    job_id = UnicodeAttribute()
    expires_at = ExpiryAttribute()


class ReminderItem(_Control):
    """That an open job is to be seen after; when, stands in its key, too."""

    job_id = UnicodeAttribute()
    due_at = InstantAttribute()
    step = IntegerAttribute()
    tries = IntegerAttribute()
    expires_at = ExpiryAttribute()


class LaneItem(_Control):
    """Who of a schedule runs, and who waits."""

    holder = UnicodeAttribute(null=True)
    waiting = UnicodeAttribute(null=True)
    revision = IntegerAttribute()


class RunningItem(_Control):
    """Who has one of the places of a tenant that may run so many at a time."""

    holder = UnicodeAttribute()


class DeadItem(_Control):
    """That an occurrence is DEAD; which one, and when it died, stand in its key."""

    reason = UnicodeAttribute()
    expires_at = ExpiryAttribute()


class ParkedItem(_Control):
    """A parked row; its group and its key stand in the item's key."""

    reason = EnumAttribute(ParkReason)
    since = InstantAttribute()
    next_try_at = InstantAttribute()
    tries = IntegerAttribute()
    tenant_id = UnicodeAttribute(null=True)
    asked_at = InstantAttribute(null=True)
