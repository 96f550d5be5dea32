"""Threads that wait for one another, the instructions of a warp, and the mistakes that end a launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stage4_numba_cuda.machine.image import Image, build
from tests.stage4_numba_cuda.machine.needed import needs_numba_cuda
from tests.stage4_numba_cuda.machine.ptx import PtxError, parse
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
LANES = np.arange(32)


@pytest.mark.parametrize(
    ("mode", "by", "clamp", "source"),
    [
        ("up", 3, 0, np.where(LANES >= 3, LANES - 3, LANES)),
        ("down", 5, 31, np.where(LANES + 5 < 32, LANES + 5, LANES)),
        ("bfly", 9, 31, LANES ^ 9),
        ("idx", 6, 31, np.full(32, 6)),
        # Segments of 8 lanes: the mask in bits 8 to 12 says which bits of a lane's number name its segment.
        ("down", 2, 24 << 8 | 31, np.where(LANES % 8 + 2 < 8, LANES + 2, LANES)),
        ("idx", 3, 24 << 8 | 31, LANES // 8 * 8 + 3),
        ("up", 2, 24 << 8, np.where(LANES % 8 >= 2, LANES - 2, LANES)),
    ],
)
def test_lanes_read_from_one_another(mode, by, clamp, source, tmp_path):
    got = run(f"shfl.sync.{mode}.b32 b|p, a, {by}, {clamp}, -1;", WORDS, tmp_path)
    np.testing.assert_array_equal(got, WORDS[source])


def test_lanes_that_have_ended_are_not_waited_for(tmp_path):
    code = "setp.ge.u32 p, n, 24; @p ret; shfl.sync.bfly.b32 b|q, a, 7, 31, -1;"
    got = run(code, WORDS, tmp_path)
    np.testing.assert_array_equal(got, np.where(LANES < 24, WORDS[LANES ^ 7], 0))


def test_a_vote_asks_the_whole_warp(tmp_path):
    odd = "and.b32 c, a, 1; setp.eq.s32 p, c, 1;"
    assert set(run(f"{odd} vote.sync.ballot.b32 b, p, -1;", WORDS, tmp_path)) == {0xAAAAAAAA}


@pytest.mark.parametrize(("limit", "expected"), [(0, 1), (7, 0), (32, 1)])
def test_a_vote_asks_whether_all_lanes_say_the_same(limit, expected, tmp_path):
    code = f"setp.lt.u32 p, n, {limit}; vote.sync.uni.pred q, !p, -1; selp.u32 b, 1, 0, q;"
    assert set(run(code, WORDS, tmp_path)) == {expected}


def test_lanes_find_those_with_the_same_value(tmp_path):
    """The lower half of the warp has three values; the upper half takes no part."""
    code = "and.b32 c, n, 3; min.u32 c, c, 2; setp.ge.u32 p, n, 16; mov.u32 b, 0; @p bra E; "
    got = run(f"{code} match.any.sync.b32 b, c, 65535; E:", WORDS, tmp_path)
    masks = np.array([0x1111, 0x2222, 0xCCCC, 0xCCCC])
    np.testing.assert_array_equal(got, np.where(LANES < 16, masks[LANES % 4], 0))


@pytest.mark.parametrize(("shift", "expected"), [(5, 0xFFFFFFFF), (4, 0)])
def test_lanes_ask_whether_all_have_one_value(shift, expected, tmp_path):
    code = f"shr.u32 c, n, {shift}; match.all.sync.b32 b|q, c, -1; selp.u32 c, -1, 0, q; and.b32 b, b, c;"
    assert set(run(code, WORDS, tmp_path)) == {expected}


def test_the_lanes_that_are_active_are_some_of_those_at_the_same_place(tmp_path):
    """Each lane is among them, none of the others is, and in some runs they do not go on together."""
    whole = set()
    for seed in range(8):
        got = run("setp.ge.u32 p, n, 20; mov.u32 b, 0; @p bra E; activemask.b32 b; E:", WORDS, tmp_path, seed=seed)
        assert not got[20:].any()
        for lane, mask in enumerate(map(int, got[:20])):
            members = [other for other in range(32) if mask >> other & 1]
            assert lane in members
            assert set(got[members]) == {mask}
        whole.add(set(got[:20]) == {0xFFFFF})
    assert whole == {True, False}


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("eq", lambda lane: 1 << lane),
        ("lt", lambda lane: (1 << lane) - 1),
        ("le", lambda lane: (2 << lane) - 1),
        ("gt", lambda lane: (2**32 - 1) & -(2 << lane)),
        ("ge", lambda lane: (2**32 - 1) & -(1 << lane)),
    ],
)
def test_a_lane_knows_those_before_and_behind_it(name, mask, tmp_path):
    got = run(f"mov.u32 b, %lanemask_{name};", WORDS, tmp_path)
    assert list(map(int, got)) == [mask(lane) for lane in range(32)]


@pytest.mark.parametrize(("operation", "expected"), [("inc", 4), ("dec", 2)])
def test_a_counter_begins_anew_behind_its_limit(operation, expected, tmp_path):
    """inc: 0 to 5 in turn. dec: from 0 it goes to 5, then down."""
    code = "mov.u32 c, 0; setp.eq.u32 p, n, 0; @p st.shared.u32 [tile], c; bar.sync 0;"
    code += f"atom.shared.{operation}.u32 c, [tile], 5; bar.sync 0; ld.shared.u32 b, [tile];"
    assert set(run(code, WORDS, tmp_path, threads=64)) == {expected}


DOUBLE = """
.func (.param .b32 result) double(.param .b32 given);
.func (.param .b32 result) double(.param .b32 given)
{
    .reg .pred p;
    .reg .b32 a;
    .reg .b64 at;
    .local .align 4 .b8 depot[4];
    ld.param.u32 a, [given];
    mov.u64 at, depot;
    st.local.u32 [at], a;
    setp.ge.u32 p, a, 1016;
    @p bra E;
    bar.warp.sync 65535;
    ld.local.u32 a, [at+0];
    shl.b32 a, a, 1;
    st.param.u32 [result+0], a;
    ret;
E:
    st.param.u32 [result], a;
    ret;
}
"""
CALL = """{{ .param .b32 passed; .param .b32 back; st.param.u32 [passed+0], {0};
    call.uni (back), double, (passed); ld.param.u32 b, [back+0]; }}"""


def test_a_function_is_called_and_may_wait(tmp_path):
    """It doubles a number below 1016 when 16 lanes have come with such a number."""
    build(DOUBLE + KERNEL.format(CALL.format("a")), tmp_path / "image.so")
    np.testing.assert_array_equal(run("", WORDS, tmp_path), np.where(LANES < 16, WORDS[:32] * 2, WORDS[:32]))


def test_the_calls_of_a_function_have_their_own_variables(tmp_path):
    """The lower half of the warp calls it twice."""
    twice = f"{CALL.format('a')} setp.ge.u32 p, n, 16; @p bra E; sub.s32 a, b, 1200; {CALL.format('a')} E:"
    build(DOUBLE + KERNEL.format(twice), tmp_path / "image.so")
    expected = np.where(LANES < 16, (WORDS[:32] * 2 - 1200) * 2, WORDS[:32])
    np.testing.assert_array_equal(run("", WORDS, tmp_path), expected)


@pytest.mark.parametrize(("kind", "expected"), [("or", 1), ("and", 0), ("popc", 40)])
def test_a_barrier_counts_who_says_yes(kind, expected, tmp_path):
    target = "b" if kind == "popc" else "q"
    code = f"setp.ge.u32 p, n, 24; bar.red.{kind}.{'u32' if kind == 'popc' else 'pred'} {target}, 0, p;"
    code += "" if kind == "popc" else "selp.u32 b, 1, 0, q;"
    assert set(run(code, WORDS, tmp_path, threads=64)) == {expected}


SHARE = "st.shared.u32 [at], a; {} xor.b32 c, n, 63; mul.wide.u32 at, c, 4; ld.shared.u32 b, [at];"


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "membar.gl; nanosleep.u32 100; barrier.sync 0; fence.acq_rel.gpu;"])
@pytest.mark.parametrize("seed", range(5))
def test_a_barrier_shows_each_thread_what_the_others_wrote(seed, barrier, tmp_path):
    got = run(SHARE.format(barrier), WORDS, tmp_path, threads=64, seed=seed)
    np.testing.assert_array_equal(got, WORDS[::-1])


def test_threads_get_from_an_atomic_sum_each_another_number(tmp_path):
    words = WORDS.copy()
    got = run("atom.global.add.u32 b, [x], 1;", words, tmp_path, threads=64)
    assert sorted(got) == list(range(1000, 1064))
    assert words[0] == 1064


def test_threads_hand_on_their_numbers_by_an_exchange(tmp_path):
    words = WORDS.copy()
    got = run("atom.global.exch.b32 b, [x], n;", words, tmp_path, threads=64)
    assert sorted([*got, words[0]]) == [*range(64), 1000]


def test_one_thread_finds_what_it_compares_with(tmp_path):
    words = WORDS.copy()
    got = run("atom.global.cas.b32 b, [x], 1000, n;", words, tmp_path, threads=64)
    (winner,) = np.flatnonzero(got == 1000)
    assert set(np.delete(got, winner)) == {winner} == {words[0]}


def test_a_vector_is_stored_to_global_memory(tmp_path):
    code = "and.b32 c, n, 3; setp.ne.u32 p, c, 0; add.u32 d0, n, 1; add.u32 d1, n, 2; add.u32 d2, n, 3;"
    code += "@!p st.global.v4.u32 [y], {n, d0, d1, d2}; bar.sync 0; ld.global.u32 b, [y];"
    np.testing.assert_array_equal(run(code, WORDS, tmp_path), LANES)


def test_a_thread_knows_its_block_and_the_size_of_all(tmp_path):
    code = "mov.u32 c, %ctaid.x; mov.u32 d0, %ntid.x; mov.u32 d1, %nctaid.x; mul.lo.u32 d2, c, d0;"
    code += "mul.wide.u32 at, d2, 4; add.s64 y, y, at; mad.lo.u32 b, d1, 100, d2;"
    build(KERNEL.format(code), tmp_path / "image.so")
    b = np.zeros(48, np.uint32)
    Image(tmp_path / "image.so").launch(0, [WORDS, b], 16, blocks=3)
    np.testing.assert_array_equal(b, 300 + np.repeat([0, 16, 32], 16))


@pytest.mark.parametrize("kind", ["and", "popc"])
def test_a_barrier_waits_for_the_threads_that_have_not_ended(kind, tmp_path):
    """And only these are counted at it."""
    code = "setp.lt.u32 p, n, 7; @p ret; setp.ge.u32 p, n, 7; "
    code += "bar.red.popc.u32 b, 0, p;" if kind == "popc" else "bar.red.and.pred q, 0, p; selp.u32 b, 57, 0, q;"
    np.testing.assert_array_equal(run(code, WORDS, tmp_path, threads=64), np.where(np.arange(64) < 7, 0, 57))


def test_without_the_barrier_the_numbers_are_wrong(tmp_path):
    """Shared memory begins as NaN, and half of the threads come before those whose words they read."""
    wrong = [np.any(run(SHARE.format(""), WORDS, tmp_path, threads=64, seed=seed) != WORDS[::-1]) for seed in range(5)]
    assert all(wrong)


def test_a_loop_may_end_at_another_time_for_each_thread(tmp_path):
    code = "mov.u32 b, 0; mov.u32 c, n; L: add.s32 b, b, c; sub.s32 c, c, 1; setp.ge.s32 p, c, 0; @p bra L; bar.sync 0;"
    np.testing.assert_array_equal(run(code, WORDS, tmp_path), LANES * (LANES + 1) // 2)


@pytest.mark.parametrize("waits_for", [7, 6], ids=["all", "all but one"])
def test_blocks_of_one_launch_can_wait_for_each_other_and_get_ahead_of_each_other(waits_for, tmp_path):
    """Each block says that it is there, and waits for the others. Without the last one some go on too early."""
    code = "mov.u32 d0, %ctaid.x; mul.wide.u32 at, d0, 256; add.s64 y, y, at; setp.ne.s32 p, n, 0; @p bra E;"
    code += "red.release.gpu.global.add.u32 [x], 1; W: ld.acquire.gpu.global.u32 b, [x];"
    code += f"setp.lt.s32 p, b, {waits_for}; @p bra W; E: bar.sync 0; bar.sync 0; ld.global.u32 b, [x];"
    build(KERNEL.format(code), tmp_path / "image.so")
    found = set()
    for seed in range(10):
        a, b = np.zeros(64, np.uint32), np.zeros(7 * 64, np.uint32)
        Image(tmp_path / "image.so").launch(0, [a, b], 64, blocks=7, seed=seed, together=True)
        found |= set(b.tolist())
    assert found == ({7} if waits_for == 7 else {6, 7})


def test_ldmatrix_deals_out_four_matrices_of_eight_rows(tmp_path):
    """Row r of matrix i lies at the address of thread 8 i + r; thread 4 r + c gets its words c."""
    fill = "shl.b32 c, n, 4; mov.u64 at, tile; cvt.u64.u32 x, c; add.s64 at, at, x;"
    fill += "st.shared.v4.u32 [at], {d0, d1, d2, d3};"
    words = "shl.b32 d0, n, 2; add.s32 d1, d0, 1; add.s32 d2, d0, 2; add.s32 d3, d0, 3;"
    load = "bar.sync 0; cvt.u32.u64 c, at; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {e0, e1, e2, e3}, [c];"
    row, word = LANES // 4, LANES % 4
    for matrix in range(4):
        (folder := tmp_path / str(matrix)).mkdir()
        got = run(f"{words} {fill} {load} mov.b32 b, e{matrix};", WORDS, folder)
        np.testing.assert_array_equal(got, (8 * matrix + row) * 4 + word)


def pairs(x: np.ndarray, kind: str) -> np.ndarray:
    """Neighbours of a row as one word, the first in the lower half: of bf16, or of f16."""
    bits = (
        x.astype(np.float32).view(np.uint32) >> 16
        if kind == "bf16"
        else x.astype(np.float16).view(np.uint16).astype(np.uint32)
    )
    return bits[:, ::2] | bits[:, 1::2] << np.uint32(16)


@pytest.mark.parametrize(("kind", "depth"), [("tf32", 8), ("bf16", 16), ("f16", 8)])
def test_a_warp_multiplies(kind, depth, tmp_path):
    """Lane 4 g + p has of a the rows g and g + 8, of b column g, and of the product columns 2 p and 2 p + 1."""
    random = np.random.default_rng(0)
    left = random.integers(-8, 9, (16, depth)).astype(np.float32)
    right = random.integers(-8, 9, (depth, 8)).astype(np.float32)
    g, p = LANES // 4, LANES % 4
    if kind == "tf32":
        a = [left[g, p], left[g + 8, p], left[g, p + 4], left[g + 8, p + 4]]
        b = [right[p, g], right[p + 4, g]]
        words = [x.astype(np.float32).view(np.uint32) for x in (*a, *b)]
    else:
        rows, columns = pairs(left, kind), pairs(right.T.copy(), kind)
        words = [rows[g, p], rows[g + 8, p], rows[g, (p + 4) % (depth // 2)], rows[g + 8, (p + 4) % (depth // 2)]]
        words = words[: depth // 4] + [columns[g, p], columns[g, (p + 4) % (depth // 2)]][: depth // 8]
    count = len(words)
    sizes = {"tf32": "m16n8k8", "bf16": "m16n8k16", "f16": "m16n8k8"}
    of_a = ", ".join(f"d{i}" for i in range(count * 2 // 3))
    of_b = ", ".join(f"d{i}" for i in range(count * 2 // 3, count))
    code = "".join(f"ld.global.u32 d{i}, [here+{128 * i}];" for i in range(count))
    code += "mov.f32 f0, 0f3F800000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0;"
    code += f"mma.sync.aligned.{sizes[kind]}.row.col.f32.{kind}.{kind}.f32 {{f4, f5, f6, f7}}, {{{of_a}}}, {{{of_b}}}, "
    code += "{f0, f1, f2, f3};"
    code += "".join(f"st.global.f32 [y+{128 * (i + 1)}], f{4 + i};" for i in range(4)) + "mov.u32 b, 0;"
    got = run(code, np.concatenate(words), tmp_path, count=160).view(np.float32).reshape(5, 32)[1:]
    expected = left @ right + 1
    np.testing.assert_array_equal(got, [expected[g + 8 * (i // 2), 2 * p + i % 2] for i in range(4)])


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
    "code",
    [
        "setp.lt.u32 p, n, 7; @p ret; shfl.sync.bfly.b32 b|q, a, 1, 31, -1;",
        "setp.ge.u32 p, n, 16; @p bra E; shfl.sync.bfly.b32 b|q, a, 17, 31, 65535; E:",
    ],
    ids=["has ended", "is not named"],
)
def test_what_comes_from_a_lane_that_takes_no_part_is_another_number_in_each_run(code, tmp_path):
    reader = 7 if "ret" in code else 3
    got = {int(run(code, WORDS[:32], tmp_path, seed=seed)[reader]) for seed in range(1, 5)}
    assert len(got) == 4


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
    *("div.rz.f32 f0, f1, f2", "div.rn.ftz.f32 f0, f1, f2", "div.full.f32 f0, f1, f2", "div.f32 f0, f1, f2"),
    *("mad.rn.f32 f0, f1, f2, f3", "mad.lo.sat.s32 b, a, c, n", "mad.s32 b, a, c, n", "mul.s32 b, a, c"),
    *("fma.rn.sat.f32 f0, f1, f2, f3", "fma.rn.f16x2 b, a, c, n", "fma.f32 f0, f1, f2, f3", "fma.rz.f64 x, y, at, x"),
    *("add.rz.f64 x, y, at", "add.sat.f32 f0, f1, f2", "add.sat.s32 b, a, c", "sub.ftz.f32 f0, f1, f2"),
    *("mul.rz.f32 f0, f1, f2", "sqrt.rz.f32 f0, f1", "sqrt.f32 f0, f1", "rcp.rz.f32 f0, f1", "rcp.rn.ftz.f32 f0, f1"),
    *("abs.ftz.f64 x, y", "neg.ftz.f64 x, y", "min.NaN.f32 f0, f1, f2", "max.xorsign.abs.f32 f0, f1, f2"),
    *("setp.lt.ftz.f32 p, f0, f1", "setp.num.s32 p, a, c", "setp.lo.s32 p, a, c", "ex2.approx.f16 f0, f1"),
    *("ex2.f32 f0, f1", "rsqrt.approx.f64 x, y", "lg2.approx.f64 x, y", "copysign.f16 a, b, c"),
    *(
        "cvt.s32.f32 b, f0",
        "cvt.rz.f32.f64 f0, x",
        "cvt.rn.sat.f32.f64 f0, x",
        "cvt.sat.u8.u32 b, a",
        "cvt.f32.s32 f0, a",
    ),
    *("shf.l.b32 b, a, c, n", "bfe.s32 b, a, 1, 2", "add.cc.u16 b, a, c", "addc.sat.u32 b, a, c"),
    # Other spaces, sizes and operations
    *("ld.global.b128 x, [x]", "ld.const.u32 b, [x]", "ld.global.v8.u32 {a, b}, [x]", "st.async.u32 [x], b"),
    *("atom.global.sub.u32 b, [x], a", "atom.shared.add.s64 x, [at], y", "red.global.exch.b32 [x], a"),
    *("cvta.shared.u64 x, y", "cp.async.ca.shared.global [c], [x], 4", "shfl.bfly.b32 b, a, 1, 31"),
    *("vote.ballot.b32 b, p", "match.any.b32 b, a, -1", "bar.arrive 0, 64", "barrier.sync.aligned 0"),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0}, {a}, {b}, {f1}",
)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("frobnicate.u32 b, a;", r"^line 15: frobnicate.u32 b, a: unknown instruction$"),
        ("fma.rn.ftz.f32 f0, f1, f2, f3;", "unknown form"),
        ("bar.sync 1;", "only a barrier of the whole block is known"),
        ("ld.global.u32 b, [nobody];", "unknown operand 'nobody'"),
        ("mov.u32 nobody, a;", "'nobody' is no register"),
        (".section x;", "unknown directive"),
        ("call.uni (b), nobody, (a);", "the function nobody is not in this text"),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {d0, d1, d2, d3}, [c];", "unknown form"),
        ("st.global.v4.u32 [y], {a, b};", "a vector of another length"),
        ("st.global.u32 [y], {a, b};", "a vector of another length"),
        ("ld.global.v4.u32 {a, b}, [x];", "a vector of another length"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0, d1}, [c];", "a vector of another length"),
        ("add.s32 b, a;", "operands of another number or kind"),
        ("bar.red.popc.u32 b;", "operands of another number or kind"),
        ("selp.u32 b, a, c, nobody;", "'nobody' is no register"),
        ("@nobody mov.u32 b, a;", "'nobody' is no register"),
        *((f"{code};", "unknown form") for code in OTHER_FORMS),
    ],
)
def test_what_the_machine_does_not_know_is_refused(code, sentence):
    with pytest.raises(PtxError, match=sentence):
        translate(KERNEL.format(code))


def test_a_function_that_calls_itself_is_refused():
    itself = DOUBLE.replace("bar.warp.sync 65535;", CALL.format("a").replace("ld.param.u32 b", "ld.param.u32 a"))
    with pytest.raises(PtxError, match="the function double calls itself"):
        translate(itself + KERNEL.format(CALL.format("a")))


def test_a_name_in_braces_hides_the_one_outside():
    (kernel,) = parse(KERNEL.format("{ .reg .b32 b; mov.u32 b, 5; } mov.u32 b, 6;"))
    inner, outer = (
        statement.operands[0] for statement in kernel.statements if statement.operands[1:] in (("5",), ("6",))
    )
    assert inner != outer == "b"
