"""The platform role sees parked rows, and has them tried again."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.domain.schedule import Timing
from hourbell.usecases.parked import MAX_READS, READ

from tests.functions.conftest import Answer, Api
from tests.functions.test_api_tenants import call
from tests.unit.usecases.world import MINUTE, START, World

PARKED = "/v1/admin/parked"
SCHEDULE = f"sch{'0' * 26}"


def park(
    world: World, number: int, group: int = 0, **members: Any
) -> tuple[ParkedRow, str]:
    """Park a row of its own minute; return it and its id, spelled by hand."""
    minute = START + number * MINUTE
    stamp = f"{minute:%Y%m%dT%H%M}"
    key = RowKey(f"{stamp}Z", group, f"{stamp}00Z#{SCHEDULE}#v1")
    row = ParkedRow(
        group, key, ParkReason.UNSENT, START, START + timedelta(hours=1), 2, "acme"
    )
    row = replace(row, **members)
    world.parking.park(row)
    text = f"{group}#{stamp}Z#000{group}#{stamp}00Z#{SCHEDULE}#v1"
    return row, base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def listed(api: Api, **query: Any) -> Answer:
    wanted = {name: [str(value)] for name, value in query.items()}
    return call(api, "GET", PARKED, query=wanted or None)


def retry(api: Api, parked_id: str) -> Answer:
    return call(
        api,
        "POST",
        f"{PARKED}/{parked_id}/retry",
        resource=PARKED + "/{parked_id}/retry",
        path_parameters={"parked_id": parked_id},
    )


def test_without_parked_rows_the_list_is_empty(api: Api) -> None:
    answer = listed(api)
    assert (answer.status, answer.body) == (200, {"parked": [], "cursor": None})


def test_a_parked_row_is_shown_with_its_place_and_reason(
    api: Api, world: World
) -> None:
    _, parked_id = park(world, 3, group=1)
    assert listed(api).body["parked"] == [
        {
            "parked_id": parked_id,
            "group": 1,
            "partition": "20260309T1203Z#0001",
            "sort": f"20260309T120300Z#{SCHEDULE}#v1",
            "reason": "UNSENT",
            "tenant_id": "acme",
            "since": "2026-03-09T12:00:00Z",
            "tries": 2,
            "next_try_at": "2026-03-09T13:00:00Z",
            "asked_at": None,
        }
    ]


def test_pages_go_through_all_groups_in_order(api: Api, world: World) -> None:
    ids = [park(world, number, group)[1] for group in (0, 1) for number in range(3)]
    found, cursor = [], None
    for _ in range(9):
        page = listed(api, limit=2, **({"cursor": cursor} if cursor else {})).body
        found += [each["parked_id"] for each in page["parked"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == ids


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"group": 1}, {3}),
        ({"tenant_id": "zenith"}, {2}),
        ({"reason": "HELD"}, {1, 3}),
        ({"reason": "HELD", "group": 0}, {1}),
        ({"tenant_id": "nobody"}, set()),
    ],
)
def test_filters_narrow_the_list(
    api: Api, world: World, query: dict[str, Any], expected: set[int]
) -> None:
    ids = {
        park(world, 0)[1]: 0,
        park(world, 1, reason=ParkReason.HELD)[1]: 1,
        park(world, 2, tenant_id="zenith")[1]: 2,
        park(world, 3, group=1, reason=ParkReason.HELD, tenant_id=None)[1]: 3,
    }
    page = listed(api, **query).body
    assert {ids[each["parked_id"]] for each in page["parked"]} == expected
    assert page["cursor"] is None


def test_a_page_that_finds_too_little_goes_on_elsewhere(api: Api, world: World) -> None:
    count = MAX_READS * READ
    key = RowKey("20260309T1200Z", 0, "")
    for number in range(count):
        row = ParkedRow(
            0, replace(key, sort=f"{number:06d}"), ParkReason.HELD, START, START
        )
        world.store.parked[0, row.key] = row
    _, wanted = park(world, 5)
    page = listed(api, reason="UNSENT").body
    assert page["parked"] == []
    assert page["cursor"] is not None
    page = listed(api, reason="UNSENT", cursor=page["cursor"]).body
    assert [each["parked_id"] for each in page["parked"]] == [wanted]
    assert page["cursor"] is None


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ({"group": 2}, "group", "out_of_range"),
        ({"group": -1}, "group", "out_of_range"),
        ({"group": "one"}, "group", "wrong_type"),
        ({"reason": "BORED"}, "reason", "unsupported_value"),
        ({"cursor": "nonsense"}, "cursor", "invalid_cursor"),
        ({"cursor": "w6R-"}, "cursor", "invalid_cursor"),
        ({"limit": 101}, "limit", "out_of_range"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_by_name(
    api: Api, query: dict[str, Any], field: str, code: str
) -> None:
    answer = listed(api, **query)
    assert answer.status == 400
    assert answer.findings[field]["code"] == code


def test_a_cursor_of_another_group_is_refused(api: Api, world: World) -> None:
    _, first = park(world, 0, group=0)
    park(world, 1, group=0)
    assert listed(api, group=0, cursor=first).status == 200
    assert listed(api, group=1, cursor=first).code == "invalid_cursor"


def test_a_retry_lets_the_next_pass_try_and_says_so(api: Api, world: World) -> None:
    _, parked_id = park(world, 0)
    world.clock.set(START + 5 * MINUTE)
    answer = retry(api, parked_id)
    assert answer.status == 202
    assert answer.body == listed(api).body["parked"][0]
    told = {name: answer.body[name] for name in ("next_try_at", "asked_at", "tries")}
    assert told == {
        "next_try_at": "2026-03-09T12:05:00Z",
        "asked_at": "2026-03-09T12:05:00Z",
        "tries": 2,
    }
    # Once more is no error.
    assert retry(api, parked_id).status == 202


def test_a_retry_leads_to_a_try(api: Api, world: World) -> None:
    row = world.add(Timing("at(2026-03-09T12:10:00)"))
    del world.store.handlers["acme", "ring"]
    world.clock.set(START + 30 * MINUTE)
    for _ in range(2):
        world.scan()
        world.clock.advance(MINUTE)
    (parked,) = listed(api).body["parked"]
    assert parked["reason"] == "HANDLER_GONE"
    world.scan()
    assert listed(api).body["parked"] == [parked]
    retry(api, parked["parked_id"])
    world.scan()
    (tried,) = listed(api).body["parked"]
    assert (tried["tries"], tried["asked_at"]) == (1, "2026-03-09T12:32:00Z")
    assert row.tenant_id == tried["tenant_id"]


def unknown_ids() -> list[str]:
    texts = [
        f"0#20260309T1200Z#0000#20260309T120000Z#{SCHEDULE}#v1",
        f"7#20260309T1200Z#0000#20260309T120000Z#{SCHEDULE}#v1",
        "0#20260309T1200Z#zero#x",
        "0#20260309T1200Z",
        "x#20260309T1200Z#0000#x",
        "\u0663#20260309T1200Z#0000#x",
        "",
    ]
    ids = [base64.urlsafe_b64encode(each.encode()).decode() for each in texts]
    stripped = [each.rstrip("=") for each in ids if each]
    return [*stripped, "nonsense", "w6R-", "sch0", f"{stripped[0]}A", "A" * 1_200]


@pytest.mark.parametrize("parked_id", unknown_ids())
def test_what_is_not_parked_cannot_be_retried(api: Api, parked_id: str) -> None:
    answer = retry(api, parked_id)
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.body["detail"] == "No row is parked under this id."


def test_a_parameter_that_the_list_does_not_have_is_refused(api: Api) -> None:
    assert listed(api, tenant="acme").findings["query"]["code"] == "unknown_parameter"
