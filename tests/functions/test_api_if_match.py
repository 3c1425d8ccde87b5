"""`If-Match` of the changes of a schedule."""

from typing import Any

import pytest

from tests.functions.conftest import Api
from tests.functions.schedules import act, cancel, create, get, patch


@pytest.fixture
def bell(api: Api) -> Any:
    return create(api)


def test_an_update_must_say_what_it_was_made_for(api: Api, bell: Any) -> None:
    answer = patch(api, bell["schedule_id"], {"payload": 5}, if_match=None)
    assert (answer.status, answer.code) == (428, "precondition_required")
    assert get(api, bell["schedule_id"]).body == bell


@pytest.mark.parametrize(
    "tag",
    [
        *('"2"', '"0"', 'W/"1"', '"x"', '""', '"01"', '"2", "3"', '"2",,', '"1,1"'),
        *(f'"1.sch{"0" * 26}"', '"1."', '"1.sch"', '"2.{id}"', 'W/"1.{id}"'),
    ],
)
def test_another_revision_is_refused(api: Api, bell: Any, tag: str) -> None:
    tag = tag.replace("{id}", bell["schedule_id"])
    answer = patch(api, bell["schedule_id"], {"payload": 5}, if_match=tag)
    assert (answer.status, answer.code) == (412, "precondition_failed")
    assert answer.body["revision"] == 1
    assert get(api, bell["schedule_id"]).body == bell


@pytest.mark.parametrize(
    "tag",
    [
        *('"1"', "*", '"3", "1"', ' "1" ,W/"2"', '"1.{id}"', '"2.{id}", "1.{id}"'),
        # Elements that are empty do not count (RFC 9110, 5.6.1.2).
        *('"1", , "2"', ',"1"', '"1",', ' ,, "1.{id}" ,\t,'),
    ],
)
def test_the_right_revision_goes_through(api: Api, bell: Any, tag: str) -> None:
    tag = tag.replace("{id}", bell["schedule_id"])
    answer = patch(api, bell["schedule_id"], {"payload": 5}, if_match=tag)
    assert answer.status == 200


@pytest.mark.parametrize(
    "tag",
    ["1", "", " ", ",", ", ,", '"1', '"1" "2"', "**", '"1",x', '"1",*', "x" * 2000],
)
def test_what_is_no_entity_tag_is_refused(api: Api, bell: Any, tag: str) -> None:
    answer = patch(api, bell["schedule_id"], {"payload": 5}, if_match=tag)
    assert answer.status == 400
    assert set(answer.findings) == {"if-match"}


def test_others_need_not_say_it_but_are_held_to_it(api: Api, bell: Any) -> None:
    schedule_id = bell["schedule_id"]
    stale = [
        act(api, schedule_id, "pause", if_match='"9"'),
        act(api, schedule_id, "resume", if_match='"9"'),
        cancel(api, schedule_id, if_match='"9"'),
    ]
    for answer in stale:
        assert (answer.status, answer.code) == (412, "precondition_failed")
    assert act(api, schedule_id, "pause", if_match='"1"').status == 200
    own = f'"2.{schedule_id}"'
    assert act(api, schedule_id, "resume", if_match=own).status == 200
    assert cancel(api, schedule_id, if_match='"3"').status == 200
