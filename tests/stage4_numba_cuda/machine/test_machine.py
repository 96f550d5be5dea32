"""Threads that wait for one another, the instructions of a warp, and the mistakes that end a launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stage4_numba_cuda.machine.image import Image, build
from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.ptx import PtxError
from tests.stage4_numba_cuda.machine.to_c import translate

pytestmark = needs_numba_cuda

KERNEL = """
.visible .entry k(.param .u64 A, .param .u64 B)
{{
    .reg .pred p, q, o;
    .reg .b64 at, x, y, here;
    .reg .b32 n, a, b, c, d<8>, e<8>;
    .reg .f32 f<8>;
    .shared .align 16 .b8 tile[1024];
    mov.u32 n, %tid.x;
    mul.wide.u32 at, n, 4;
    ld.param.u64 x, [A]; add.s64 here, x, at;
    ld.param.u64 y, [B]; add.s64 y, y, at;
    ld.global.u32 a, [here];
    mov.u64 x, tile; add.s64 at, at, x; ld.param.u64 x, [A];
    {}
    st.global.u32 [y], b;
    ret;
}}
"""


def run(code: str, a: np.ndarray, folder: Path, threads: int = 32, seed: int = 0, count: int = 0) -> np.ndarray:
    """What a kernel leaves in `b` of each thread, which has its word of array A in `a`."""
    path = folder / "image.so"
    if not path.exists():
        build(KERNEL.format(code), path)
    b = np.zeros(count or threads, np.uint32)
    Image(path).launch(0, [a, b], threads, seed=seed)
    return b


WORDS = np.arange(1000, 1064, dtype=np.uint32)


SHARE = "st.shared.u32 [at], a; {} xor.b32 c, n, 63; mul.wide.u32 at, c, 4; ld.shared.u32 b, [at];"


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "membar.gl; nanosleep.u32 100; barrier.sync 0; fence.acq_rel.gpu;"])
@pytest.mark.parametrize("seed", range(5))
def test_a_barrier_shows_each_thread_what_the_others_wrote(seed, barrier, tmp_path):
    got = run(SHARE.format(barrier), WORDS, tmp_path, threads=64, seed=seed)
    np.testing.assert_array_equal(got, WORDS[::-1])


def test_without_the_barrier_the_numbers_are_wrong(tmp_path):
    """Shared memory begins as NaN, and half of the threads come before those whose words they read."""
    wrong = [np.any(run(SHARE.format(""), WORDS, tmp_path, threads=64, seed=seed) != WORDS[::-1]) for seed in range(5)]
    assert all(wrong)


COPY = "mov.u64 at, tile; cvt.u32.u64 c, at; cp.async.cg.shared.global [c], [x], 16;"


def test_a_copy_has_arrived_behind_the_wait_for_its_group(tmp_path):
    code = f"{COPY} cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 b, [at+4];"
    for seed in range(8):
        assert run(code, WORDS, tmp_path, threads=1, seed=seed)[0] == WORDS[1]


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_a_copy_that_is_not_waited_for_is_late_in_some_runs(wait, tmp_path):
    code = f"{COPY} cp.async.commit_group; {wait} ld.shared.u32 b, [at+4]; cp.async.wait_all;"
    got = {int(run(code, WORDS, tmp_path, threads=1, seed=seed)[0]) for seed in range(16)}
    assert got == {0xFFFFFFFF, int(WORDS[1])}


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("ld.global.u32 b, [here+4096];", "4 bytes of global memory at 0x[0-9a-f]+, which nobody has asked for"),
        ("ld.global.u64 x, [here+4];", "8 bytes of global memory at 0x[0-9a-f]+, no multiple of them"),
        ("ld.shared.u32 b, [at+1024];", r"4 bytes at 1\d\d\d of 1024 in shared memory"),
        ("ld.shared.v2.u32 {b, c}, [at+4];", r"8 bytes at \d+ in shared memory, no multiple of them"),
        ("setp.lt.u32 p, n, 7; @p bra E; bar.sync 0; ret; E: bar.sync 0;", "threads wait at different barriers"),
        (
            "setp.lt.u32 p, n, 7; @p ret; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0, d1, d2, d3}, [n];",
            "an instruction for a whole warp, of which threads have ended or are missing",
        ),
        (
            "setp.lt.u32 p, n, 7; @p bra E; shfl.sync.bfly.b32 b|q, a, 1, 31, -1; bar.sync 0; E: bar.sync 0;",
            "wait for ever",
        ),
        ("shfl.sync.idx.b32 b|q, a, 3, 31, 65535;", "a thread waits for threads of its warp, and is none of them"),
        (f"{COPY} cp.async.commit_group; mov.u32 b, 0;", "copies are on their way when a thread ends"),
        ("div.u32 b, a, 0;", "a whole number is divided by 0"),
    ],
)
def test_a_mistake_ends_the_launch_with_a_sentence(code, sentence, tmp_path):
    with pytest.raises(RuntimeError, match=rf"^(line \d+ of the PTX: )?.*{sentence}"):
        run(code, WORDS[:32], tmp_path, seed=1)  # with this one a copy is not made at once


OTHER_FORMS = (
    # Another rounding, a result that is limited to a range, subnormal numbers as 0, a NaN that is kept
    *(
        "div.rz.f32 f0, f1, f2",
        "div.rn.ftz.f32 f0, f1, f2",
        "mad.lo.sat.s32 b, a, c, n",
        "fma.rn.sat.f32 f0, f1, f2, f3",
    ),
    *("add.rz.f64 x, y, at", "sqrt.rz.f32 f0, f1", "rcp.rn.ftz.f32 f0, f1", "min.NaN.f32 f0, f1, f2"),
    *("setp.lt.ftz.f32 p, f0, f1", "ex2.approx.f16 f0, f1", "cvt.rz.f32.f64 f0, x", "cvt.sat.u8.u32 b, a"),
    # Other spaces, sizes and operations
    *("ld.global.b128 x, [x]", "ld.const.u32 b, [x]", "atom.global.sub.u32 b, [x], a", "red.global.exch.b32 [x], a"),
    *("cp.async.ca.shared.global [c], [x], 4", "shfl.bfly.b32 b, a, 1, 31", "bar.arrive 0, 64"),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0}, {a}, {b}, {f1}",
)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("frobnicate.u32 b, a;", r"^line 15: frobnicate.u32 b, a: unknown instruction$"),
        ("bar.sync 1;", "only a barrier of the whole block is known"),
        ("ld.global.u32 b, [nobody];", "unknown operand 'nobody'"),
        ("mov.u32 nobody, a;", "'nobody' is no register"),
        (".section x;", "unknown directive"),
        ("call.uni (b), nobody, (a);", "the function nobody is not in this text"),
        ("st.global.v4.u32 [y], {a, b};", "a vector of another length"),
        ("add.s32 b, a;", "operands of another number or kind"),
        ("@nobody mov.u32 b, a;", "'nobody' is no register"),
        *((f"{code};", "unknown form") for code in OTHER_FORMS),
    ],
)
def test_what_the_machine_does_not_know_is_refused(code, sentence):
    with pytest.raises(PtxError, match=sentence):
        translate(KERNEL.format(code))
