"""Data files of strangers: small ones that claim or hold gigabytes, and names that stand for something else."""

import contextlib
import gzip
import hashlib
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

from shared.data.datasets import FILES, load_dataset
from shared.data.download import Source, download
from shared.data.idx import DataError, content_sha256, read_idx
from tests.shared.data.idx_files import idx_bytes, small_mnist, write
from tests.shared.data.test_download import served


@cache
def zeros() -> bytes:
    """64 MB in 64 kB. Compressing them takes a second, which no process spends that only collects these tests."""
    return gzip.compress(bytes(64 << 20), 9)


@contextmanager
def small_and_quick() -> Iterator[None]:
    """Fails for more than 8 MB or 5 seconds of processor time."""
    tracemalloc.start()
    began = time.process_time()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        assert time.process_time() - began < 5.0
    finally:
        tracemalloc.stop()


def bomb(path: Path, header: bytes) -> Path:
    """A file of 10 MB that holds 10 GB after its header."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(gzip.compress(header))
        for _ in range(160):
            file.write(zeros())
    return path


def test_a_bomb_that_tells_its_size_honestly_is_refused_at_once(tmp_path: Path) -> None:
    for name, count in (("train", 13_000_000), ("t10k", 5)):
        bomb(tmp_path / f"{name}-images-idx3-ubyte.gz", struct.pack(">HBB3I", 0, 8, 3, count, 28, 28))
        write(tmp_path / f"{name}-labels-idx1-ubyte.gz", idx_bytes(np.zeros(5, np.uint8)))
    with (
        small_and_quick(),
        pytest.raises(DataError, match="at most 47,040,016 bytes, but its header says 13000000 x 28"),
    ):
        load_dataset("mnist", tmp_path)


def test_a_bomb_among_the_labels_is_not_inflated_for_its_checksum(tmp_path: Path) -> None:
    for name, array in small_mnist().items():
        write(tmp_path / f"{name}.gz", idx_bytes(array))
    bomb(tmp_path / f"{FILES[1]}.gz", struct.pack(">HBBI", 0, 8, 1, 12))
    with small_and_quick(), pytest.raises(DataError, match="12 elements of uint8, 12 bytes, but more follow"):
        load_dataset("mnist", tmp_path)


def test_content_of_unknown_length_has_a_limit_that_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "array.gz", idx_bytes(np.arange(2000, dtype=np.int16)))
    with pytest.raises(DataError, match=r"at most 1,000 bytes, .* 4,000 bytes; .*GROUNDUP_LARGEST_FILE"):
        read_idx(path, most=1000)
    with pytest.raises(DataError, match="at most 1,000 bytes, but its content has more"):
        content_sha256(path, most=1000)
    size = 8 + 4000
    assert len(read_idx(path, most=size)) == 2000
    assert len(content_sha256(path, most=size)) == 64
    for read in (read_idx, content_sha256):
        with pytest.raises(DataError, match="expected at most 4,007 bytes"):
            read(path, most=size - 1)
    monkeypatch.setenv("GROUNDUP_LARGEST_FILE", "5000")
    assert len(read_idx(path, most=1000)) == 2000
    assert content_sha256(path, most=1000) == hashlib.sha256(idx_bytes(np.arange(2000, dtype=np.int16))).hexdigest()
    monkeypatch.setenv("GROUNDUP_LARGEST_FILE", "much")
    with pytest.raises(ValueError, match="GROUNDUP_LARGEST_FILE: expected a number of bytes, got 'much'"):
        read_idx(path)


def test_a_gzip_header_without_an_end_and_parts_without_number_take_no_time(tmp_path: Path) -> None:
    long_name = tmp_path / "long.gz"
    long_name.write_bytes(b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"a" * (40 << 20))
    many_parts = tmp_path / "many.gz"
    many_parts.write_bytes(gzip.compress(b"") * 1_000_000)
    with small_and_quick():
        with pytest.raises(DataError, match=r"damaged \(it ends before its content does"):
            read_idx(long_name)
        with pytest.raises(DataError, match="more than 10,000 parts"):
            read_idx(many_parts)


@pytest.fixture(params=["endless", "announced", "packed twice", "a length that is none"])
def hostile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str, list[int]]]:
    """(kind, address of a server, [bytes sent]) of a server that sends what it should not."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    sent = [0]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if request.param == "announced":
                self.send_header("Content-Length", str(10**15))
            if request.param == "a length that is none":
                self.send_header("Content-Length", "many")
            if request.param == "packed twice":
                self.send_header("Content-Encoding", "gzip, gzip")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(bytes(1 << 16))
                    sent[0] += 1 << 16
            except OSError:
                return

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output to itself."""

    with served(Handler) as address:
        yield request.param, address, sent


def test_a_download_stops_at_the_size_that_is_expected(hostile: tuple[str, str, list[int]], tmp_path: Path) -> None:
    kind, address, sent = hostile
    source = Source((address,), {FILES[1]: "0" * 64}, {FILES[1]: 60_008})
    said = {"packed twice": "packed once on the way", "a length that is none": "invalid literal|many"}
    with pytest.raises(DataError, match=said.get(kind, "expected at most 64,164 bytes, but more came")):
        download([FILES[1]], tmp_path, source)
    assert list(tmp_path.iterdir()) == []
    assert sent[0] < 32 << 20  # what fits into the buffers of the connection


@pytest.mark.parametrize(
    "header", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nServer: "], ids=["content", "head"]
)
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(
    header: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("shared.data.download.PATIENCE_SECONDS", 0.6)
    done = threading.Event()

    def trickle(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(header)
            while not done.wait(0.05):
                connection.sendall(b"x")

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=trickle, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        source = Source((f"http://127.0.0.1:{listener.getsockname()[1]}/",), {FILES[1]: "0" * 64})
        began = time.monotonic()
        try:
            with pytest.raises(DataError, match="too slow: 0 bytes came in 1 seconds"):
                download([FILES[1]], tmp_path, source)
        finally:
            done.set()
    assert time.monotonic() - began < 100
    assert list(tmp_path.iterdir()) == []
