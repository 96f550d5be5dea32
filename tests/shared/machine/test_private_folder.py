"""Caches hold code that is run, so those that somebody else may write to are ignored."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import cuda_emulator.compiler.private_folder
from shared.machine import caches, private_folder
from shared.machine.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")


@pytest.fixture(autouse=True)
def _asked_anew():
    private_folder._is_private.cache_clear()
    caches._for_this_process.cache_clear()


def test_the_emulator_has_the_same_file():
    ours, its = private_folder.__file__, cuda_emulator.compiler.private_folder.__file__
    assert Path(ours).read_text(encoding="utf-8") == Path(its).read_text(encoding="utf-8")


def test_a_folder_that_is_missing_is_made_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        found = caches.private(tmp_path / "new" / "stage3")
    finally:
        os.umask(before)
    assert found == tmp_path / "new" / "stage3"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (found, found.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_replaced_by_an_empty_one_of_this_process(tmp_path, mode):
    folder = tmp_path / "stage3"
    folder.mkdir()
    (folder / "planted.so").touch()
    folder.chmod(mode)
    with pytest.warns(
        UserWarning, match=rf"the cache folder {folder} is not used: .* To mend it: chmod go-w '{folder}'"
    ):
        found = caches.private(folder)
    assert found != folder
    assert list(found.iterdir()) == []
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert caches.private(folder) == found


def test_the_folder_of_one_process_is_removed_when_it_ends(tmp_path):
    folder = tmp_path / "stage3"
    folder.mkdir()
    folder.chmod(0o777)
    script = (
        f"from pathlib import Path; from shared.machine import caches; print(caches.private(Path({str(folder)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() != str(folder)
    assert not Path(done.stdout.strip()).exists()


def test_a_folder_of_the_administrator_may_be_read(tmp_path):
    if os.getuid() != 0:
        pytest.skip("only the administrator can test this")
    assert private_folder.is_private(tmp_path)


@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="only the administrator can give a folder away")
def test_a_folder_of_another_user_is_ignored(tmp_path):
    folder = tmp_path / "gpu"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.warns(UserWarning, match=rf"{folder} belongs to another user. To mend it: sudo chown"):
        assert caches.private(folder) != folder


def test_a_file_can_be_written_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        write_atomically(tmp_path / "private", b"", mode=0o600)
        write_atomically(tmp_path / "public", b"")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("private", "public")] == [0o600, 0o666]
