"""`dev.py tzdata` keeps of a past release what the next one has otherwise."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from hourbell.domain.zone_history import ZonePatch, past_rules, patches, write_patch
from hourbell.domain.zones import TZDB_VERSION

from devtools import zone_history

if TYPE_CHECKING:
    from pathlib import Path

NAMES = files("tzdata").joinpath("zones").read_text("utf-8").split()


def pinned(name: str) -> bytes:
    return files("tzdata.zoneinfo").joinpath(name).read_bytes()


def release(patch: ZonePatch) -> dict[str, bytes]:
    """Return all zones of a past release, as far as their rules count."""
    return {name: past_rules(name, patch.release) or pinned(name) for name in NAMES}


@pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.release)
def test_the_same_release_gives_the_same_patch(patch: ZonePatch) -> None:
    assert zone_history.patch_of(patch.release, release(patch)) == patch


def test_other_bytes_of_the_same_rules_are_not_kept() -> None:
    zones = {"Europe/Berlin": pinned("Europe/Busingen"), "UTC": pinned("Etc/UTC")}
    # Busingen is a link to Zurich, whose clocks were Berlin's but for 1980.
    kept = zone_history.patch_of("2026e", zones).zones
    assert set(kept) == {"Europe/Berlin"}
    same = {"Africa/Abidjan": pinned("Africa/Accra"), "GMT": pinned("Etc/GMT")}
    assert zone_history.patch_of("2026e", same).zones == {}


def test_a_zone_that_the_next_release_lacks_is_kept() -> None:
    zones = {"Mars/Olympus": pinned("UTC")}
    assert zone_history.patch_of("2026e", zones).zones == zones


def test_the_file_is_written_and_its_links_stand_together(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (old,) = [each for each in patches() if each.release == "2025c"]
    monkeypatch.setattr(zone_history, "FOLDER", tmp_path)
    monkeypatch.setattr(zone_history, "read_package", lambda _: release(old))
    assert zone_history.main(["2025c"]) == 0
    text = tmp_path.joinpath("2025c.json").read_text("utf-8")
    assert text == write_patch(old)
    written = json.loads(text)
    assert (written["release"], written["next"]) == ("2025c", "2026a")
    (links,) = written["zones"]
    assert links["names"] == ["Europe/Chisinau", "Europe/Tiraspol"]
    assert "2025c.json: 2 zones unlike 2026a" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [[], ["2025.2"], ["2025b", "2025c"], [TZDB_VERSION], ["2099a"]]
)
def test_what_is_no_past_release_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert zone_history.main(words) == 2
    assert "name one release" in capsys.readouterr().err
