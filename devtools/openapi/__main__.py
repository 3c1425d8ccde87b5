"""Write schemas/openapi.json, or tell with `--check` whether it is current."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CURRENT = ROOT / "schemas" / "openapi.json"
RELEASED = ROOT / "schemas" / "released" / "openapi.json"


def main(arguments: list[str]) -> int:
    """Return 0 when the checked-in document is written or current, and breaks nothing.

    Args:
        arguments: `--check`, or none to write.
    """
    # It loads the whole API, which takes a second or two.
    from devtools.openapi.document import document  # noqa: PLC0415

    made = document()
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    problems = broken(made, RELEASED)
    if "--check" not in arguments:
        CURRENT.write_text(text, encoding="utf-8")
    elif not CURRENT.exists() or CURRENT.read_text("utf-8") != text:
        problems.append("schemas/openapi.json is stale; run: python3 dev.py schemas")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def broken(made: dict[str, object], released: Path) -> list[str]:
    """Return what clients of the last release would miss; nothing before the first."""
    from devtools.openapi.breaking import breaks  # noqa: PLC0415

    if not released.exists():
        return []
    return breaks(json.loads(released.read_text("utf-8")), made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
