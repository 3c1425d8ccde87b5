"""Keep the rules of a past release of the zone database: `dev.py tzdata 2026f`.

To be run for the release that was pinned until now, whenever the pin moves. It asks
PyPI for that release's `tzdata` package and writes what it has otherwise than the next
release known into the core. For older releases, run it from the newest to the oldest.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

from hourbell.domain import zone_history
from hourbell.domain.zone_history import ZonePatch, patches, write_patch
from hourbell.domain.zones import (
    FIRST_YEAR,
    LAST_YEAR,
    TICK,
    TZDB_VERSION,
    ZoneClock,
    transitions,
    zone,
)

FOLDER = Path(zone_history.__file__).parent
BEGIN = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
END = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)


def main(arguments: list[str]) -> int:
    """Write the patch of the release that is named; return 0 when it is written."""
    release = arguments[0] if len(arguments) == 1 else ""
    if not re.fullmatch(r"20\d\d[a-z]", release) or release >= TZDB_VERSION:
        print(f"name one release before {TZDB_VERSION}, like 2025b", file=sys.stderr)
        return 2
    patch = patch_of(release, read_package(release))
    path = FOLDER / f"{release}.json"
    path.write_text(write_patch(patch), encoding="utf-8")
    print(f"{path.name}: {len(patch.zones)} zones unlike {patch.next}")
    for name in sorted(patch.zones):
        print(f"  {name}")
    return 0


def read_package(release: str) -> dict[str, bytes]:
    """Return the zones of a release's package by name, as TZif files."""
    number = ord(release[4]) - ord("a") + 1
    with tempfile.TemporaryDirectory() as folder:
        program = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
        wanted = f"tzdata=={release[:4]}.{number}"
        subprocess.run(
            [*program, "--only-binary", ":all:", "--dest", folder, wanted],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            names = package.read("tzdata/zones").decode().split()
            return {name: package.read(f"tzdata/zoneinfo/{name}") for name in names}


def patch_of(release: str, zones: dict[str, bytes]) -> ZonePatch:
    """Return what a release has otherwise than the next one that is known.

    A zone that the next release lacks belongs to it; one that only the next one has
    does not, as no schedule of the older release can name it.
    """
    later = [each.release for each in patches() if each.release > release]
    following = min([*later, TZDB_VERSION])
    changed = {
        name: rules for name, rules in zones.items() if _differs(name, rules, following)
    }
    return ZonePatch(release, following, changed)


def offsets(info: ZoneInfo) -> tuple[object, ...]:
    """Return all that times depend on: the first offset, and every change of it."""
    first = ZoneClock(info).offset(BEGIN - TICK)
    changes = transitions(info, BEGIN - TICK, END)
    return (first, *((change.at, change.after) for change in changes))


def _differs(name: str, rules: bytes, following: str) -> bool:
    pinned = files("tzdata.zoneinfo").joinpath(name)
    if not pinned.is_file():
        return True
    past = None
    if following != TZDB_VERSION:
        past = zone_history.past_rules(name, following)
    if rules == (past or pinned.read_bytes()):
        return False
    before = ZoneInfo.from_file(BytesIO(rules), key=name)
    return offsets(before) != offsets(zone(name, release=following))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
