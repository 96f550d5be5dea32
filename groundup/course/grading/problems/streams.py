"""Two streams, and what the emulator's record of them says: for the functions that send data while the device computes.

epochs          runs some epochs by `Orders` of stage 4, and returns the orders that the kernels of each have read
in_order        the check that no copy, kernel or change of the host's memory is without an order, and none waits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cuda_emulator.inspection import poison_value, stream_record
from groundup.course.checks.check import Tally, Wrong
from groundup.course.grading.calling.kernel_launches import backend, module

FILLED_TOO_EARLY = (
    "a copy is still reading the host's memory when it is filled anew: wait for the stream of the copies before, "
    "and copy from self._pinned, which nobody else changes"
)
NOT_WAITED = (
    "the kernels' stream does not wait for the stream of the copies: before an array is used that was sent there, the "
    "host has to wait for that stream"
)
IN_USE = "the copy goes into the array that this epoch's kernels still read: the other one is 1 - self.current"
STANDS_STILL = (
    "here the host waits for the kernels: a copy without a stream, or a wait for the whole device, has to wait for all "
    "that was launched. Only self._copies may be waited for"
)
AT_ONCE = (
    "the host waits for the copy that it has just ordered, so nothing goes on meanwhile: wait before the next one, "
    "when the memory is needed again"
)
FROM_ELSEWHERE = (
    "the copy comes from memory that the system may move: put the order into self._pinned, and copy from there"
)
SENT_TWICE = "an order that was sent ahead is sent again: self._ahead has to say what was sent, until it is in use"

REFUSED = "prefetch raises ValueError for such an order: call it first, and change current and _begun after it"


class Epochs:
    """`Orders` of stage 4 with two streams of its own: one for its copies, and one for the kernels. Where `streams` is
    False, it has none, as on the emulator, where a copy is over when its call returns."""

    def __init__(self, count: int, streams: bool = True) -> None:
        self.cuda = module("backend").cuda
        self.orders = module("plans.resident_host").Orders(count)
        self.compute = self.cuda.stream()
        self.orders._copies = self.cuda.stream() if streams else 0
        self.pinned = self.orders._pinned
        self.gather = module("kernels.gather").gather_labels
        self.rows = self.cuda.to_device(np.arange(count, dtype=np.int32))
        self.position = self.cuda.to_device(np.zeros(1, np.int64))

    def launch(self) -> Any:
        """A kernel in its own stream that reads the order of this epoch; the array that it writes."""
        out = self.cuda.to_device(np.full(len(self.rows), -1, np.int32))
        self.gather[1, 32, self.compute](self.orders.now, self.rows, self.position, out)
        return out

    def read(self, out: Any) -> np.ndarray:
        """What a kernel has written; waits for the kernels alone."""
        found: np.ndarray = out.copy_to_host(stream=self.compute)
        self.compute.synchronize()
        return found


@contextmanager
def having_streams(streams: bool) -> Iterator[None]:
    """In this block stage 4 says itself whether there are streams: a method may ask that, or look at self._copies."""
    graphs: Any = module("plans.cuda_graphs")
    before = graphs.available
    graphs.available = lambda: streams
    try:
        yield
    finally:
        graphs.available = before


def epochs(orders: np.ndarray, streams: bool, ahead: bool) -> dict[str, np.ndarray]:
    """The orders that the kernels of each epoch have read: its first ones, and those after the next order was sent.

    orders: (epochs, samples); ahead: whether an order is sent before the epoch begins; before the last epoch begins,
        another one than its own is sent
    """
    run, found = Epochs(orders.shape[1], streams), {}
    with having_streams(streams):
        for number, order in enumerate(orders, start=1):
            if ahead and number == len(orders):
                run.orders.prefetch(order[::-1].copy())
            run.orders.begin(order.copy())
            run.orders.check_steps(0, 1, 1, 1)
            first = run.launch()
            if ahead and number < len(orders):
                run.orders.prefetch(orders[number].copy())
            last = run.launch()
            found[f"epoch {number}"], found[f"epoch {number}, last steps"] = run.read(first), run.read(last)
    return found


def unsent(samples: int) -> np.ndarray:
    """What an array of the device holds into which nothing was copied, on the emulator."""
    return np.full(samples, poison_value(np.dtype(np.int32)))


def in_order(function: str) -> Any:
    """The check `memory`: nothing races, nothing is sent twice, and the host waits for no kernel.

    function: the method that is graded, "prefetch" or "begin"
    """

    def check(tally: Tally) -> None:
        if backend() != "emulator":
            tally.note(
                "the order of copies and kernels was not recorded: only the emulator can (GROUNDUP_CUDA=emulator)"
            )
            tally.holds(True, "a device does not tell the order")
            return
        rng = np.random.default_rng(4)
        first, second, third = (rng.permutation(9) for _ in range(3))
        tally.trying("copies of two epochs' orders beside kernels in another stream")
        with stream_record.recorded() as record, having_streams(True):
            run = Epochs(9)
            sent = [0]

            def called(name: str, order: np.ndarray) -> None:
                """Call a method with an array that the caller uses again at once, and judge what it waits for."""
                before, waits = len(record.operations), len(record.host_waits)
                own = order.copy()
                getattr(run.orders, name)(own)
                own[:] = 0
                sent[0] += len(record.operations) - before
                for operation in record.operations[before:]:
                    pinned = operation.host and np.may_share_memory(operation.host[0], run.pinned)
                    tally.holds(
                        bool(pinned), f"{name} copies from other memory than self._pinned", cause=FROM_ELSEWHERE
                    )
                if name == function:
                    _judge_waits(tally, record, run, before, waits, name)

            called("begin", first)
            out = run.launch()
            called("prefetch", second)
            run.launch()
            run.read(out)
            called("begin", second)
            out = run.launch()
            called("prefetch", third)
            called("prefetch", first)  # the program has changed its mind
            run.read(out)
            called("begin", first)
            run.read(run.launch())
        for race in record.races:
            raise Wrong(race, cause=_cause(race, function))
        tally.holds(True, "no race")
        tally.holds(
            sent[0] == 4,
            "the orders of four calls were sent",
            expected="4 copies",
            got=f"{sent[0]} copies",
            cause=SENT_TWICE if sent[0] > 4 else "",
        )
        if function == "begin":
            _judge_refusal(tally)

    return check


def _judge_refusal(tally: Tally) -> None:
    """That an order which is none raises ValueError, and begins no epoch."""
    tally.trying("begin of an order that visits sample 0 twice")
    run = Epochs(3)
    with having_streams(True):
        try:
            run.orders.begin(np.array([0, 0, 1]))
        except ValueError:
            begun = run.orders._begun or run.orders.current != 0
            tally.holds(not begun, "begin refuses an order, and has begun an epoch all the same", cause=REFUSED)
        else:
            raise Wrong("begin takes an order that visits sample 0 twice", expected="a ValueError", cause=REFUSED)


def _judge_waits(tally: Tally, record: Any, run: Epochs, before: int, waits: int, name: str) -> None:
    for operations, stream in record.host_waits[waits:]:
        tally.holds(
            stream is run.orders._copies,
            f"{name} waits for {'the whole device' if stream is None else 'another stream'}",
            cause=STANDS_STILL,
        )
        tally.holds(name == "begin" or operations == before, f"{name} waits for its own copy", cause=AT_ONCE)


def _cause(race: str, function: str) -> str:
    if "the host changes" in race:
        return FILLED_TOO_EARLY
    return NOT_WAITED if race.startswith("a copy") and function == "begin" else IN_USE


def orders_of(rng: np.random.Generator, size: tuple[int, int, bool, bool]) -> tuple[np.ndarray, bool, bool]:
    """Random orders of so many epochs over so many samples; whether there are streams, and orders are sent ahead."""
    count, samples, streams, ahead = size
    return np.array([rng.permutation(samples) for _ in range(count)]), streams, ahead


def expected(orders: np.ndarray, streams: bool, ahead: bool) -> dict[str, Sequence[int]]:
    """What the kernels should read."""
    names = ("", ", last steps")
    return {f"epoch {i}{name}": order for i, order in enumerate(orders, start=1) for name in names}
