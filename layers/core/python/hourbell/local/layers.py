"""Layers for the engine: unpacked and compiled once, not at every cold start.

The engine unzips a function's layers for each worker process it starts, and Python
then compiles every module anew: about two seconds for the third-party layer. So a
layer's archive holds only a path file here. It points to a folder that was unpacked
and compiled when the layer's content changed, named by that content.
"""

import hashlib
import io
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hourbell.local.assembly import Asset
from hourbell.local.clock import now_seconds
from hourbell.local.errors import LocalStackError

LAYER_TYPE = "AWS::Lambda::LayerVersion"
PACKAGES = "python"  # the folder of a layer that Lambda puts on Python's path
# The engine processes path files of any `python/lib/<version>/site-packages`.
PATH_FILE = "python/lib/python3/site-packages/hourbell-layer.pth"
UNUSED_SECONDS = 7 * 86_400.0


def layer_keys(template: Mapping[str, Any]) -> set[str]:
    """Return the asset keys that a template's layers are made of."""
    return {
        resource["Properties"]["Content"]["S3Key"]
        for resource in template.get("Resources", {}).values()
        if resource["Type"] == LAYER_TYPE
    }


def pointing_archive(folder: Path) -> bytes:
    """Return a layer archive that points to an unpacked layer."""
    packages = folder / PACKAGES
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        # In front, like a layer: before the engine's own packages.
        zipped.writestr(PATH_FILE, f"import sys; sys.path.insert(0, {str(packages)!r})")
    return archive.getvalue()


def unpacked(asset: Asset, cache: Path, python: Path) -> Path:
    """Return the compiled copy of a layer's folder, making it when it is new.

    Args:
        asset: a folder as Lambda would unpack it.
        cache: where unpacked layers are kept.
        python: the interpreter that will import them.

    Raises:
        LocalStackError: the folder has nothing that Lambda would find.
    """
    if not (asset.source / PACKAGES).is_dir():
        raise LocalStackError(
            f"The layer {asset.source} has no folder {PACKAGES!r}: Lambda would not "
            "find its packages."
        )
    digest = hashlib.sha256(f"{asset.key}:{python}".encode()).hexdigest()[:32]
    folder = cache / digest
    if not folder.is_dir():
        draft = cache / f"{digest}.draft"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(asset.source, draft)
        _compile(draft, folder, python)
        draft.replace(folder)
    folder.touch()
    return folder


def prune(cache: Path) -> None:
    """Remove what no start has used for a week."""
    oldest = now_seconds() - UNUSED_SECONDS
    for entry in cache.glob("*"):
        if entry.stat().st_mtime < oldest:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _compile(draft: Path, folder: Path, python: Path) -> None:
    # Unchecked: the content names the folder, so the source cannot change under it.
    command = [
        *(str(python), "-m", "compileall", "-q", "-j", "0"),
        *("--invalidation-mode", "unchecked-hash"),
        *("-s", str(draft), "-p", str(folder), str(draft)),
    ]
    # A file that does not compile is no matter until somebody imports it.
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
