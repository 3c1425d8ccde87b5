"""The loads that dry runs of creates and updates tell."""

from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.errors import Transient
from hourbell.domain.schedule import Timing

from tests.functions.conftest import Answer, Api
from tests.functions.schedules import BELL, PATH, create, patch
from tests.unit.usecases.world import START, World

DAY = timedelta(days=1)
# START is a Monday, 12:00; the bell's times are Mondays at 09:00 UTC.
NINE_TODAY = START - timedelta(hours=3)
A_WEEK = timedelta(days=7)


def rehearse(api: Api, **fields: Any) -> Answer:
    return api.call("POST", PATH, BELL | fields, query={"dry_run": ["true"]})


def loads(answer: Answer) -> list[float | None]:
    assert answer.status == 200, answer.text
    return [each["load"] for each in answer.body["times"]]


class TestCreate:
    def test_without_any_count_nothing_is_known(self, api: Api) -> None:
        assert loads(rehearse(api)) == [None] * 10

    def test_each_time_tells_its_minutes_load(self, api: Api) -> None:
        # 48 of 5,760 in a day: 48 * 1,440 / 5,760.
        api.world.loads.add({NINE_TODAY: 48, START - DAY: 5_712})
        assert loads(rehearse(api)) == [12.0] * 10
        times = loads(rehearse(api, expression="0 9,10 * * *"))
        assert times == [12.0, 0.0] * 5

    def test_a_busy_minute_of_a_week_before_is_told_too(self, api: Api) -> None:
        api.world.loads.add({NINE_TODAY: 1, START - DAY: 1_439})
        api.world.loads.add({NINE_TODAY - A_WEEK: 5, START - DAY - A_WEEK: 1_435})
        assert loads(rehearse(api)) == [5.0] * 10

    def test_a_statistic_that_does_not_answer_fails_no_dry_run(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_hours: object) -> None:
            raise Transient

        monkeypatch.setattr(api.world.loads, "read", fail)
        assert loads(rehearse(api)) == [None] * 10

    def test_all_times_are_told_from_one_read(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reads: list[int] = []

        def read(hours: Any) -> dict[Any, int]:
            reads.append(len(list(hours)))
            return {}

        monkeypatch.setattr(api.world.loads, "read", read)
        rehearse(api, expression="* * * * *")
        # 12:00 ends the last day, and that of a week before, on the hour.
        assert reads == [48]

    def test_only_a_dry_run_reads_them(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_hours: object) -> None:
            raise AssertionError

        monkeypatch.setattr(api.world.loads, "read", fail)
        assert "load" not in create(api)
        asked = {"expression": "@hourly"}
        shown = api.call("POST", f"{PATH}/preview", asked).body["times"]
        assert all("load" not in each for each in shown)


class TestUpdate:
    def test_each_time_tells_its_minutes_load(self, api: Api) -> None:
        made = create(api)
        api.world.loads.add({NINE_TODAY: 48, START - DAY: 5_712})
        fields = {"expression": "0 9,10 * * *"}
        answer = patch(api, made["schedule_id"], fields, dry_run="true")
        assert loads(answer) == [12.0, 0.0] * 5

    def test_without_any_count_nothing_is_known(self, api: Api) -> None:
        made = create(api)
        answer = patch(api, made["schedule_id"], {"payload": 1}, dry_run="true")
        assert loads(answer) == [None] * 10


class TestTenants:
    def test_the_answer_holds_the_ratio_and_no_count(
        self, api: Api, world: World
    ) -> None:
        # 7,919 of 23,757 in a day: 7,919 * 1,440 / 23,757 = 480.0
        world.loads.add({NINE_TODAY: 7_919, START - DAY: 15_838})
        for answer in (
            rehearse(api),
            patch(api, create(api)["schedule_id"], {"payload": 1}, dry_run="true"),
        ):
            for time in answer.body["times"]:
                assert set(time) == {
                    *("utc", "local", "weekday", "offset", "notes", "load")
                }
            assert loads(answer) == [480.0] * 10
            for count in ("7919", "15838", "23757"):
                assert count not in answer.text

    @pytest.mark.parametrize("scale", [1, 9])
    def test_how_many_others_there_are_changes_nothing(
        self, api: Api, world: World, scale: int
    ) -> None:
        world.loads.add({NINE_TODAY: 5 * scale, START - DAY: 1_435 * scale})
        assert loads(rehearse(api)) == [5.0] * 10

    def test_all_tenants_occurrences_count(self, api: Api, world: World) -> None:
        for tenant in ("acme", "zenith", "zenith"):
            world.add(Timing("at(2026-03-09T12:01:00)"), tenant=tenant)
        world.scan()
        world.clock.advance(DAY - timedelta(minutes=5))
        (first, *others) = loads(rehearse(api, expression="1,2 12 * * *"))
        assert (first, others[0]) == (1440.0, 0.0)
        assert sum(world.store.loads.values()) == 3
