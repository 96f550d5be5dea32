"""The data set that files of commit aa8f7fd were made with, and a learner's folder of d0c3bb7."""

import gzip
import tarfile
from importlib import resources
from pathlib import Path

import pytest

from tests.promises.earlier_files import COURSE
from tests.shared.data.idx_files import write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data set that make.sh trained on: the first images of the bundled one."""
    bundled = resources.files("shared") / "data" / "mnist_subset"
    for name, count in (("train", 160), ("t10k", 40)):
        for kind, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            content = gzip.decompress((bundled / f"{name}-{kind}-ubyte.gz").read_bytes())
            start = content[:4] + count.to_bytes(4, "big") + content[8:header]
            images = content[header : header + count * size]
            write(tmp_path / "data" / "mnist" / f"{name}-{kind}-ubyte", start + images)
    return tmp_path / "data"


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The learner's folder, for commands that are given none."""
    with tarfile.open(COURSE / "course.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        archive.extractall(tmp_path)
    monkeypatch.setenv("GROUNDUP_COURSE", str(tmp_path / "course"))
    return tmp_path / "course"
