"""What a learner is told: every mistake launched for real, its message with file and line, and the way out."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, int32

from cuda_emulator import KernelError, KernelWarning, cuda, options

LINES = Path(__file__).read_text().splitlines()


def line_of(mark: str) -> int:
    """The line of this file that ends in this comment."""
    (found,) = [number for number, line in enumerate(LINES, 1) if line.endswith(f"  # {mark}")]
    return found


def told(launch: Any, *arguments: Any, mark: str) -> str:
    """What the learner reads about the line with this mark, without the place and the quoted line."""
    with pytest.raises(KernelError) as raised:
        launch(*arguments)
    line = line_of(mark)
    assert (raised.value.filename, raised.value.line) == (__file__, line)
    first, quoted = str(raised.value).splitlines()[:2]
    assert first.startswith(f"{__file__}:{line}: ")
    assert quoted == "    " + LINES[line - 1].strip()
    assert first.endswith(raised.value.sentence)
    return raised.value.sentence


# ---- Accesses out of bounds.

VECTOR, MATRIX, SHARED, SHARED_PAIR, LOCAL, ATOMIC, DEVICE, NEGATIVE, INLINE, VIEW, RAISED, ASSERTED = range(12)


@cuda.jit(device=True)
def first_of(values, place):  # type: ignore[no-untyped-def]
    return values[place]  # in the device function


@cuda.jit
def reach(what, place, values, table):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    tile = cuda.shared.array(8, float32)
    pair = cuda.shared.array((4, 2), int32)
    mine = cuda.local.array(3, float32)
    if what == VECTOR:
        values[i + place] = 1  # of a vector
    elif what == MATRIX:
        table[i, place] = 1  # of a matrix
    elif what == SHARED:
        tile[place] = 1  # of shared memory
        values[0] = tile[0]
    elif what == SHARED_PAIR:
        pair[place, 1] = 1  # of two axes
        values[0] = pair[0, 0]
    elif what == LOCAL:
        mine[place] = 1  # of a local array
        values[0] = mine[0]
    elif what == ATOMIC:
        cuda.atomic.add(values, place, 1)  # by an atomic
    elif what == DEVICE:
        values[0] = first_of(values, place)
    elif what == NEGATIVE:
        values[i - place] = 1  # counted from the end
    elif what == INLINE:
        values[-1] = 1
    elif what == VIEW:
        row = table[1]
        row[place] = 1  # of a view
    elif what == RAISED:
        raise ValueError("no such thing")  # raised
    else:
        assert place > 0, "the place must be positive"  # asserted


def reached(what: int, place: int) -> Any:
    """Launches with 2 blocks of 4 threads, an array of 6 and one of 9 x 5."""
    return lambda: reach[2, 4](what, place, np.zeros(6, np.float32), np.zeros((9, 5), np.float32))


WAY_OUT = (
    "On a device this reads or writes someone else's memory. Guard the access with an `if`, or launch fewer threads"
)


@pytest.mark.parametrize(
    ("what", "place", "mark", "message"),
    [
        (
            VECTOR,
            0,
            "of a vector",
            "values[6] is out of bounds: values has shape (6,); in block (1, 0, 0), thread (2, 0, 0)",
        ),
        (
            VECTOR,
            -9,
            "of a vector",
            "values[-9] is out of bounds: values has shape (6,); in block (0, 0, 0), thread (0, 0, 0)",
        ),
        (
            MATRIX,
            5,
            "of a matrix",
            "table[0, 5] is out of bounds along axis 1: table has shape (9, 5); in block (0, 0, 0)",
        ),
        (SHARED, 8, "of shared memory", "tile[8] is out of bounds: tile has shape (8,); in block (0, 0, 0)"),
        (SHARED_PAIR, 4, "of two axes", "pair[4, 1] is out of bounds along axis 0: pair has shape (4, 2); in block"),
        (LOCAL, 3, "of a local array", "mine[3] is out of bounds: mine has shape (3,); in block (0, 0, 0)"),
        (ATOMIC, 7, "by an atomic", "values[7] is out of bounds: values has shape (6,); in block (0, 0, 0)"),
        (
            DEVICE,
            10,
            "in the device function",
            "values[10] is out of bounds: values has shape (6,); in block (0, 0, 0)",
        ),
        (VIEW, 5, "of a view", "row[5] is out of bounds: row has shape (5,); in block (0, 0, 0)"),
    ],
)
def test_an_access_out_of_bounds(what: int, place: int, mark: str, message: str) -> None:
    with options(threads=1):
        sentence = told(reached(what, place), mark=mark)
    assert sentence.startswith(message)
    assert sentence.endswith(f". {WAY_OUT}")


def test_a_fault_in_a_device_function_of_another_file_is_told_with_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "from cuda_emulator import cuda\n"
    body = "\n\n\n@cuda.jit(device=True)\ndef pick(values, place):\n    return values[place]  # here\n"
    (tmp_path / "picked_elsewhere.py").write_text(head + body, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    pick = importlib.import_module("picked_elsewhere").pick

    @cuda.jit
    def kernel(values, place):  # type: ignore[no-untyped-def]
        values[0] = pick(values, place)

    with pytest.raises(KernelError) as raised:
        kernel[1, 1](np.zeros(4, np.float32), 9)
    assert raised.value.filename == str(tmp_path / "picked_elsewhere.py")
    assert str(raised.value).splitlines()[1] == "    return values[place]  # here"


def test_a_negative_index_wraps_as_on_a_device() -> None:
    reached(NEGATIVE, 2)()
    reached(INLINE, 0)()


def test_a_computed_negative_index_is_told_in_check_mode_and_a_written_one_is_meant() -> None:
    with options(check=True):
        assert told(reached(NEGATIVE, 2), mark="counted from the end") == (
            "values[-2] counts from the end of values, which has shape (6,); in block (0, 0, 0), thread (0, 0, 0). "
            "A computed negative index wraps silently on a device. Guard the access with an `if`; a literal one, like "
            "[-1], is taken as meant"
        )
        reached(INLINE, 0)()


def test_a_kernels_own_raise_and_assert() -> None:
    with options(threads=1):
        assert told(reached(RAISED, 0), mark="raised") == (
            "raise ValueError('no such thing'): in block (0, 0, 0), thread (0, 0, 0)"
        )
        assert told(reached(ASSERTED, 0), mark="asserted") == (
            "assert place > 0: the place must be positive: in block (0, 0, 0), thread (0, 0, 0)"
        )
    reached(ASSERTED, 1)()


# ---- Barriers, and warps.


@cuda.jit
def meet(in_a_loop, out):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    if in_a_loop:
        for _ in range(t // 32 + 1):
            cuda.syncthreads()  # in a loop
    elif t < 20:
        cuda.syncthreads()  # in a branch


@cuda.jit
def leave(out):  # type: ignore[no-untyped-def]
    if cuda.threadIdx.x >= 20:
        return
    cuda.syncthreads()  # after a return
    out[cuda.threadIdx.x] = cuda.shfl_up_sync(0xFFFFFFFF, cuda.threadIdx.x, 1)


@cuda.jit
def half_a_warp(out):  # type: ignore[no-untyped-def]
    t = cuda.threadIdx.x
    if t < 16:
        out[t] = cuda.shfl_down_sync(0xFFFFFFFF, t, 1)  # half a warp


@cuda.jit
def too_few_named(out):  # type: ignore[no-untyped-def]
    cuda.syncwarp(0xFF)  # too few named


BARRIER_WAY_OUT = (
    "On a device this hangs or corrupts memory. Move it out of the branch or loop, so that every thread of the block "
    "reaches it"
)


@pytest.mark.parametrize(
    ("kernel", "arguments", "mark", "message"),
    [
        (
            meet,
            (False,),
            "in a branch",
            f"cuda.syncthreads() was reached by 20 of the 64 live threads of block (0, 0, 0). {BARRIER_WAY_OUT}",
        ),
        (
            meet,
            (True,),
            "in a loop",
            f"cuda.syncthreads() was reached by 32 of the 64 live threads of block (0, 0, 0). {BARRIER_WAY_OUT}",
        ),
        (
            half_a_warp,
            (),
            "half a warp",
            "cuda.shfl_down_sync() names 32 live lanes of the warp in its mask, and 16 of them are here; in block "
            "(0, 0, 0), thread (0, 0, 0). On a device this hangs or gives garbage. Name the lanes that take this path, "
            "or move the call out of the branch",
        ),
        (
            too_few_named,
            (),
            "too few named",
            "cuda.syncwarp() is called with the mask 0x000000ff, which does not name the calling lane; in block "
            "(0, 0, 0), thread (8, 0, 0). A mask names every lane that takes part: 0xffffffff for the whole warp",
        ),
    ],
)
def test_a_meeting_that_not_all_come_to(kernel: Any, arguments: tuple[Any, ...], mark: str, message: str) -> None:
    assert told(kernel[1, 64], *arguments, np.zeros(64, np.int64), mark=mark) == message


def test_check_mode_notes_barriers_after_a_return_and_lets_them_pass() -> None:
    note = "44 threads of a block had returned before cuda.syncthreads(). The barrier does not wait for them"
    with options(check=True), pytest.warns(KernelWarning, match=re.escape(note)) as caught:
        leave[1, 64](np.zeros(64, np.int64))
    assert f"{__file__}:{line_of('after a return')}: " in str(caught[0].message)


def test_a_barrier_that_a_part_reaches_can_be_a_warning() -> None:
    message = "cuda.syncthreads() was reached by a part of the block's live threads (divergence='warn')"
    with options(divergence="warn"), pytest.warns(KernelWarning, match=re.escape(message)) as caught:
        meet[1, 64](False, np.zeros(64, np.int64))
    assert f"{__file__}:{line_of('in a branch')}: " in str(caught[0].message)


# ---- Loops that wait.


@cuda.jit
def wait(flag, out):  # type: ignore[no-untyped-def]
    while flag[0] == 0:  # waits
        pass
    out[0] = 1


def test_a_loop_that_waits_for_another_thread_is_warned_of_when_it_is_compiled() -> None:
    with pytest.warns(KernelWarning, match="this loop waits for what another thread writes") as caught:
        wait[1, 1](np.ones(1), np.zeros(1))
    message = str(caught[0].message)
    assert message.startswith(f"{__file__}:{line_of('waits')}: ")
    assert "Use cuda.syncthreads(), or a second kernel" in message


# ---- What is refused when a kernel is compiled.


@cuda.jit
def view_across(A, out):  # type: ignore[no-untyped-def]
    row = A[int(A[0, 0])]  # a view
    cuda.syncthreads()
    out[cuda.threadIdx.x] = row[cuda.threadIdx.x]


@cuda.jit
def two_types(A, out):  # type: ignore[no-untyped-def]
    v = 1
    if cuda.threadIdx.x > 3:
        v = (1, 2)  # another type
    cuda.syncthreads()
    print(v)


@cuda.jit
def shape_at_run_time(A, out):  # type: ignore[no-untyped-def]
    tile = cuda.shared.array(A.shape[0], float32)  # no constant
    tile[0] = 1
    out[0] = tile[0]


@cuda.jit
def too_much_shared(A, out):  # type: ignore[no-untyped-def]
    small = cuda.shared.array(8, float32)
    large = cuda.shared.array((128, 97), float32)  # the largest
    large[0, 0] = small[0]
    cuda.syncthreads()
    out[0] = large[0, 0]


@cuda.jit
def vote_in_a_choice(A, out):  # type: ignore[no-untyped-def]
    out[0] = cuda.syncthreads_count(1) if A[0, 0] > 0 else 0  # in a choice


@cuda.jit
def vote_in_an_and(A, out):  # type: ignore[no-untyped-def]
    if A[0, 0] > 0 and cuda.any_sync(0xFFFFFFFF, 1):  # in an and
        out[0] = 1


@cuda.jit(device=True)
def returns_early(x):  # type: ignore[no-untyped-def]
    if x > 0:
        return 1  # early
    cuda.syncthreads()
    return 2


@cuda.jit
def calls_it(A, out):  # type: ignore[no-untyped-def]
    out[0] = returns_early(A[0, 0])


@cuda.jit
def tries(A, out):  # type: ignore[no-untyped-def]
    try:  # try
        out[0] = 1
    except ValueError:
        out[0] = 2


@cuda.jit
def halves(A, out):  # type: ignore[no-untyped-def]
    out[0] = cuda.bfloat16(A[0, 0])  # halves


@cuda.jit
def plain_python(A, out):  # type: ignore[no-untyped-def]
    out[0] = line_of(3)  # plain Python


@cuda.jit
def no_types(A, out):  # type: ignore[no-untyped-def]
    out[0] = A.reshape_it()  # no such method


@cuda.jit
def shuffled_bytes(A, out):  # type: ignore[no-untyped-def]
    out[0] = cuda.shfl_sync(0xFFFFFFFF, np.int8(1), 0)  # a byte


@pytest.mark.parametrize(
    ("kernel", "mark", "message"),
    [
        (
            view_across,
            "a view",
            "'row' holds a view of an array on both sides of a cuda.syncthreads() or shuffle; only numbers can be "
            "kept there. Index the array itself after the barrier",
        ),
        (
            two_types,
            "another type",
            "'v' is int on one path and Tuple(int, int) on another, and a variable has one type; give each its own "
            "name",
        ),
        (
            shape_at_run_time,
            "no constant",
            "the shape of cuda.shared.array is 'A.shape[0]'; it must be known when the kernel is compiled: a number, "
            "a global or captured constant, or a tuple of those. For a size known at the launch only, use "
            "cuda.shared.array(0, dtype) and kernel[blocks, threads, stream, bytes]",
        ),
        (
            too_much_shared,
            "the largest",
            "'too_much_shared' declares 49,696 bytes of shared memory for each block; 49,152 (48 KB) is what every "
            "device has. Use smaller tiles, or a smaller dtype",
        ),
        (
            vote_in_a_choice,
            "in a choice",
            "cuda.syncthreads_count() inside 'a if c else b', 'and' or 'or' is not supported by the emulator: not "
            "every thread may reach it. Call it in a statement of its own, before",
        ),
        (
            vote_in_an_and,
            "in an and",
            "cuda.any_sync() inside 'a if c else b', 'and' or 'or' is not supported by the emulator: not every thread "
            "may reach it. Call it in a statement of its own, before",
        ),
        (
            calls_it,
            "early",
            "'returns_early' synchronises, and returns before its end; such a device function must have one return, "
            "as its last statement: anything else is not supported by the emulator",
        ),
        (tries, "try", "try is not supported by the emulator inside a kernel"),
        (halves, "halves", "cuda.bfloat16() is not supported by the emulator: compute in float32"),
        (
            plain_python,
            "plain Python",
            "'line_of' is a plain Python function; a kernel can call it once it is marked @cuda.jit(device=True)",
        ),
        (
            no_types,
            "no such method",
            "Numba finds no types for this: Unknown attribute 'reshape_it' of type array(float32, 2d, C)",
        ),
        (
            shuffled_bytes,
            "a byte",
            "cuda.shfl_sync() moves int32, int64, float32 and float64; this value is int8. Convert it first, for "
            "example with int32(...)",
        ),
    ],
)
def test_what_cannot_be_compiled(kernel: Any, mark: str, message: str) -> None:
    launch = kernel[1, 32]
    assert told(launch, np.zeros((4, 4), np.float32), np.zeros(32, np.float32), mark=mark) == message


# ---- Launches.


@cuda.jit
def fill(out, value):  # type: ignore[no-untyped-def]
    out[cuda.grid(1)] = value


LAUNCHES = {
    "unconfigured": lambda: fill(np.zeros(4), 1),  # unconfigured
    "too many": lambda: fill[1, 2048](np.zeros(4), 1),  # too many
    "too many together": lambda: fill[1, (32, 33)](np.zeros(4), 1),  # too many together
    "too few arguments": lambda: fill[1, 4](np.zeros(4)),  # too few arguments
    "too much dynamic": lambda: fill[1, 4, 0, 50000](np.zeros(4), 1),  # too much dynamic
}


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (
            "unconfigured",
            "fill was called without saying how many threads run it: write fill[blocks, threads](...)",
        ),
        (
            "too many",
            "fill: a block of 2048 threads along x is more than the 1024 that a device allows: use smaller blocks and "
            "more of them",
        ),
        (
            "too many together",
            "fill: a block of 32 x 33 = 1056 threads is more than the 1024 that a device allows: use smaller blocks "
            "and more of them",
        ),
        (
            "too few arguments",
            "fill takes 2 arguments (out, value), got 1",
        ),
        (
            "too much dynamic",
            "fill: a block may use 49152 bytes of shared memory, this launch needs 50000 (50000 bytes, dynamic): use "
            "smaller tiles, or a narrower type",
        ),
    ],
)
def test_a_launch_that_no_device_would_make(mark: str, message: str) -> None:
    assert told(LAUNCHES[mark], mark=mark) == message
