"""The IDX reader returns what was written, or says what is wrong with the file; nothing in between."""

import gzip
import hashlib
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shared.data import idx
from shared.data.idx import DataError, content_sha256, read_idx
from tests.shared.data.idx_files import TYPE_CODES, idx_bytes, write

SAMPLE = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5) * 7

# tmp_path is one folder for all of a test's examples: each example overwrites the file.
SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

arrays = st.sampled_from(sorted(TYPE_CODES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=1, max_dims=4, max_side=6))
)


@SHARED_FOLDER
@given(array=arrays, suffix=st.sampled_from(["", ".gz"]))
def test_every_element_type_and_shape_comes_back_as_written(tmp_path: Path, array: np.ndarray, suffix: str):
    came = read_idx(write(tmp_path / f"array{suffix}", idx_bytes(array)))
    assert came.dtype == array.dtype
    assert came.dtype.isnative
    assert came.flags.writeable
    np.testing.assert_array_equal(came, array)


def test_the_projects_own_writer_writes_what_the_tests_writer_does():
    assert idx.idx_bytes(SAMPLE) == idx_bytes(SAMPLE)
    for wrong in (SAMPLE.astype(np.int64), SAMPLE[:0], np.uint8(1)):
        with pytest.raises(ValueError, match="idx_bytes: expected an array of uint8 with something in it, got"):
            idx.idx_bytes(np.asarray(wrong))


def test_gzip_is_told_by_content_and_not_by_name(tmp_path: Path):
    plain_called_gz = tmp_path / "a.gz"
    plain_called_gz.write_bytes(idx_bytes(SAMPLE))
    gz_called_plain = tmp_path / "b"
    gz_called_plain.write_bytes(gzip.compress(idx_bytes(SAMPLE)))
    np.testing.assert_array_equal(read_idx(plain_called_gz), SAMPLE)
    np.testing.assert_array_equal(read_idx(gz_called_plain), SAMPLE)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_cut_short_at_any_byte_is_a_data_error_that_names_it(tmp_path: Path, suffix: str):
    path = write(tmp_path / f"array{suffix}", idx_bytes(SAMPLE))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as caught:
            read_idx(path)
        assert str(path) in str(caught.value)


def test_any_flipped_bit_of_a_gz_file_is_a_data_error_or_changes_nothing(tmp_path: Path):
    path = write(tmp_path / "array.gz", idx_bytes(SAMPLE))
    whole = path.read_bytes()
    harmless = set()
    for position in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            came = read_idx(path)
        except DataError as error:
            assert str(path) in str(error)  # noqa: PT017 - either outcome is right, so raises() does not fit
        else:
            np.testing.assert_array_equal(came, SAMPLE)
            harmless.add(position // 8)
    # Bytes that say nothing about the content: flags, time, compression level and system in gzip's header, and
    # the unused bits of the last compressed byte, which stands before 8 bytes of checksum and length.
    assert harmless <= {*range(3, 10), len(whole) - 9}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "expected an IDX file, which starts with 4 bytes, but it holds 0"),
        (b"<!DOCTYPE html>", "not an IDX file.*starts with 3c 21 44 4f"),
        (b"\0\0\x0a\x01\0\0\0\x01\0", "not an IDX file.*starts with 00 00 0a 01"),
        (b"\0\0\x08\0\0", "number of dimensions \\(1 to 32\\).*starts with 00 00 08 00"),
        (b"\0\0\x08\x03\0\0\0\x01\0\0", "expected 3 dimensions of 4 bytes each.*only 6 bytes follow"),
        (b"\0\0\x08\x02\0\0\0\0\0\0\0\x05", "expected an array with something in it.*0 x 5"),
        (idx_bytes(SAMPLE)[:-1], "2 x 3 x 5 elements of uint8, 30 bytes, but only 29 follow"),
        (idx_bytes(SAMPLE) + b"\0", "30 bytes, but more follow"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_is_not_idx_is_refused_with_what_was_expected_and_what_came(
    tmp_path: Path, content: bytes, says: str, suffix: str
):
    path = write(tmp_path / f"array{suffix}", content)
    with pytest.raises(DataError, match=says) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_header_that_claims_a_huge_array_takes_no_memory(tmp_path: Path, suffix: str):
    huge = struct.pack(">HBB3I", 0, 0x0E, 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    path = write(tmp_path / f"array{suffix}", huge + bytes(100))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="expected at most 268,435,456 bytes, but its header says 4294967295 x"):
            read_idx(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_surplus_after_the_gzip_data_is_a_data_error(tmp_path: Path):
    path = write(tmp_path / "array.gz", idx_bytes(SAMPLE))
    path.write_bytes(path.read_bytes() + b"surplus")
    with pytest.raises(DataError, match="gzip data is damaged"):
        read_idx(path)


def test_a_missing_file_is_a_data_error_that_names_it(tmp_path: Path):
    with pytest.raises(DataError, match=r"nowhere\.gz: expected an IDX file, but there is no such file"):
        read_idx(tmp_path / "nowhere.gz")


def test_the_content_checksum_does_not_depend_on_compression(tmp_path: Path):
    content = idx_bytes(SAMPLE)
    expected = hashlib.sha256(content).hexdigest()
    assert content_sha256(write(tmp_path / "plain", content)) == expected
    assert content_sha256(write(tmp_path / "packed.gz", content)) == expected
