"""A data set that several processes map: what it says where the disk is full."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared.communicator import Communicator
from shared.data.datasets import load_dataset
from shared.data.mapped import mapped


def test_a_full_disk_is_named_and_nothing_stays_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(path: Path, array: np.ndarray) -> None:
        path.write_bytes(b"begun")
        raise OSError("3600 requested and 2016 written")

    monkeypatch.setattr("shared.data.mapped.np.save", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ranks = Communicator()
    ranks.size = 2
    with pytest.raises(
        OSError, match=r"cannot write .*train.npy, .* \(3600 requested and 2016 written\); set TMPDIR to"
    ):
        mapped(ranks, lambda: (load_dataset(), None))
    assert list(tmp_path.iterdir()) == []
