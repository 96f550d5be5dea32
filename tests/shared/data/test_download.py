"""Downloads from a server on this machine: right, damaged, wrong, silent; and what is left behind each time."""

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from shared.data.datasets import load_dataset
from shared.data.download import SOURCES, Source, download
from shared.data.idx import DataError, read_idx
from tests.shared.data.idx_files import idx_bytes, small_mnist

FILE = "train-labels-idx1-ubyte"
CONTENT = idx_bytes(np.arange(50, dtype=np.uint8) % 10)
GOOD = gzip.compress(CONTENT, mtime=0)


@dataclass
class Server:
    """A web server on 127.0.0.1: what it serves under which path, and what it was asked for."""

    address: str = ""
    serves: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # paths whose answer breaks off in the middle
    asked: list[str] = field(default_factory=list)


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a web server on this machine."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}/"
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            body = state.serves.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path in state.cut else body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output to itself."""

    with served(Handler) as state.address:
        yield state


def source(*mirrors: str, content: bytes = CONTENT) -> Source:
    return Source(mirrors, {FILE: hashlib.sha256(content).hexdigest()})


def dead_mirror() -> str:
    """An address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/"


def test_a_good_file_arrives_whole_and_alone(server: Server, tmp_path: Path):
    server.serves[f"/{FILE}.gz"] = GOOD
    download([FILE], tmp_path / "new" / "folder", source(server.address))
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [f"{FILE}.gz"]
    assert (tmp_path / "new" / "folder" / f"{FILE}.gz").read_bytes() == GOOD


def test_a_mirror_may_compress_in_its_own_way_or_not_at_all(server: Server, tmp_path: Path):
    for number, body in enumerate((gzip.compress(CONTENT, 1, mtime=99), CONTENT)):
        server.serves[f"/{FILE}.gz"] = body
        download([FILE], tmp_path / str(number), source(server.address))
        assert len(read_idx(tmp_path / str(number) / f"{FILE}.gz")) == 50


@pytest.mark.parametrize("fault", ["other content", "damaged", "breaks off", "web page", "not found"])
def test_a_bad_first_mirror_gives_way_to_a_good_second(server: Server, tmp_path: Path, fault: str):
    first = f"/a/{FILE}.gz"
    if fault != "not found":
        server.serves[first] = {
            "other content": gzip.compress(CONTENT[:-1] + b"\7"),
            "damaged": GOOD[:-12],
            "breaks off": GOOD,
            "web page": b"<html>This bucket is closed</html>",
        }[fault]
    if fault == "breaks off":
        server.cut.add(first)
    server.serves[f"/b/{FILE}.gz"] = GOOD
    download([FILE], tmp_path, source(f"{server.address}a/", f"{server.address}b/"))
    assert server.asked == [first, f"/b/{FILE}.gz"]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(f"{FILE}.gz", GOOD)]


def test_where_every_mirror_fails_each_is_named_with_its_reason_and_nothing_is_left(server: Server, tmp_path: Path):
    server.serves[f"/wrong/{FILE}.gz"] = gzip.compress(b"something else")
    server.serves[f"/damaged/{FILE}.gz"] = GOOD[:-12]
    server.serves[f"/cut/{FILE}.gz"] = GOOD
    server.cut.add(f"/cut/{FILE}.gz")
    folders = [f"{server.address}{name}/" for name in ("wrong", "damaged", "cut", "absent")]
    dead = dead_mirror()
    with pytest.raises(DataError) as caught:
        download([FILE], tmp_path, source(*folders, dead))
    message = str(caught.value)
    assert f"could not download {FILE}.gz into {tmp_path}; tried 5 mirror(s)" in message
    assert f"{folders[0]}{FILE}.gz: expected content with SHA-256" in message
    assert f"{folders[1]}{FILE}.gz: the gzip data is damaged" in message
    assert f"{folders[2]}{FILE}.gz: " in message
    assert "404" in message
    assert f"{dead}{FILE}.gz: " in message
    assert list(tmp_path.iterdir()) == []


class TestThroughLoadDataset:
    @pytest.fixture
    def arrays(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
        """A small MNIST on the server, in place of the real mirrors."""
        arrays = small_mnist()
        contents = {name: idx_bytes(array) for name, array in arrays.items()}
        server.serves.update({f"/{name}.gz": gzip.compress(content) for name, content in contents.items()})
        checksums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        monkeypatch.setitem(SOURCES, "mnist", Source((server.address,), checksums))
        return arrays

    def test_missing_files_are_fetched_into_the_sets_subfolder_and_used_ever_after(
        self, server: Server, arrays: dict[str, np.ndarray], tmp_path: Path
    ):
        fetched = load_dataset("mnist", tmp_path, download=True)
        np.testing.assert_array_equal(fetched.train.y, arrays["train-labels-idx1-ubyte"])
        assert sorted(path.name for path in (tmp_path / "mnist").iterdir()) == sorted(f"{name}.gz" for name in arrays)
        server.asked.clear()
        again = load_dataset("mnist", tmp_path, download=True)
        np.testing.assert_array_equal(again.test.x, fetched.test.x)
        assert server.asked == []

    def test_nothing_is_fetched_unasked(self, server: Server, arrays: dict[str, np.ndarray], tmp_path: Path):
        with pytest.raises(DataError, match="--download"):
            load_dataset("mnist", tmp_path)
        assert server.asked == []

    def test_a_failed_download_keeps_the_whole_files_and_nothing_else(
        self, server: Server, arrays: dict[str, np.ndarray], tmp_path: Path
    ):
        server.cut.add("/t10k-images-idx3-ubyte.gz")
        with pytest.raises(DataError, match="could not download t10k-images"):
            load_dataset("mnist", tmp_path, download=True)
        for path in (tmp_path / "mnist").iterdir():
            np.testing.assert_array_equal(read_idx(path), arrays[path.name.removesuffix(".gz")])
