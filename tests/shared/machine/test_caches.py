"""shared.machine.caches: where files lie between two runs, and the variables that move them."""

import os
import sys
import tempfile
from pathlib import Path

import pooch
import pytest

from cuda_emulator.inspection import cache
from shared.machine import caches


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GROUNDUP_CACHE", "GROUNDUP_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("chosen", [None, "/somewhere/else", ""])
def test_the_users_cache_is_where_pooch_has_it(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> None:
    if chosen is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", chosen)
    assert caches.user_cache() == pooch.os_cache("groundup")


def test_each_system_has_its_caches_in_its_own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert caches.user_cache() == tmp_path / "Library" / "Caches" / "groundup"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert caches.user_cache() == tmp_path / "Local" / "groundup" / "groundup" / "Cache"


def test_groundup_cache_moves_what_is_compiled_and_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert caches.compiled() == caches.data() == caches.user_cache()
    monkeypatch.setenv("GROUNDUP_CACHE", "~/compiled")
    assert caches.compiled() == tmp_path / "compiled"
    assert caches.data() == caches.user_cache()


def test_groundup_data_names_the_folder_of_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUNDUP_DATA", "~/data")
    assert caches.data() == tmp_path / "data"
    assert caches.compiled() == caches.user_cache()


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows the emulator's cache has a folder of its own")
@pytest.mark.parametrize("chosen", ["", "/somewhere/else"])
def test_the_emulators_cache_lies_in_the_same_folder(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setenv("GROUNDUP_CACHE", chosen)
    assert cache.cache_folder() == caches.compiled() / "emulator"


def test_a_folder_that_is_missing_is_judged_by_the_nearest_that_is_there(tmp_path: Path) -> None:
    missing = tmp_path / "not" / "yet"
    assert caches.may_be_written(missing)
    assert caches.free_bytes(missing) == pytest.approx(caches.free_bytes(tmp_path), rel=0.1)
    assert not missing.parent.exists()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_is_known(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert not caches.may_be_written(tmp_path / "new")
    tmp_path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows a folder has no such permissions")
def test_without_a_home_that_can_be_written_it_lies_among_the_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").touch()  # neither the administrator can write below a file
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert caches.compiled() == tmp_path / f"groundup-{os.getuid()}"
    assert cache.cache_folder() == caches.compiled() / "emulator"
    assert caches.private(caches.compiled() / "stage3").is_dir()
