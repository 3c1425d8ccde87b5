"""Backfills on a terminal: one call, or call after call to the end of the range."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from hourbell.cli.client import Answer, Api
from hourbell.cli.tables import print_facts, print_table

_COUNTS = ("created", "would_create", "existed", "skipped")


def send_backfill(
    api: Api, path: str, body: Mapping[str, Any], *, whole: bool
) -> Answer:
    """Ask for a backfill; the first refusal when there is one.

    Args:
        api: where to ask.
        path: of the route, with its parameters.
        body: of the first request.
        whole: whether to go on, at the same pace, until the range is done; the
            answers are then put together as one.
    """
    answer = api.send("POST", path, body)
    if not whole or answer.status >= HTTPStatus.BAD_REQUEST:
        return answer
    done = answer.document
    while not done["complete"]:
        further = {
            **body,
            "from": done["next_from"],
            "to": done["to"],
            "pace_from": done["pace_from"],
        }
        answer = api.send("POST", path, further)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return answer
        done = _joined(done, answer.document)
    return Answer(answer.status, json.dumps(done))


def _joined(done: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Put two answers together that follow each other."""
    return {
        **more,
        **{name: done[name] + more[name] for name in _COUNTS},
        "skipped_before": done["skipped_before"],
        "items": [*done["items"], *more["items"]],
    }


def print_backfill(done: Mapping[str, Any]) -> None:
    """Print what became of each time, and what is left."""
    rows = [
        (
            each["scheduled_for"],
            each["outcome"],
            each["reason"] or each["state"],
            each["available_at"],
            each["occurrence_id"],
        )
        for each in done["items"]
    ]
    if rows:
        columns = ("scheduled for", "outcome", "state", "available at", "occurrence")
        print_table(columns, rows)
    counts = [(name.replace("_", " "), done[name]) for name in _COUNTS if done[name]]
    print_facts(
        *(counts or [("created", 0)]),
        *_fact("too old before", done["skipped_before"]),
        *_fact("go on from", done["next_from"]),
        *_fact("at a pace from", done["pace_from"]),
    )


def _fact(label: str, value: str | None) -> list[tuple[str, object]]:
    return [] if value is None else [(label, value)]
