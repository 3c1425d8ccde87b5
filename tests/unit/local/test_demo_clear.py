from pathlib import Path

from hourbell.local.demo import clear
from hourbell.local.directory import StackDirectory


def test_only_what_the_stack_made_is_removed(tmp_path: Path) -> None:
    directory = StackDirectory.of(tmp_path / "state")
    directory.wipe()
    directory.log("engine").write_text("line")
    (directory.run / "tmp" / "deep").mkdir()
    (directory.run / "tmp" / "deep" / "file").write_text("x")
    (directory.run / "tmp" / "link").symlink_to(tmp_path)
    kept = directory.root / "mine.txt"
    kept.write_text("keep")

    clear(directory)

    assert list(directory.root.iterdir()) == [kept]
    assert tmp_path.is_dir()


def test_a_folder_of_its_own_goes_altogether(tmp_path: Path) -> None:
    directory = StackDirectory.of(tmp_path / "state")
    directory.wipe()

    clear(directory)

    assert not directory.root.exists()
