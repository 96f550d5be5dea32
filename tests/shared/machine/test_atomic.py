"""shared.machine.atomic: a file is replaced whole, also where another program reads it at that moment."""

import os
from pathlib import Path

import pytest

from shared.machine import atomic
from shared.machine.atomic import write_atomically, write_together


def refused(monkeypatch: pytest.MonkeyPatch, times: int) -> list[float]:
    """The first renames fail, as on Windows while a reader has the file open. Returns the pauses that were made."""
    rename, left, pauses = os.replace, [times], []

    def replace(source: Path, target: Path) -> None:
        if left[0]:
            left[0] -= 1
            raise PermissionError(13, "The process cannot access the file")
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(atomic.time, "sleep", pauses.append)
    return pauses


@pytest.mark.parametrize(("windows", "times"), [(True, 100), (False, 1)])
def test_a_file_that_stays_closed_to_us_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, windows: bool, times: int
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(atomic, "ON_WINDOWS", windows)
    refused(monkeypatch, times)
    with pytest.raises(OSError, match=r"cannot write .*file: The process cannot access the file"):
        write_atomically(tmp_path / "file", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_without_waiting_for_the_disk_the_file_is_whole_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_atomically(tmp_path / "file", b"one", to_disk=False)
    write_atomically(tmp_path / "file", b"two", to_disk=False)
    assert (tmp_path / "file").read_bytes() == b"two"
    assert synced == []
    write_atomically(tmp_path / "file", b"three")
    assert synced


def test_files_that_belong_together_are_all_on_the_disk_before_the_first_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    rename, sync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("sync"), sync(file)))
    monkeypatch.setattr(os, "replace", lambda source, target: (calls.append(target.name), rename(source, target)))
    write_together({tmp_path / "b": b"1", tmp_path / "a": b"2"})
    assert calls[:4] == ["sync", "sync", "b", "a"]
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"2", b"1"]


def test_of_files_that_belong_together_none_is_replaced_if_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"cannot write .*below"):
        write_together({tmp_path / "a": b"new", tmp_path / "file" / "below": b"new"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "file"]


@pytest.mark.parametrize("form", ["link", "dangling link", "folder", "file"])
def test_what_was_planted_under_a_temporary_name_is_never_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    victim, planted = tmp_path / "victim", tmp_path / ".groundup-0000000000000000.tmp"
    if form != "dangling link":
        victim.write_bytes(b"precious")
    {
        "link": lambda: planted.symlink_to(victim),
        "dangling link": lambda: planted.symlink_to(victim),
        "folder": planted.mkdir,
        "file": lambda: os.link(victim, planted),
    }[form]()
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda count: "0" * 2 * count)
    with pytest.raises(OSError, match=r"cannot write .*new: File exists"):
        write_atomically(tmp_path / "new", b"pwned")
    assert os.path.lexists(planted)
    assert (victim.read_bytes() if victim.exists() else b"") == (b"" if form == "dangling link" else b"precious")


def test_a_link_under_the_name_itself_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "results.json").symlink_to("victim")
    write_atomically(tmp_path / "results.json", b"new")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "results.json").is_symlink()
