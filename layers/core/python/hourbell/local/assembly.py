"""Read what `cdk synth` wrote: stacks in deployment order, and their assets."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hourbell.local.errors import LocalStackError

STACK_TYPE = "aws:cloudformation:stack"
# Any instant will do, as long as equal content gives an equal archive.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
ZIP_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Asset:
    """One file that a stack expects in the asset bucket.

    Attributes:
        source: a file, or a folder that is delivered as a zip archive.
        bucket: bucket name, placeholders filled in.
        key: object key.
    """

    source: Path
    is_archive: bool
    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class SynthesizedStack:
    """One stack of the cloud assembly."""

    name: str
    template: dict[str, Any]
    assets: tuple[Asset, ...]


def read_assembly(
    folder: Path, *, account: str, region: str
) -> tuple[SynthesizedStack, ...]:
    """Return the stacks of a cloud assembly, each after those it depends on.

    Raises:
        LocalStackError: the folder holds no readable assembly.
    """
    try:
        manifest = _read(folder / "manifest.json")
        artifacts: dict[str, Any] = {
            name: artifact
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == STACK_TYPE
        }
        scope = {"${AWS::AccountId}": account, "${AWS::Region}": region}
        return tuple(
            _stack(folder, name, artifacts[name], scope)
            for name in _in_order(artifacts)
        )
    except (OSError, ValueError, KeyError) as error:
        raise LocalStackError(
            f"{folder} holds no readable CDK output ({error!r}).",
            hint=f"remove {folder} and start again",
        ) from error


def archive(asset: Asset, cache: Path) -> Path:
    """Return the file to upload for an asset, zipping a folder once.

    The archive's name is the asset's key, which CDK derives from the content.
    """
    if not asset.is_archive:
        return asset.source
    name = hashlib.sha256(f"{asset.source}:{asset.key}".encode()).hexdigest()
    finished = cache / f"{name}.zip"
    if finished.is_file():
        return finished
    cache.mkdir(parents=True, exist_ok=True)
    draft = finished.with_suffix(".draft")
    zip_folder(asset.source, draft)
    draft.replace(finished)
    return finished


def zip_folder(folder: Path, target: Path) -> None:
    """Zip a folder so that equal content gives equal bytes."""
    with zipfile.ZipFile(
        target, "w", zipfile.ZIP_DEFLATED, compresslevel=ZIP_LEVEL
    ) as zipped:
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (file.stat().st_mode & 0xFFFF) << 16
            zipped.writestr(entry, file.read_bytes())


def _stack(
    folder: Path, name: str, artifact: Mapping[str, Any], scope: Mapping[str, str]
) -> SynthesizedStack:
    properties = artifact["properties"]
    template_file = folder / properties["templateFile"]
    listing = folder / f"{name}.assets.json"
    files = _read(listing)["files"] if listing.is_file() else {}
    return SynthesizedStack(
        name=properties.get("stackName", name),
        template=_read(template_file),
        assets=tuple(
            _asset(folder, entry["source"], destination, scope)
            for entry in files.values()
            for destination in entry["destinations"].values()
            if (folder / entry["source"]["path"]) != template_file
        ),
    )


def _asset(
    folder: Path,
    source: Mapping[str, str],
    destination: Mapping[str, str],
    scope: Mapping[str, str],
) -> Asset:
    return Asset(
        source=folder / source["path"],
        is_archive=source.get("packaging") == "zip",
        bucket=_fill(destination["bucketName"], scope),
        key=_fill(destination["objectKey"], scope),
    )


def _in_order(artifacts: Mapping[str, Any]) -> list[str]:
    """Sort stacks so that each follows its dependencies."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        for needed in artifacts[name].get("dependencies", ()):
            if needed in artifacts and needed not in ordered:
                visit(needed)
        if name not in ordered:
            ordered.append(name)

    for name in artifacts:
        visit(name)
    return ordered


def _fill(text: str, scope: Mapping[str, str]) -> str:
    for placeholder, value in scope.items():
        text = text.replace(placeholder, value)
    return text


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
