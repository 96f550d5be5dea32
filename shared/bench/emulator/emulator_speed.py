"""The speed of the emulator: the numbers that its page promises, measured in one run.

    python -m shared.bench.emulator.emulator_speed
    python -m shared.bench.emulator.emulator_speed --json emulator.json

It stands here and is no part of `groundup bench`: bench compares the stages of the network, this one program with
itself and with Numba's simulator. All times are a CPU's, and say nothing about a GPU: not how fast a kernel is there,
and not which of two kernels is the faster.

    simulator   a tiled product by Numba's simulator, and the same source at the same size by the emulator
    product     a large tiled product: without bounds checks and with them, on one thread and on two
    launch      a kernel with next to nothing to do
    ready       a new process: compile a kernel, or find it in the cache on disk

How it is timed is told in shared/bench/measuring/timing.py. Every product is compared with NumPy's. The last two are
timed in processes of their own, the simulator too: an environment variable chooses it before Numba is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.registry import cpu_target

from shared.bench.emulator.emulator_speed_tables import LABEL, QUICK, Row, Sizes, show
from shared.bench.measuring.timing import Rounds, measure, summarise
from shared.machine import processes
from shared.machine.environment import environment
from shared.machine.hardware import usable_cores
from shared.machine.results import write_json

SCHEMA = 1


# ---- in this process


def kernels() -> Any:
    """The module emulator_speed_kernels, with the emulator as its `cuda`."""
    from cuda_emulator import install, uninstall

    install()
    try:
        from shared.bench.emulator import emulator_speed_kernels
    finally:
        uninstall()
    return emulator_speed_kernels


def square(size: int) -> np.ndarray:
    """A matrix of small whole numbers: their products are exact in float32 up to sizes of a million."""
    return np.random.default_rng(size).integers(-4, 5, (size, size)).astype(np.float32)


class Product:
    """a @ b of square matrices by the tiled kernel. Calling it launches.

    cuda: the namespace that has to_device; kernel: from emulator_speed_kernels, loaded with that namespace
    """

    def __init__(self, cuda: Any, kernel: Any, size: int, tile: int) -> None:
        a, b = square(size), square(size).T.copy()
        self.expected = a @ b
        self.arrays = [cuda.to_device(array) for array in (a, b, np.full((size, size), np.nan, np.float32))]
        blocks = -(-size // tile)
        self.configured = kernel[(blocks, blocks), (tile, tile)]
        self.multiply_adds = size**3

    def __call__(self) -> None:
        self.configured(*self.arrays)

    def check(self) -> None:
        """Raise RuntimeError if the last launch did not leave NumPy's product."""
        if not np.array_equal(self.arrays[2].copy_to_host(), self.expected):
            raise RuntimeError("the timed kernel did not compute a @ b: its times mean nothing")


def emulated(product: Product, bounds: bool, threads: int) -> Callable[[], None]:
    """The product with these settings, checked once."""
    from cuda_emulator import options

    product.arrays[2].copy_to_device(np.full_like(product.expected, np.nan))

    def call() -> None:
        with options(bounds=bounds, threads=threads, check=False, step=False):
            product()

    call()
    product.check()
    return call


def product_rows(sizes: Sizes) -> Iterator[Row]:
    """The large product in four ways, in turns."""
    from cuda_emulator import cuda

    product = Product(cuda, kernels().tiled_matmul(sizes.tile), sizes.product, sizes.tile)
    both = usable_cores() >= 2
    ways = {(bounds, threads): emulated(product, bounds, threads) for bounds in (False, True) for threads in (1, 2)}
    if not both:
        ways = {way: call for way, call in ways.items() if way[1] == 1}
    measured = measure(ways, repeats=sizes.repeats, threaded=[way for way in ways if way[1] == 2])
    for bounds in (False, True):
        for threads in (1, 2):
            name = f"{'checked' if bounds else 'unchecked'}, {threads} thread{'s' if threads > 1 else ''}"
            one, mine = measured[bounds, 1], measured.get((bounds, threads))
            row = partial(Row, "product", name, mine, product.multiply_adds, threads, bounds)
            if threads == 1:
                yield row(target="1.5 G" if bounds else "5 G")
            elif mine is None:
                yield row(skipped="this process may use one core only")
            else:
                yield row(reference="1 thread", ratio=one.median / mine.median, target="" if bounds else "1.7 x")


def launch_row(sizes: Sizes) -> Row:
    """One block of 32 threads, three device arrays, with bounds checks: as learners launch."""
    from cuda_emulator import cuda, options

    a = cuda.to_device(np.arange(32, dtype=np.float32))
    c = cuda.device_array_like(a)
    configured = kernels().add[1, 32]
    with options(bounds=True, check=False, step=False):
        measured = measure({"launch": lambda: configured(a, a, c)}, repeats=sizes.repeats, rounds=Rounds(warmup=3))
    if not np.array_equal(c.copy_to_host(), 2 * np.arange(32, dtype=np.float32)):
        raise RuntimeError("the timed kernel did not compute a + b: its times mean nothing")
    return Row("launch", "checked", measured["launch"], target="60 µs")


# ---- in processes of their own


def child(part: str, size: int, **variables: str) -> Any:
    """What another process measured: the JSON that `main(["--child", part, ...])` prints there."""
    ours = {name: value for name, value in os.environ.items() if name not in ("GROUNDUP_EMULATOR", "GROUNDUP_THREADS")}
    command = processes.python("-m", __spec__.name if __spec__ else __name__, "--child", part, "--size", str(size))
    done = processes.run(command, None, variables=processes.finding_our_packages(ours | variables))
    if done.code != 0:
        said = done.last_error or done.failure or f"exit code {done.code}"
        raise RuntimeError(f"the process that measures {part!r} failed: {said}")
    return json.loads(done.output.splitlines()[-1])


def simulate(size: int) -> list[float]:
    """In a process with NUMBA_ENABLE_CUDASIM=1: seconds of each of three products, after one that is not counted."""
    from numba import cuda

    from shared.bench.emulator import emulator_speed_kernels

    product = Product(cuda, emulator_speed_kernels.tiled_matmul(16), size, 16)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - start)
    product.check()
    return seconds[1:]


def get_ready(size: int) -> dict[str, float]:
    """In a new process, after the imports: seconds of Numba's own start, then until a kernel has run."""
    from cuda_emulator import cuda
    from cuda_emulator.inspection import compile_kernel  # noqa: F401 - or the first launch would import it

    module = kernels()
    product = Product(cuda, module.tiled_matmul(16), size, 16)
    begin = time.perf_counter()
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    started = time.perf_counter()
    product()
    ran = time.perf_counter()
    product.check()
    return {"start": started - begin, "kernel": ran - started}


def simulator_rows(sizes: Sizes) -> Iterator[Row]:
    """The times of one kernel at one size, by the emulator and by Numba's simulator."""
    from cuda_emulator import cuda

    product = Product(cuda, kernels().tiled_matmul(16), sizes.simulated, 16)
    mine = measure({"emulator": emulated(product, True, 1)}, repeats=sizes.repeats)["emulator"]
    try:
        theirs = summarise(child("simulator", sizes.simulated, NUMBA_ENABLE_CUDASIM="1"))
    except RuntimeError as reason:  # a Numba that comes without its simulator
        yield Row("simulator", "Numba's simulator", None, product.multiply_adds, skipped=str(reason))
        yield Row("simulator", "the emulator, checked", mine, product.multiply_adds)
        return
    yield Row("simulator", "Numba's simulator", theirs, product.multiply_adds)
    yield Row(
        *("simulator", "the emulator, checked", mine, product.multiply_adds),
        reference="Numba's simulator",
        ratio=theirs.median / mine.median,
        target="1,000 x",
    )


def ready_rows(sizes: Sizes) -> Iterator[Row]:
    """Each round has an empty cache folder: the first process compiles, the second finds what the first left."""
    compiled, found = [], []
    for _ in range(sizes.processes):
        with tempfile.TemporaryDirectory() as folder:
            compiled.append(child("ready", 16, GROUNDUP_CACHE=folder))
            found.append(child("ready", 16, GROUNDUP_CACHE=folder))
    starts = summarise([each["start"] for each in found])
    yield Row("ready", "once: Numba's own start", starts)
    yield Row("ready", "compiled", summarise([each["kernel"] for each in compiled]))
    yield Row("ready", "from the cache on disk", summarise([each["kernel"] for each in found]), target="50 ms")


# ---- all of it


def measure_all(sizes: Sizes) -> list[Row]:
    """Every row, in the order of the module's docstring."""
    return [*simulator_rows(sizes), *product_rows(sizes), launch_row(sizes), *ready_rows(sizes)]


def document(rows: Sequence[Row], sizes: Sizes, facts: dict[str, Any]) -> dict[str, Any]:
    """What --json writes. facts: environment(), asked before the measurement."""
    return {
        "schema": SCHEMA,
        "kind": "groundup emulator speed",
        "label": LABEL,
        "environment": facts | {"numba": numba.__version__},
        "sizes": asdict(sizes),
        "rows": [row.as_dict() for row in rows],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write where --json names a file."""
    parser = argparse.ArgumentParser(prog="python -m shared.bench.emulator.emulator_speed", description=LABEL)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not how fast it is")
    parser.add_argument("--child", choices=("simulator", "ready"), help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=16, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        print(json.dumps({"simulator": simulate, "ready": get_ready}[given.child](given.size)))
        return
    sizes, facts = QUICK if given.quick else Sizes(), environment()
    rows = measure_all(sizes)
    show(rows, sizes, facts)
    if given.json:
        print(f"Written: {write_json(given.json, document(rows, sizes, facts))}")


if __name__ == "__main__":
    main()
