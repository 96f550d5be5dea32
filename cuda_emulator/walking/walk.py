"""Walk through one block of a launch, statement by statement.

    walk_block      runs a Block and returns its Walk
    _Walker         the threads of the block, their order, and what they do at each stop
    WalkNamespace   the module `cuda` for them

The threads of a group go on together, the ones that are earliest in the program first (threads.py). By default the
whole block is one group; `groups` may give each barrier's phase another order, like one warp that runs ahead of the
others until it has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Sequence
from dataclasses import dataclass
from types import CodeType, GeneratorType
from typing import Any

import numpy as np

from ..compiler.reading.source import FunctionSource
from ..errors import KernelError
from ..intrinsics import GRID_BARRIER
from ..runtime.limits import SHARED_BYTES
from ..stepping import step_numbers
from ..stepping.loading import loader
from ..stepping.step_memory import Checked
from ..stepping.step_namespace import LAST, Dim3, Namespace, Site, dim3_at
from ..stepping.step_numbers import plain
from ..stepping.step_warps import WARP
from ..stepping.waiting_threads import collective, frames, meet_at_barrier, meet_in_warps
from .marks import Plan
from .memory import Memory
from .record import Access, Step, Walk
from .rewriting import compile_walk
from .threads import Frame, WalkThread

MOST_STOPS = 600_000
"""Stops of all threads together, after which a walk is cut: about three seconds."""

Groups = Callable[[int], list[list[int]]]
"""phase -> the threads' numbers in groups; a group runs until all its threads wait, then the next one."""


class _Cut(Exception):
    """The walk is too long."""


@dataclass(frozen=True)
class Block:
    """One block of a launch.

    source: of the kernel; names: its parameters
    grid, block: blocks and threads along x, y, z; number: of the block, x fastest
    dynamic_bytes: of shared memory; most_shared: the most that it may have, with its shared arrays
    """

    source: FunctionSource
    names: Sequence[str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    number: int = 0
    dynamic_bytes: int = 0
    most_shared: int = SHARED_BYTES

    @property
    def threads(self) -> int:
        """The number of its threads."""
        x, y, z = self.block
        return x * y * z


def walk_block(
    block: Block,
    arguments: Sequence[Any],
    *,
    removed: frozenset[tuple[str, int]] = frozenset(),
    groups: Groups | None = None,
    watched: Container[int] | None = None,
    most: int = MOST_STOPS,
) -> Walk:
    """Run one block of a kernel, and record it.

    arguments: the values of its parameters; the block changes the arrays in place
    removed: (file, line) of barriers that are taken away
    groups: the order of the threads in each phase; None for all together
    watched: the threads whose reads and variables are recorded, None for all; writes are recorded of every thread
    most: stops of all threads after which the walk is cut
    Raises KernelError for a kernel that cannot be walked through. A mistake that shows while it runs is in the walk.
    """
    walker = _Walker(block, arguments, removed, watched, most)
    everybody = [list(range(block.threads))]
    with np.errstate(all="ignore"):
        try:
            walker.run(groups or (lambda phase: everybody))
        except _Cut:
            walker.walk.cut = True
        except KernelError as error:
            walker.walk.fault, walker.walk.fault_line = error.sentence, error.line or 0
        finally:
            walker.close()
    walker.memory.finish()
    return walker.walk


class WalkNamespace(Namespace):
    """`cuda` inside a kernel that is walked through."""

    def __init__(self, plan: Plan, *launch: Any) -> None:
        super().__init__(*launch)
        self.plan = plan
        self.arrays: Memory | None = None

    def error(self, message: str) -> KernelError:
        """A KernelError that points to the statement where the running thread is."""
        mark = self.plan.marks[self.running.place]  # type: ignore[attr-defined]
        return KernelError(message, filename=mark.file, line=mark.line, kernel=self._kernel)

    def called(
        self, mark: int, function: Callable[..., Any], *values: Any, **keywords: Any
    ) -> Generator[Any, Any, Any]:
        """Call a device function; `mark` is its "call" mark."""
        thread: Any = self.running
        here = thread.frames[-1]
        thread.frames.append(Frame(prefix=here.key(self.plan.marks[mark], mark)))
        result = function(*values, **keywords)
        if isinstance(result, GeneratorType):
            result = yield from result
        self.running.frames.pop()  # type: ignore[attr-defined]
        yield mark + 1
        return result

    def _shared_array(self, site: Site, shape: Any, dtype: Any) -> np.ndarray:
        array = super()._shared_array(site, shape, dtype)
        if self.arrays is not None and shape not in (0, (0,)):
            self.arrays.shared(self.plan.declared.get(site, "shared"), array)
        return array


class _Walker:
    """One block on its walk."""

    def __init__(
        self,
        block: Block,
        arguments: Sequence[Any],
        removed: frozenset[tuple[str, int]],
        watched: Container[int] | None,
        most: int,
    ) -> None:
        source, place = block.source, dim3_at(block.number, block.grid)
        self.source, self.plan = source, Plan(removed)
        shape = Dim3(*block.grid), Dim3(*block.block), block.dynamic_bytes
        self.cuda = WalkNamespace(self.plan, *shape, True, source.name, block.most_shared)
        self.memory = self.cuda.arrays = Memory(block.names, arguments, self.plan)
        self.left, self.phase = most, 0
        infos = self.memory.infos
        self.walk = Walk(
            source.name, block.grid, block.block, block.number, (place.x, place.y, place.z), self.plan.marks, infos
        )
        function = loader(self.cuda, step_numbers, self._compiled)(source, True)
        values = [plain(argument) for argument in arguments]
        self.threads = [
            WalkThread(
                i,
                dim3_at(i, block.block),
                place,
                generator=function(*values),
                watched=watched is None or i in watched,
            )
            for i in range(block.threads)
        ]

    def _compiled(self, source: FunctionSource, is_kernel: bool) -> CodeType:
        """The rewritten function, whose source is part of the walk."""
        self.walk.sources.append((source.filename, source.first_line, source.text.rstrip("\n").split("\n")))
        return compile_walk(source, is_kernel, self.plan)

    def close(self) -> None:
        """End all threads."""
        for thread in self.threads:
            assert thread.generator is not None
            thread.generator.close()

    # ---- who goes on

    def run(self, groups: Groups) -> None:
        """Run the block to its end."""
        for thread in self.threads:
            self._advance(thread, None)
        while True:
            for numbers in groups(self.phase):
                self._run_group([self.threads[number] for number in numbers])
            released: Any = meet_in_warps(self._waiting(), self.source)
            if not released:
                released = meet_at_barrier(self._waiting(), self.source, "error")
                if released:
                    self._passed(released)
            if not released:
                return
            for thread in released:
                self._advance(thread, thread.answer)

    def _waiting(self) -> list[Any]:
        return list(self.threads)

    def _passed(self, released: Sequence[Any]) -> None:
        """Note that the block has met at a barrier."""
        if collective(released[0]) == GRID_BARRIER and np.prod(self.walk.grid) > 1:
            raise self._at(
                "the blocks of this launch wait for each other (cuda.cg.this_grid().sync()), and a walk shows one "
                "block alone: launch it with one block",
                released[0],
            )
        self.phase += 1
        mark = self.plan.marks[released[0].place]
        if (mark.file, mark.line) not in self.walk.barriers:
            self.walk.barriers.append((mark.file, mark.line))

    def _at(self, message: str, thread: WalkThread) -> KernelError:
        mark = self.plan.marks[thread.place]
        return KernelError(message, filename=mark.file, line=mark.line, kernel=self.source.name)

    def _run_group(self, threads: list[WalkThread]) -> None:
        """Run some threads until each of them waits for a thread outside the group or has ended."""
        whole = len(threads) % WARP == 0 or len(threads) == len(self.threads)
        while True:
            here: dict[Any, list[WalkThread]] = {}
            for thread in threads:
                if thread.key is not None:
                    here.setdefault(thread.key, []).append(thread)
            while here:
                group = here.pop(min(here))
                for thread, answer in zip(group, self._answers(group), strict=True):
                    self._advance(thread, answer)
                    if thread.key is not None:
                        here.setdefault(thread.key, []).append(thread)
            released = meet_in_warps(list(threads), self.source) if whole else []
            if not released:
                return
            for lane in released:
                self._advance(lane, lane.answer)  # type: ignore[arg-type]

    def _advance(self, thread: WalkThread, answer: Any) -> None:
        """Let a thread go on with the answer to its last request, up to its next stop."""
        marks, generator, cuda = self.plan.marks, thread.generator, self.cuda
        assert generator is not None
        if thread.watched and thread.request is not None and thread.step is not None and answer is not None:
            value = thread.request[2] if len(thread.request) > 2 else thread.request[-1]
            thread.step.results[thread.linear] = value, answer
        cuda.thread, thread.request, thread.answer, thread.key = thread, None, None, None
        self.left -= 1
        if self.left < 0:
            raise _Cut
        try:
            while True:
                request: Any = generator.send(answer)
                answer = None
                if type(request) is int:
                    number, mark, frame = request, marks[request], thread.frames[-1]
                    if mark.kind == "enter":
                        frame.enter(number)
                        if mark.text == "while":
                            continue
                    elif mark.kind == "round":
                        first = frame.next_round(mark.statement) == 0
                        if first and marks[mark.statement].text == "for":  # the step has begun before the loop
                            continue
                    thread.place = number
                    if thread.watched and thread.step is not None:
                        self._note_changes(thread, frame)
                elif type(request[0]) is int:
                    number = thread.place = request[0]
                    mark, frame = marks[number], thread.frames[-1]
                else:
                    thread.request = request
                    if thread.step is not None:
                        thread.step.collective = request[0]
                    return
                thread.key, thread.stop = frame.key(mark, number), request
                return
        except StopIteration as end:
            thread.left = LAST if end.value is None else end.value
        except KernelError:
            raise
        except Exception as problem:
            unassigned = cuda.unassigned(problem)
            if unassigned is not None:
                raise unassigned from problem
            raise self._at(f"{type(problem).__name__}: {problem}; in {thread}", thread) from problem
        finally:
            cuda.thread = None

    # ---- what happens at a stop

    def _answers(self, group: list[WalkThread]) -> list[Any]:
        """Do what the threads of a group have stopped for, and return the answer for each."""
        if type(group[0].stop) is int:
            mark = self.plan.marks[group[0].stop]
            step = Step(mark.statement, [], len(group[0].frames) - 1, self.phase)
            for thread in group:
                thread.step = step
            step.threads = sorted(thread.linear for thread in group)
            self.walk.steps.append(step)
            return [None] * len(group)
        return [self._access(thread) for thread in group]

    def _access(self, thread: WalkThread) -> Any:
        """Read or write an element for a thread, and record it."""
        number, cell, *rest = thread.stop
        kind, self.cuda.thread = self.plan.marks[number].kind, thread
        try:
            if kind == "read":
                index, answer = rest[0], cell[rest[0]]
                value = answer
            elif kind == "write":
                index, value = rest
                cell[index] = value
                answer = None
            else:
                operation, *values = rest
                answer = operation(cell, *values)
                index = values[0] if operation != self.cuda.atomic.compare_and_swap else 0
                value = None
            if (thread.watched or kind != "read") and isinstance(cell, Checked) and not isinstance(value, np.ndarray):
                # A written value as the array holds it; the new value after an atomic operation.
                held = value if kind == "read" else plain(cell.array[index])
                self._record(thread, number, cell, index, held)
            return answer
        finally:
            self.cuda.thread = None

    def _record(self, thread: WalkThread, number: int, cell: Checked, index: Any, value: Any) -> None:
        array, place = self.memory.find(cell.array, cell.name, index, thread, self.cuda)
        assert thread.step is not None
        for access in reversed(thread.step.accesses):
            if access.mark == number and access.array == array:
                break
        else:
            access = Access(number, self.plan.marks[number].kind, array)  # type: ignore[arg-type]
            thread.step.accesses.append(access)
        access.threads.append(thread.linear)
        access.places.append(place)
        access.values.append(value)

    def _note_changes(self, thread: WalkThread, frame: Frame) -> None:
        """Record the variables that the thread's last step has assigned, or the parameters of a function's call."""
        step, depth = thread.step, len(thread.frames) - 1
        assert step is not None
        assigned = self.plan.marks[step.mark].assigns
        if frame.running is not None and (not assigned or step.depth != depth):
            return
        if frame.running is None:
            *_, frame.running = frames(thread)
            assert frame.running is not None
            names = tuple(name for name in frame.running.f_locals if not name.startswith("__"))
        else:
            names = assigned
        values = frame.running.f_locals
        changes = step.changes.setdefault(thread.linear, [])
        for name in names:
            if name in values:
                changes.append((depth, name, values[name]))
