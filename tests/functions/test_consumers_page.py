"""docs/consumers.md shows requests and answers as they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hourbell.api.work_models import (
    BeatAnswer,
    ClaimedAnswer,
    ClaimWork,
    ErrorFields,
    ExtendLeases,
    FailedAnswer,
    FailWork,
)
from hourbell.consumer.messages import parse_message
from pydantic import BaseModel

PAGE = (Path(__file__).parents[2] / "docs/consumers.md").read_text()
BLOCKS = [
    json.loads(each) for each in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
]
ROUTES: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "claim": (ClaimWork, ClaimedAnswer),
    "heartbeat": (ExtendLeases, BeatAnswer),
    "fail": (FailWork, FailedAnswer),
}
REQUESTS = [each for each in BLOCKS if "items" in each]
ANSWERS = [each for each in BLOCKS if "results" in each]


@pytest.mark.parametrize(
    ("models", "request_", "answer"),
    list(zip(ROUTES.values(), REQUESTS, ANSWERS, strict=True)),
    ids=list(ROUTES),
)
def test_a_request_is_taken_and_its_answer_has_all_members(
    models: tuple[type[BaseModel], type[BaseModel]],
    request_: dict[str, Any],
    answer: dict[str, Any],
) -> None:
    asked, answered = models
    assert asked.model_validate(request_).model_fields_set == set(request_)
    (result,) = answer["results"]
    assert answered.model_validate(result).model_fields_set == set(result)
    assert set(result) == set(answered.model_fields)
    assert result["occurrence_id"] == request_["items"][0]["occurrence_id"]


def test_every_member_of_an_error_is_told() -> None:
    (table,) = re.findall(r"\| member of `error` \|.*?\n\n", PAGE, re.DOTALL)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [
        field.alias or name for name, field in ErrorFields.model_fields.items()
    ]


def test_its_message_is_one() -> None:
    message = parse_message(json.dumps(BLOCKS[0]))
    assert message is not None
    assert message.handler == "report"
