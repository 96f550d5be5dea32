"""Only regular files are opened, whatever a name stands for, and only so much of one is read."""

import os
import socket
from pathlib import Path

import pytest

from shared.machine import regular, strict_json


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(path)
    assert regular.read(tmp_path / "link", 10) == b"0123456789"
    with pytest.raises(ValueError, match=r"file: 10 bytes, more than the 9 that are read; .*GROUNDUP_LARGEST_FILE"):
        regular.read(path, 9)
    monkeypatch.setenv("GROUNDUP_LARGEST_FILE", "10")
    assert regular.read(path, 9) == b"0123456789"


@pytest.mark.skipif(os.name != "posix", reason="a FIFO, a socket and a device are files on Unix")
def test_what_is_no_regular_file_is_refused_with_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    places = {"fifo": "a FIFO", "folder": "a folder", "/dev/zero": "a device"}
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        folder = os.getcwd()
        os.chdir(tmp_path)  # a socket's path must be short
        try:
            listening.bind("socket")
        finally:
            os.chdir(folder)
        for name, kind in {**places, "socket": "a socket"}.items():
            with pytest.raises(regular.NoRegularFile, match=f"{name} is {kind}.*, expected a regular file"):
                regular.opened(tmp_path / name)


def test_a_file_that_tells_no_length_is_read_up_to_its_limit() -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system has no /proc")
    with pytest.raises(ValueError, match="more than the 100 that are read"):
        regular.read("/proc/self/maps", 100)


def test_json_is_read_in_every_encoding_that_json_has() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32-le"):
        assert strict_json.loads('{"µ": [1, 2.5, null]}'.encode(encoding)) == {"µ": [1, 2.5, None]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
        ("NaN", "NaN is not a number in JSON"),
        ("[-Infinity]", "-Infinity is not a number in JSON"),
        ("9" * 5000, "a number of 5,000 digits, is larger than a float holds"),
        (b"\xff\xfe\x00", "truncated data|decode"),
        ("[" + "[]," * 600_000 + "1]", "about 1,200,001 values are more than the 1,000,000 that are read"),
        (" " * (32 * 2**20 + 1), "33,554,433 characters are more than the 33,554,432 that are read"),
    ],
    ids=["empty", "lists", "objects", "nan", "infinity", "digits", "encoding", "values", "length"],
)
def test_what_is_no_json_or_too_much_is_an_error(text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        strict_json.loads(text)
