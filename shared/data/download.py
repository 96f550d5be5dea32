"""Fetching MNIST and Fashion-MNIST: several mirrors, a checksum, and never half a file.

A file is downloaded beside its destination under another name, checked, and only then renamed (pooch does
this). The checksum is of the content and not of the .gz around it: mirrors may compress the same data
differently, and some servers send it unpacked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from shared.data.idx import MOST_BYTES, DataError, content_sha256
from shared.terminal import TextConsole

TIMEOUT_SECONDS = 30
"""How long a mirror may stay silent before the next is tried."""

PATIENCE_SECONDS = 60.0
SLOWEST = 16_000.0
"""A mirror has so many seconds, and one more for so many bytes that came; then the next is tried."""

PACKING = 4096
"""Bytes by which a gzip file can be longer than its content, besides a thousandth of it."""


@dataclass(frozen=True)
class Source:
    """Where a data set can be fetched, and what must arrive.

    mirrors: addresses of folders, ending in a slash, tried in this order.
    sha256: IDX file name (without .gz) -> SHA-256 of the uncompressed content, in hex.
    sizes: IDX file name -> bytes of that content; more are neither downloaded nor read.
    """

    mirrors: Sequence[str]
    sha256: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def most(self, file: str) -> int:
        """The most bytes that the content of an IDX file may have."""
        return self.sizes.get(file, MOST_BYTES)


FULL_SIZES = {
    "train-images-idx3-ubyte": 16 + 60_000 * 28 * 28,
    "train-labels-idx1-ubyte": 8 + 60_000,
    "t10k-images-idx3-ubyte": 16 + 10_000 * 28 * 28,
    "t10k-labels-idx1-ubyte": 8 + 10_000,
}
"""The files of both sets, and the bytes of their contents: a header, then a byte for each pixel or label."""


SOURCES = {
    "mnist": Source(
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        sha256={
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
        sizes=FULL_SIZES,
    ),
    "fashion-mnist": Source(
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        sha256={
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
        sizes=FULL_SIZES,
    ),
}


def download(files: Sequence[str], folder: Path, source: Source) -> None:
    """Fetch IDX files (names without .gz) into folder as .gz, each from the first mirror that has it right.

    Raises DataError where no mirror delivers, naming each and its reason; files that came before stay, since
    they are whole and checked. Raises OSError where the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        _download_one(file, folder, source)


def _download_one(file: str, folder: Path, source: Source) -> None:
    import pooch  # imported where it is needed: it takes longer to import than the bundled data takes to load

    pooch.get_logger().setLevel("WARNING")  # its notes on unknown checksums do not apply: fetch_checked has them
    failures = []
    for mirror in source.mirrors:
        url = f"{mirror}{file}.gz"

        def fetch_checked(url: str, output_file: str, caller: Any) -> None:
            # pooch calls this with a temporary name and renames it only if nothing is raised.
            _fetch(url, output_file, source.most(file))
            _check(Path(output_file), source.sha256[file], source.most(file))

        try:
            pooch.retrieve(url, known_hash=None, fname=f"{file}.gz", path=folder, downloader=fetch_checked)
            return
        except (OSError, ValueError) as error:  # requests' errors are OSErrors; a DataError is a ValueError
            failures.append(f"{url}: {error}")
    raise DataError(
        f"could not download {file}.gz into {folder}; tried {len(failures)} mirror(s): {'; '.join(failures)}. "
        f"Check the connection and try again, or fetch the file by other means and put it into that folder"
    )


def _check(path: Path, sha256: str, most: int) -> None:
    try:
        came = content_sha256(path, most)
    except DataError as error:
        # Without the temporary file's name, which means nothing to the reader and is gone by then.
        raise DataError(str(error).removeprefix(f"{path}: ")) from error
    if came != sha256:
        raise DataError(f"expected content with SHA-256 {sha256}, but {came} came")


def _fetch(url: str, output_file: str, most: int) -> None:
    """Download into a file. Raises DataError as soon as more comes than content of `most` bytes can need."""
    import pooch

    console = TextConsole(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    options: dict[str, Any] = {
        "headers": {"Accept-Encoding": "identity"},  # the .gz as it is: a second packing on the way would save nothing
        "hooks": {"response": _refuse_packed},
    }
    with (
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
        _Limited(output_file, most + most // 1000 + PACKING) as output,
    ):
        bar = _Bar(progress, url.rpartition("/")[2])
        fetch = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 14, timeout=TIMEOUT_SECONDS, **options)
        _in_time(lambda: fetch(url, output, None), output)


def _in_time(fetch: Callable[[], None], output: _Limited) -> None:
    """Call `fetch`, which writes to `output`. Raises DataError if that takes too long, and whatever `fetch` raises.

    A mirror that sends a byte now and then is never silent. So the download runs in a thread, which is left behind: its
    next write fails, because the output is closed by then.
    """
    failed: list[Exception] = []

    def work() -> None:
        try:
            fetch()
        except Exception as error:  # raised again below, where somebody listens
            failed.append(error)

    began = time.monotonic()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
        seconds = time.monotonic() - began
        if thread.is_alive() and seconds > PATIENCE_SECONDS + output.written / SLOWEST:
            raise DataError(f"too slow: {output.written:,} bytes came in {seconds:.0f} seconds")
    if failed:
        raise failed[0]


def _refuse_packed(response: Any, *args: Any, **options: Any) -> None:
    """Raise DataError for an answer that is packed several times over: a few bytes of it fill the memory."""
    packed = response.headers.get("Content-Encoding", "")
    if "," in packed:
        raise DataError(f"expected a file as it is, or packed once on the way, but it was packed as {packed[:60]!r}")


class _Limited:
    """A new file that takes only so many bytes. Raises DataError for more."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most, self.written = path, most, 0

    def __enter__(self) -> _Limited:
        self._file = open(self._path, "wb")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> int:
        if self.written + len(data) > self._most:
            raise DataError(f"expected at most {self._most:,} bytes, but more came")
        self.written += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


class _Bar:
    """A rich progress bar with the four names that pooch asks of one."""

    def __init__(self, progress: Progress, title: str) -> None:
        self.progress = progress
        self.task = progress.add_task(title, total=None)
        self.total = 0  # pooch sets it from the server's Content-Length, 0 where there is none

    def update(self, count: int) -> None:
        self.progress.update(self.task, advance=count, total=self.total or None)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        self.progress.stop_task(self.task)
