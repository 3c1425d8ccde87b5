"""What each route answers: its models, headers and problems.

A route's own signature says what it takes; what it answers is said here. Nobody has to
believe it: real requests are compared with it, and so is docs/api.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hourbell.api import (
    answers,
    backfill_models,
    dead_letter_models,
    handler_models,
    job_models,
    occurrence_models,
    parked_models,
    preview_answers,
    shard_models,
    tenant_models,
    work_models,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hourbell.api.documents import Answer

# Statuses of the codes that are not a 400.
STATUSES: Final = {
    "forbidden": 403,
    "tenant_suspended": 403,
    "not_found": 404,
    "run_expired": 404,
    "idempotency_key_reused": 409,
    "name_taken": 409,
    "schedule_canceled": 409,
    "schedule_completed": 409,
    "job_ended": 409,
    "handler_exists": 409,
    "tenant_exists": 409,
    "principal_taken": 409,
    "resharding_under_way": 409,
    "shards_unchanged": 409,
    "not_provisioned": 409,
    "not_dead": 409,
    "already_over": 409,
    "already_dispatched": 409,
    "schedule_changing": 409,
    "precondition_failed": 412,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "precondition_required": 428,
    "quota_exceeded": 429,
    "internal_error": 500,
    "unavailable": 503,
}

EVERYWHERE: Final = frozenset(
    {
        *("invalid_input", "unknown_parameter", "repeated_parameter"),
        *("forbidden", "tenant_suspended", "quota_exceeded"),
        *("internal_error", "unavailable"),
    }
)
# What breaks the bounds of a field or a parameter.
BOUNDS: Final = frozenset(
    {
        *("missing", "wrong_type", "too_short", "too_long", "out_of_range"),
        *("invalid_characters", "unsupported_value", "unknown_choice"),
        *("invalid_value", "reserved", "unexpected"),
    }
)
BODY: Final = BOUNDS | {
    *("unknown_field", "invalid_json", "body_too_deep"),
    *("body_too_large", "unsupported_media_type"),
}
PAGE: Final = BOUNDS | {"invalid_cursor"}
TIMING: Final = BODY | {
    *("invalid_expression", "never_fires", "unknown_zone", "invalid_timestamp"),
    *("invalid_date", "reversed_range", "end_before_start"),
}
DEFINITION: Final = TIMING | {
    *("unknown_handler", "handler_retired", "payload_too_large"),
    *("interval_too_short", "overlap_needs_tracking", "retry_needs_tracking"),
    *("retry_over_quota", "repeated_value"),
}
# What only shows when a definition is held against what is stored.
STORED: Final = frozenset(
    {
        *("unknown_handler", "handler_retired"),
        *("interval_too_short", "retry_over_quota"),
    }
)
# Of a body that a route does not look at.
UNREAD: Final = frozenset({"unsupported_media_type", "invalid_json"})
QUEUE: Final = frozenset(
    {"invalid_queue_arn", "foreign_queue", "queue_not_writable", "not_provisioned"}
)
# Of a change that may, or must, name the revision that it is meant for.
MATCHED: Final = BOUNDS | {"precondition_failed"}
MUST_MATCH: Final = MATCHED | {"precondition_required"}
CHANGE: Final = MATCHED | {"not_found", "schedule_canceled", "schedule_completed"}


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route answers.

    Attributes:
        name: the `operationId`, `<noun>.<verb>`.
        answers: status -> models, one of which the body is.
        problems: codes besides those of every route.
        headers: names of the answers' headers besides `X-Request-Id`.
    """

    name: str
    answers: Mapping[int, tuple[type[Answer], ...]]
    problems: frozenset[str] = field(default_factory=frozenset)
    headers: tuple[str, ...] = ()

    @property
    def codes(self) -> frozenset[str]:
        """Every code of the route's problems."""
        return EVERYWHERE | self.problems


CHANGED: Final = {200: (answers.ChangeAnswer,)}
TAG: Final = ("ETag",)
CREATED: Final = ("ETag", "Location")
REPLAYED: Final = "Idempotency-Replayed"

SCHEDULES: Final = {
    ("POST", "/v1/schedules"): Operation(
        "schedules.create",
        {200: (preview_answers.CreateRehearsalAnswer,), 201: (answers.ScheduleAnswer,)},
        DEFINITION | {"idempotency_key_reused", "name_taken"},
        (*CREATED, REPLAYED),
    ),
    ("GET", "/v1/schedules"): Operation(
        "schedules.list", {200: (answers.ListAnswer,)}, PAGE
    ),
    ("GET", "/v1/schedules/{schedule_id}"): Operation(
        "schedules.get",
        {200: (answers.ScheduleAnswer,)},
        frozenset({"not_found"}),
        TAG,
    ),
    ("PATCH", "/v1/schedules/{schedule_id}"): Operation(
        "schedules.update",
        {200: (answers.ChangeAnswer, preview_answers.UpdateRehearsalAnswer)},
        CHANGE | MUST_MATCH | DEFINITION | {"immutable_field"},
        TAG,
    ),
    ("DELETE", "/v1/schedules/{schedule_id}"): Operation(
        "schedules.cancel", CHANGED, CHANGE, TAG
    ),
    ("POST", "/v1/schedules/{schedule_id}/pause"): Operation(
        "schedules.pause", CHANGED, CHANGE | BODY, TAG
    ),
    ("POST", "/v1/schedules/{schedule_id}/resume"): Operation(
        "schedules.resume", CHANGED, CHANGE | BODY | {"never_fires"}, TAG
    ),
    ("POST", "/v1/schedules/{schedule_id}/run"): Operation(
        "schedules.run",
        {201: (answers.RunAnswer,)},
        BODY | {"not_found", "run_expired", "schedule_canceled"},
        (REPLAYED,),
    ),
    ("POST", "/v1/schedules/{schedule_id}/backfill"): Operation(
        "schedules.backfill",
        {200: (backfill_models.BackfillAnswer,)},
        BODY
        | {"not_found", "schedule_canceled", "overlap_needs_tracking"}
        | {"invalid_timestamp", "reversed_range"},
    ),
    ("GET", "/v1/schedules/{schedule_id}/versions"): Operation(
        "schedules.versions", {200: (answers.VersionsAnswer,)}, PAGE | {"not_found"}
    ),
    ("PUT", "/v1/schedules/by-name/{name}"): Operation(
        "schedules.put",
        {200: (answers.ChangeAnswer,), 201: (answers.ScheduleAnswer,)},
        DEFINITION | MATCHED | {"name_taken"},
        CREATED,
    ),
    ("POST", "/v1/schedules/preview"): Operation(
        "schedules.preview", {200: (preview_answers.PreviewAnswer,)}, TIMING
    ),
}
HANDLER: Final = {200: (handler_models.HandlerAnswer,)}
HANDLERS: Final = {
    ("GET", "/v1/handlers"): Operation(
        "handlers.list", {200: (handler_models.HandlerListAnswer,)}, PAGE
    ),
    ("POST", "/v1/handlers"): Operation(
        "handlers.register",
        {201: (handler_models.HandlerAnswer,)},
        BODY | QUEUE | {"handler_exists"},
        CREATED,
    ),
    ("GET", "/v1/handlers/{name}"): Operation(
        "handlers.get", HANDLER, frozenset({"not_found"}), TAG
    ),
    ("PATCH", "/v1/handlers/{name}"): Operation(
        "handlers.change", HANDLER, BODY | QUEUE | MUST_MATCH | {"not_found"}, TAG
    ),
    ("DELETE", "/v1/handlers/{name}"): Operation(
        "handlers.retire", HANDLER, MATCHED | {"not_found"}, TAG
    ),
}
JOB: Final = {200: (job_models.JobAnswer,)}
NO_JOB: Final = frozenset({"not_found"})
JOBS: Final = {
    ("POST", "/v1/schedules/batch"): Operation(
        "schedules.batch",
        {202: (job_models.JobAnswer,)},
        (DEFINITION - STORED) | {"repeated_value", "idempotency_key_reused"},
        ("Location", REPLAYED),
    ),
    ("GET", "/v1/jobs"): Operation(
        "jobs.list", {200: (job_models.JobListAnswer,)}, PAGE
    ),
    ("GET", "/v1/jobs/{job_id}"): Operation("jobs.get", JOB, NO_JOB),
    ("GET", "/v1/jobs/{job_id}/results"): Operation(
        "jobs.results", {200: (job_models.ResultsAnswer,)}, PAGE | NO_JOB
    ),
    ("POST", "/v1/jobs/{job_id}/cancel"): Operation(
        "jobs.cancel", JOB, NO_JOB | {"job_ended", *UNREAD}
    ),
    ("POST", "/v1/jobs/{job_id}/resume"): Operation(
        "jobs.resume", JOB, NO_JOB | {"job_ended", *UNREAD}
    ),
}
TENANT: Final = {200: (tenant_models.TenantAnswer,)}
PRINCIPAL: Final = {200: (tenant_models.PrincipalAnswer,)}
TENANTS: Final = {
    ("GET", "/v1/admin/tenants"): Operation(
        "tenants.list", {200: (tenant_models.TenantListAnswer,)}, PAGE
    ),
    ("POST", "/v1/admin/tenants"): Operation(
        "tenants.create",
        {201: (tenant_models.TenantAnswer,)},
        BODY | {"invalid_principal", "principal_taken", "tenant_exists"},
        CREATED,
    ),
    ("GET", "/v1/admin/tenants/{tenant_id}"): Operation(
        "tenants.get", TENANT, frozenset({"not_found"}), TAG
    ),
    ("PATCH", "/v1/admin/tenants/{tenant_id}"): Operation(
        "tenants.change", TENANT, BODY | MUST_MATCH | {"not_found"}, TAG
    ),
    ("GET", "/v1/admin/tenants/{tenant_id}/principals"): Operation(
        "tenants.list_principals",
        {200: (tenant_models.PrincipalsAnswer,)},
        frozenset({"not_found"}),
    ),
    ("PUT", "/v1/admin/tenants/{tenant_id}/principals/{principal}"): Operation(
        "tenants.add_principal",
        PRINCIPAL,
        frozenset({"invalid_principal", "principal_taken", "not_found"}),
    ),
    ("DELETE", "/v1/admin/tenants/{tenant_id}/principals/{principal}"): Operation(
        "tenants.remove_principal",
        PRINCIPAL,
        frozenset({"invalid_principal", "not_found"}),
    ),
}
SHARDS: Final = {
    ("GET", "/v1/admin/shards"): Operation(
        "shards.get", {200: (shard_models.ShardsAnswer,)}
    ),
    ("POST", "/v1/admin/shards"): Operation(
        "shards.change",
        {202: (shard_models.ShardsAnswer,)},
        BODY
        | {"invalid_timestamp", "too_many_epochs"}
        | {"resharding_under_way", "shards_unchanged"},
    ),
    ("POST", "/v1/admin/shards/resume"): Operation(
        "shards.resume", {202: (shard_models.ShardsAnswer,)}, UNREAD
    ),
}
PARKED: Final = {
    ("GET", "/v1/admin/parked"): Operation(
        "parked.list", {200: (parked_models.ParkedListAnswer,)}, PAGE
    ),
    ("POST", "/v1/admin/parked/{parked_id}/retry"): Operation(
        "parked.retry",
        {202: (parked_models.ParkedAnswer,)},
        UNREAD | {"not_found"},
    ),
}
# Of an occurrence that a path names.
ONE: Final = frozenset({"not_found", "invalid_occurrence_id"})
WORK: Final = BODY | {"invalid_occurrence_id", "repeated_value"}
OCCURRENCE: Final = "/v1/occurrences/{occurrence_id}"
OCCURRENCES: Final = {
    ("POST", "/v1/occurrences/claim"): Operation(
        "occurrences.claim", {200: (work_models.ClaimAnswers,)}, WORK
    ),
    ("POST", "/v1/occurrences/heartbeat"): Operation(
        "occurrences.heartbeat", {200: (work_models.BeatAnswers,)}, WORK
    ),
    ("POST", "/v1/occurrences/complete"): Operation(
        "occurrences.complete", {200: (work_models.CompleteAnswers,)}, WORK
    ),
    ("POST", "/v1/occurrences/fail"): Operation(
        "occurrences.fail", {200: (work_models.FailAnswers,)}, WORK
    ),
    ("GET", OCCURRENCE): Operation(
        "occurrences.get", {200: (occurrence_models.OccurrenceToldAnswer,)}, ONE
    ),
    ("POST", f"{OCCURRENCE}/cancel"): Operation(
        "occurrences.cancel",
        {200: (occurrence_models.OccurrenceStateAnswer,)},
        ONE | BODY | {"already_over", "already_dispatched", "schedule_changing"},
    ),
    ("POST", f"{OCCURRENCE}/replay"): Operation(
        "occurrences.replay",
        {200: (occurrence_models.OccurrenceStateAnswer,)},
        ONE | UNREAD | {"not_dead"},
    ),
}
REPLAN: Final = "/v1/admin/tenants/{tenant_id}/replan"
REPLANS: Final = {
    ("POST", REPLAN): Operation(
        "replans.start",
        {202: (job_models.JobAnswer,)},
        BOUNDS | UNREAD | {"not_found", "idempotency_key_reused"},
        ("Location", REPLAYED),
    ),
    ("GET", f"{REPLAN}/{{job_id}}"): Operation("replans.get", JOB, NO_JOB),
    ("GET", f"{REPLAN}/{{job_id}}/results"): Operation(
        "replans.results", {200: (job_models.ResultsAnswer,)}, PAGE | NO_JOB
    ),
}
DEAD_LETTERS: Final = {
    ("GET", "/v1/dead-letters"): Operation(
        "dead_letters.list",
        {200: (dead_letter_models.DeadLetterListAnswer,)},
        PAGE | {"invalid_timestamp", "reversed_range"},
    ),
    ("POST", "/v1/dead-letters/replay"): Operation(
        "dead_letters.replay",
        {202: (job_models.JobAnswer,)},
        BODY | {"invalid_timestamp", "reversed_range", "idempotency_key_reused"},
        ("Location", REPLAYED),
    ),
}
OPERATIONS: Final[dict[tuple[str, str], Operation]] = {
    **SCHEDULES,
    **HANDLERS,
    **JOBS,
    **OCCURRENCES,
    **TENANTS,
    **SHARDS,
    **PARKED,
    **REPLANS,
    **DEAD_LETTERS,
    ("GET", "/v1/usage"): Operation("usage.get", {200: (tenant_models.UsageAnswer,)}),
}
