"""The rules of past releases of the zone database, as patches of later ones.

A file here, such as `2025a.json`, has the zones whose offsets since 1970 are others in
that release than in the `next` one. So a zone's rules under a release are those of the
first file from that release on which has the zone, or else the pinned package's own.
`dev.py tzdata` writes the files; a test holds that the chain of them is complete.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class ZonePatch:
    """What one past release has otherwise than the next.

    Attributes:
        release: in IANA's form (`2025a`), which sorts by age.
        next: the release it is compared with.
        zones: name -> rules in that release, as a TZif file.
    """

    release: str
    next: str
    zones: Mapping[str, bytes]


@lru_cache(maxsize=1)
def patches() -> tuple[ZonePatch, ...]:
    """Return all patches, the oldest release first."""
    found = [
        _read(json.loads(entry.read_text("utf-8")))
        for entry in files(__name__).iterdir()
        if entry.name.endswith(".json")
    ]
    return tuple(sorted(found, key=lambda patch: patch.release))


def at_hand(release: str) -> str | None:
    """Return the past release by which times of a release are computed.

    That is the release itself, or the oldest one known for any that is older; None
    for the pinned one and for what is newer than all that is known.
    """
    known = patches()
    if known and release < known[0].release:
        return known[0].release
    return next((each.release for each in known if each.release == release), None)


def past_rules(name: str, release: str) -> bytes | None:
    """Return a zone's rules under a past release; None if they are today's.

    Args:
        name: of the zone.
        release: one that `at_hand` returns.
    """
    later = (each.zones.get(name) for each in patches() if each.release >= release)
    return next((rules for rules in later if rules is not None), None)


def write_patch(patch: ZonePatch) -> str:
    """Write a patch as the text of its file; names of the same rules stand together."""
    names: dict[bytes, list[str]] = {}
    for name, rules in sorted(patch.zones.items()):
        names.setdefault(rules, []).append(name)
    zones = [
        {"names": each, "tzif": base64.b64encode(zlib.compress(rules, 9)).decode()}
        for rules, each in names.items()
    ]
    members = {"release": patch.release, "next": patch.next, "zones": zones}
    return json.dumps(members, indent=1) + "\n"


def _read(members: Mapping[str, Any]) -> ZonePatch:
    zones = {
        name: zlib.decompress(base64.b64decode(each["tzif"]))
        for each in members["zones"]
        for name in each["names"]
    }
    return ZonePatch(members["release"], members["next"], zones)
