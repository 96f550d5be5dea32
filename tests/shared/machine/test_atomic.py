"""shared.machine.atomic: a file is replaced whole, also where another program reads it at that moment."""

import os
from pathlib import Path

import pytest

from shared.machine import atomic
from shared.machine.atomic import write_atomically


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


def test_on_windows_a_file_that_is_being_read_is_replaced_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "ON_WINDOWS", True)
    pauses = refused(monkeypatch, 2)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert pauses == list(atomic.WAITS[:2])


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
