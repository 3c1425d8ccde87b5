"""CDK output is read in order, zipped alike, and synthesized only when it must."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hourbell.local import synth
from hourbell.local.assembly import Asset, archive, read_assembly, zip_folder
from hourbell.local.errors import DeployFailed, LocalStackError, NotPrepared
from hourbell.local.imports import FunctionParts, check_imports
from hourbell.local.layers import layer_keys, pointing_archive, unpacked

BUCKET = "assets-${AWS::AccountId}-${AWS::Region}"


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text)


def artifact(name: str, *dependencies: str) -> dict[str, Any]:
    return {
        "type": "aws:cloudformation:stack",
        "properties": {"templateFile": f"{name}.template.json"},
        "dependencies": list(dependencies),
    }


def write_assembly(folder: Path) -> None:
    artifacts = {
        "Api": artifact("Api", "Api.assets", "Scheduling"),
        "Api.assets": {"type": "cdk:asset-manifest", "properties": {}},
        "Scheduling": artifact("Scheduling", "Data"),
        "Data": artifact("Data"),
        "Tree": {"type": "cdk:tree", "properties": {}},
    }
    put(folder / "manifest.json", {"artifacts": artifacts})
    for name in ("Api", "Scheduling", "Data"):
        put(folder / f"{name}.template.json", {"Resources": {name: {}}})
    destinations = {"here": {"bucketName": BUCKET, "objectKey": "abc.zip"}}
    files = {
        "abc": {
            "source": {"path": "asset.abc", "packaging": "zip"},
            "destinations": destinations,
        },
        "template": {
            "source": {"path": "Api.template.json", "packaging": "file"},
            "destinations": destinations,
        },
    }
    put(folder / "Api.assets.json", {"files": files})


def test_stacks_come_after_those_they_depend_on(tmp_path: Path) -> None:
    write_assembly(tmp_path)
    stacks = read_assembly(tmp_path, account="1", region="eu-west-1")
    assert [stack.name for stack in stacks] == ["Data", "Scheduling", "Api"]
    assert stacks[0].template == {"Resources": {"Data": {}}}


def test_assets_have_their_bucket_filled_in_and_leave_out_the_template(
    tmp_path: Path,
) -> None:
    write_assembly(tmp_path)
    *_, api = read_assembly(tmp_path, account="1", region="eu-west-1")
    expected = Asset(tmp_path / "asset.abc", True, "assets-1-eu-west-1", "abc.zip")
    assert api.assets == (expected,)


@pytest.mark.parametrize("manifest", [None, "{", "{}"])
def test_an_unreadable_assembly_is_an_error(tmp_path: Path, manifest: Any) -> None:
    if manifest is not None:
        put(tmp_path / "manifest.json", manifest)
    with pytest.raises(LocalStackError, match="no readable CDK output"):
        read_assembly(tmp_path, account="1", region="r")


def test_equal_folders_give_equal_archives(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path / name / "deep" / "b.py", "b")
        put(tmp_path / name / "a.py", "a")
        zip_folder(tmp_path / name, tmp_path / f"{name}.zip")
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as zipped:
        assert zipped.namelist() == ["a.py", "deep/b.py"]


def test_an_asset_is_zipped_once(tmp_path: Path) -> None:
    put(tmp_path / "code" / "a.py", "a")
    asset = Asset(tmp_path / "code", True, "bucket", "abc.zip")
    first = archive(asset, tmp_path / "cache")
    first.write_bytes(b"kept")
    assert archive(asset, tmp_path / "cache").read_bytes() == b"kept"


def test_a_file_asset_is_uploaded_as_it_is(tmp_path: Path) -> None:
    asset = Asset(tmp_path / "file", False, "bucket", "key")
    assert archive(asset, tmp_path / "cache") == tmp_path / "file"


def layer(tmp_path: Path) -> Asset:
    put(tmp_path / "layer" / "python" / "greeting.py", "WORD = 'hello'\n")
    return Asset(tmp_path / "layer", True, "bucket", "layer.zip")


def test_a_layer_is_unpacked_and_compiled_once(tmp_path: Path) -> None:
    python, cache = Path(sys.executable), tmp_path / "cache"
    folder = unpacked(layer(tmp_path), cache, python)
    assert list(folder.glob("python/__pycache__/greeting.*.pyc"))
    (folder / "mark").touch()
    assert (unpacked(layer(tmp_path), cache, python) / "mark").exists()


def test_the_pointing_archive_puts_the_layer_before_other_packages(
    tmp_path: Path,
) -> None:
    folder = unpacked(layer(tmp_path), tmp_path / "cache", Path(sys.executable))
    archive_file = tmp_path / "layer.zip"
    archive_file.write_bytes(pointing_archive(folder))
    with zipfile.ZipFile(archive_file) as zipped:
        zipped.extractall(tmp_path / "at")
    (site,) = (tmp_path / "at" / "python" / "lib").glob("*/site-packages")
    program = (
        f"import site, sys; site.addsitedir({str(site)!r}); import greeting;"
        "print(greeting.WORD, sys.path[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["hello", str(folder / "python")]


def test_a_layer_that_lambda_would_not_find_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "layer" / "packages" / "a.py", "")
    asset = Asset(tmp_path / "layer", True, "bucket", "layer.zip")
    with pytest.raises(LocalStackError, match="has no folder 'python'"):
        unpacked(asset, tmp_path / "cache", Path(sys.executable))


def test_layers_are_known_by_the_template() -> None:
    content = {"Content": {"S3Bucket": "b", "S3Key": "layer.zip"}}
    resources = {
        "Core": {"Type": "AWS::Lambda::LayerVersion", "Properties": content},
        "Relay": {"Type": "AWS::Lambda::Function", "Properties": {}},
    }
    assert layer_keys({"Resources": resources}) == {"layer.zip"}


def function(tmp_path: Path, code: str, handler: str = "handler.go") -> FunctionParts:
    put(tmp_path / "code" / "handler.py", code)
    folder = unpacked(layer(tmp_path), tmp_path / "cache", Path(sys.executable))
    return FunctionParts("relay", handler, tmp_path / "code", (folder,), {"X": "1"})


def test_a_function_that_imports_is_tried_once(tmp_path: Path) -> None:
    code = "import greeting, os\nassert os.environ['X'] == '1'\ndef go(e, c): pass\n"
    good = function(tmp_path, code)
    check_imports([good], Path(sys.executable), tmp_path / "cache")
    put(good.code / "handler.py", "raise ValueError")
    check_imports([good], Path(sys.executable), tmp_path / "cache")
    markers = list((tmp_path / "cache").glob("*.imported"))
    assert [marker.stem for marker in markers] == [good.fingerprint]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nowhere\n", "No module named 'nowhere'"),
        ("def stop(e, c): pass\n", "has no attribute 'go'"),
    ],
)
def test_a_function_that_cannot_be_imported_is_named(
    tmp_path: Path, code: str, words: str
) -> None:
    with pytest.raises(DeployFailed, match="relay cannot be imported") as caught:
        check_imports(
            [function(tmp_path, code)], Path(sys.executable), tmp_path / "cache"
        )
    assert words in caught.value.message


def project(root: Path) -> Path:
    for name in synth.INPUT_FILES:
        put(root / name, name)
    put(root / "stacks" / "data.py", "stack")
    put(root / "layers" / "core" / "python" / "hourbell" / "a.py", "core")
    put(root / "functions" / "tick" / "handler.py", "tick")
    put(root / "schemas" / "tables.json", "{}")
    return root


@pytest.mark.parametrize(
    "changed",
    [
        "app.py",
        "stacks/data.py",
        "stacks/new.py",
        "functions/tick/handler.py",
        "layers/core/python/hourbell/a.py",
        "layers/dependencies/build/local.stamp",
        "schemas/tables.json",
    ],
)
def test_the_stamp_changes_with_every_input(tmp_path: Path, changed: str) -> None:
    root = project(tmp_path)
    before = synth.content_stamp(root)
    put(root / changed, "changed")
    assert synth.content_stamp(root) != before


@pytest.mark.parametrize(
    "changed",
    [
        "layers/core/python/hourbell/local/demo.py",
        "README.md",
        "tests/test_x.py",
        "stacks/__pycache__/data.pyc",
    ],
)
def test_the_stamp_stays_with_everything_else(tmp_path: Path, changed: str) -> None:
    root = project(tmp_path)
    before = synth.content_stamp(root)
    put(root / changed, "changed")
    assert synth.content_stamp(root) == before


def test_an_unchanged_project_is_not_synthesized_again(tmp_path: Path) -> None:
    root = project(tmp_path)
    marker = root / ".local" / "cdk.out" / ".stamp"
    put(marker, synth.content_stamp(root))
    output, _, reused = synth.synthesize(root, tmp_path / "log")
    assert (output, reused) == (marker.parent, True)


def test_a_missing_layer_names_the_command_that_builds_it(tmp_path: Path) -> None:
    with pytest.raises(NotPrepared) as caught:
        synth.synthesize(project(tmp_path), tmp_path / "log")
    assert caught.value.hint == "python3 dev.py layers"


def test_a_missing_cdk_names_the_command_that_installs_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / synth.LAYER).mkdir()
    with pytest.raises(NotPrepared) as caught:
        synth.synthesize(root, tmp_path / "log")
    assert caught.value.hint == "python3 dev.py setup"


def test_a_synthesis_that_fails_says_so_with_its_log(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / synth.LAYER).mkdir()
    cdk = root / "node_modules" / ".bin" / "cdk"
    put(cdk, "#!/bin/sh\necho the app is broken\nexit 7\n")
    cdk.chmod(0o755)
    with pytest.raises(LocalStackError, match="code 7") as caught:
        synth.synthesize(root, tmp_path / "log")
    assert "the app is broken" in caught.value.explain()
    assert not (root / ".local" / "cdk.out").exists()
