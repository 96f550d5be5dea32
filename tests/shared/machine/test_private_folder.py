"""Caches hold code that is run, so those that somebody else may write to are ignored."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from cuda_emulator.inspection import machine_code
from cuda_emulator.inspection import private_folder as emulators_own
from shared.machine import caches, private_folder
from stage4_numba_cuda import kernel_cache

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")


@pytest.fixture(autouse=True)
def _asked_anew():
    private_folder._is_private.cache_clear()
    caches._for_this_process.cache_clear()


def test_the_emulator_has_the_same_file():
    ours, its = private_folder.__file__, emulators_own.__file__
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
    name, quoted = re.escape(str(folder)), re.escape(shlex.quote(str(folder)))
    with pytest.warns(
        UserWarning, match=f"the cache folder {name} is not used: .* To mend it: rm -r {quoted}; what lies there may be"
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.strip() != str(folder)
    assert not Path(done.stdout.strip()).exists()


@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="only the administrator can give a folder away")
def test_a_folder_of_another_user_is_ignored(tmp_path):
    folder = tmp_path / "gpu"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.warns(UserWarning, match=rf"{re.escape(str(folder))} belongs to another user. To mend it: sudo rm -r"):
        assert caches.private(folder) != folder


def planted_by_mode(path: Path) -> None:
    path.chmod(0o622)


def planted_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def planted_as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def planted_by_another(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only the administrator can give a file away")
    os.chown(path, 12345, -1)


PLANTED = [planted_by_mode, planted_by_link, planted_as_fifo, planted_by_another]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_file_that_somebody_else_could_have_written_is_not_read(tmp_path, plant):
    path = tmp_path / "kept"
    path.write_bytes(b"ours")
    path.chmod(0o600)
    assert private_folder.read(path) == b"ours"
    plant(path)
    with pytest.raises(OSError, match=re.escape(str(path))):
        private_folder.read(path)


@pytest.mark.parametrize("plant", PLANTED)
def test_no_cache_runs_a_file_that_was_planted_while_others_could_write(tmp_path, plant, monkeypatch):
    content = b"print('planted')"
    source, kernel = tmp_path / "kernel.py", tmp_path / "kernel.nbk"
    machine_code.write(source, b"magic ", content)
    assert machine_code.read(source, b"magic ") == content
    plant(source)
    assert machine_code.read(source, b"magic ") is None
    assert not os.path.lexists(source)
    kernel.write_bytes(b"anything")
    kernel.chmod(0o600)
    plant(kernel)
    monkeypatch.setattr(kernel_cache, "_rebuilt", pytest.fail)
    assert kernel_cache._loaded(kernel) is None
