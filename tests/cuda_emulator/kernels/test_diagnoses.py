"""What a learner is told: mistakes launched in every mode; their message with file and line, and the way out."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, int32

from cuda_emulator import KernelError, KernelWarning, cuda, options
from tests.wide import widely

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


FIRST = "in block (0, 0, 0), thread (0, 0, 0)"
WAY_OUT = (
    "On a device this reads or writes someone else's memory. Guard the access with an `if`, or launch fewer threads"
)


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


@cuda.jit
def different_masks(out):  # type: ignore[no-untyped-def]
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_sync(0x0000FFFF if i < 16 else 0xFFFFFFFF, i, 1)  # different masks


@cuda.jit
def some_blocks(x):  # type: ignore[no-untyped-def]
    if cuda.blockIdx.x > 1:
        cuda.cg.this_grid().sync()  # of some blocks
    x[cuda.grid(1)] = 0


@cuda.jit
def some_threads(x):  # type: ignore[no-untyped-def]
    if cuda.threadIdx.x > 1:
        cuda.cg.this_grid().sync()  # of some threads
    x[cuda.grid(1)] = 0


@cuda.jit
def gone_before(x):  # type: ignore[no-untyped-def]
    if cuda.blockIdx.x == 4:
        return
    cuda.cg.this_grid().sync()  # of gone before
    x[cuda.grid(1)] = 0


@cuda.jit
def fewer_rounds(x):  # type: ignore[no-untyped-def]
    group = cuda.cg.this_grid()
    for _ in range(6 - (cuda.blockIdx.x == 2)):
        group.sync()  # of fewer rounds
    x[cuda.grid(1)] = 0


BARRIER_WAY_OUT = (
    "On a device this hangs or corrupts memory. Move it out of the branch or loop, so that every thread of the block "
    "reaches it"
)


GRID_SYNC = "cuda.cg.this_grid().sync() was reached by "
OUT = np.zeros(64, np.int64)
FAULTS = [
    (
        reached(VECTOR, 0),
        "of a vector",
        "values[6] is out of bounds: values has shape (6,); in block (1, 0, 0), thread (2, 0",
    ),
    (
        reached(VECTOR, -9),
        "of a vector",
        "values[-9] is out of bounds: values has shape (6,); in block (0, 0, 0), thread (0",
    ),
    (
        reached(MATRIX, 5),
        "of a matrix",
        "table[0, 5] is out of bounds along axis 1: table has shape (9, 5); in block (0, 0, 0)",
    ),
    (reached(SHARED, 8), "of shared memory", f"tile[8] is out of bounds: tile has shape (8,); {FIRST}. {WAY_OUT}"),
    (
        reached(SHARED_PAIR, 4),
        "of two axes",
        "pair[4, 1] is out of bounds along axis 0: pair has shape (4, 2); in block",
    ),
    (reached(LOCAL, 3), "of a local array", f"mine[3] is out of bounds: mine has shape (3,); {FIRST}"),
    (reached(ATOMIC, 7), "by an atomic", f"values[7] is out of bounds: values has shape (6,); {FIRST}"),
    (reached(DEVICE, 10), "in the device function", f"values[10] is out of bounds: values has shape (6,); {FIRST}"),
    (reached(VIEW, 5), "of a view", f"row[5] is out of bounds: row has shape (5,); {FIRST}"),
    (reached(RAISED, 0), "raised", f"raise ValueError('no such thing'): {FIRST}"),
    (reached(ASSERTED, 0), "asserted", "assert place > 0"),
    (
        lambda: meet[1, 64](False, OUT),
        "in a branch",
        f"cuda.syncthreads() was reached by 20 of the 64 live threads of block (0, 0, 0). {BARRIER_WAY_OUT}",
    ),
    (
        lambda: meet[1, 64](True, OUT),
        "in a loop",
        f"cuda.syncthreads() was reached by 32 of the 64 live threads of block (0, 0, 0). {BARRIER_WAY_OUT}",
    ),
    (
        lambda: half_a_warp[1, 64](OUT),
        "half a warp",
        "cuda.shfl_down_sync() names 32 live lanes of the warp in its mask, and 16 of them are here; in block "
        "(0, 0, 0), thread (0, 0, 0). On a device this hangs or gives garbage. Name the lanes that take this path, "
        "or move the call out of the branch",
    ),
    (
        lambda: too_few_named[1, 64](OUT),
        "too few named",
        "cuda.syncwarp() is called with the mask 0x000000ff, which does not name the calling lane; in block "
        "(0, 0, 0), thread (8, 0, 0). A mask names every lane that takes part: 0xffffffff for the whole warp",
    ),
    (
        lambda: different_masks[1, 32](OUT),
        "different masks",
        "cuda.shfl_sync() is called with the mask 0xffffffff, which names lane 0, and that lane calls it with "
        "0x0000ffff; in block (0, 0, 0), thread (16, 0, 0). All lanes that take part must have the same mask",
    ),
    (
        lambda: some_blocks[5, 8](OUT),
        "of some blocks",
        f"{GRID_SYNC}3 of the 5 blocks of the grid; block (0, 0, 0) ended",
    ),
    (lambda: some_threads[5, 8](OUT), "of some threads", f"{GRID_SYNC}6 of the 8 live threads of block (0, 0, 0)"),
    (
        lambda: fewer_rounds[5, 8](OUT),
        "of fewer rounds",
        f"{GRID_SYNC}4 of the 5 blocks of the grid; block (2, 0, 0) ended",
    ),
    (
        lambda: gone_before[5, 8](OUT),
        "of gone before",
        f"{GRID_SYNC}4 of the 5 blocks of the grid; block (4, 0, 0) ended",
    ),
]
MODES: dict[str, dict[str, Any]] = {"compiled": {"threads": 1}, "step": {"step": True}, "check": {"check": True}}


@pytest.mark.parametrize("mode", widely(MODES, first=2))
@pytest.mark.parametrize(("launch", "mark", "message"), FAULTS, ids=[f"{number}" for number in range(len(FAULTS))])
def test_a_fault_is_told_alike_in_every_mode(launch: Any, mark: str, message: str, mode: str) -> None:
    with options(**MODES[mode]):
        assert told(launch, mark=mark).startswith(message)


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
def too_much_shared(A, out):  # type: ignore[no-untyped-def]
    small = cuda.shared.array(8, float32)
    large = cuda.shared.array((128, 97), float32)  # the largest
    large[0, 0] = small[0]
    cuda.syncthreads()
    out[0] = large[0, 0]


@cuda.jit
def tries(A, out):  # type: ignore[no-untyped-def]
    try:  # try
        out[0] = 1
    except ValueError:
        out[0] = 2


@cuda.jit
def no_types(A, out):  # type: ignore[no-untyped-def]
    out[0] = A.reshape_it()  # no such method


@pytest.mark.parametrize(
    ("kernel", "mark", "message"),
    [
        (
            too_much_shared,
            "the largest",
            "'too_much_shared' declares 49,696 bytes of shared memory for each block; 49,152 (48 KB) is what every "
            "device has. Use smaller tiles, or a smaller dtype",
        ),
        (tries, "try", "try is not supported by the emulator inside a kernel"),
        (
            no_types,
            "no such method",
            "Numba finds no types for this: Unknown attribute 'reshape_it' of type array(float32, 2d, C)",
        ),
    ],
)
def test_what_cannot_be_compiled(kernel: Any, mark: str, message: str) -> None:
    launch = kernel[1, 32]
    assert told(launch, np.zeros((4, 4), np.float32), np.zeros(32, np.float32), mark=mark) == message
