"""Products of whole numbers of eight bits: every rung of stage 3's integer ladder on shapes of the known networks.

Each is measured in turns with stage 3's float32 product of the same shape on as many threads, its fastest rung. The
factors are the same whole numbers for both, and a rung whose sums are not exact is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from shared.bench.kinds.products import Product
from shared.bench.measuring.compared_candidates import CallLimit, Effort, take_turns
from shared.bench.measuring.rows import NOT_TIMED, BenchRow, product_bytes
from shared.bench.measuring.timing import aligned
from shared.contract import Stage, load_part

PRODUCTS = (
    Product("LeNet-5, dense", "nn", 64, 400, 120),
    Product("LeNet-5, dense", "nn", 256, 400, 120),
    Product("LeNet-5, convolution", "nn", 6400, 150, 16),
    Product("Fashion CNN, dense", "nn", 64, 3200, 256),
    Product("Fashion CNN, dense", "nn", 256, 3200, 256),
    Product("Fashion CNN, convolution", "nn", 7744, 576, 128),
    Product("ab", "nn", 512, 512, 512),
    Product("ab", "nn", 1024, 1024, 1024),
)
"""(M, K, N): of a dense layer batch, inputs and outputs; of a convolution the places of a batch of 64, the numbers of a
window and the filters."""

EFFORT = Effort(repeats=15, group_limit=15.0, minimum_sample=0.0005)
"""The samples are short, so that most of them end before another program is given the core."""

FLOAT_ALONE, FLOAT = ("stage3_c", "float32 packed"), ("stage3_c", "float32 threads")


def integer_rows(
    stages: Sequence[Stage],
    *,
    products: Sequence[Product] = PRODUCTS,
    effort: Effort = EFFORT,
    call_limit: float = 0.05,
) -> Iterator[BenchRow]:
    """Time every product on every rung; no rows without stage 3.

    call_limit: seconds; a rung whose next call is expected to take longer is skipped, with that reason in its row
    The float32 products have rows of their own. The ratio is the time as a multiple of theirs: of the rung packed for a
    rung on one thread, and of the rung threads for the last. The peak is that of the fastest instruction for whole
    numbers.
    """
    limit = CallLimit(call_limit)
    for stage in (stage for stage in stages if stage.name == FLOAT[0]):
        for product in products:
            yield from _product_rows(stage, product, effort, limit)


def _product_rows(stage: Stage, product: Product, effort: Effort, limit: CallLimit) -> Iterator[BenchRow]:
    m, k, n = product.m, product.k, product.n
    rng = np.random.default_rng(0)
    left, right, sums = aligned((m, k), "int8"), aligned((k, n), "int8"), aligned((m, n), "int32")
    for numbers in (left, right):
        numbers[...] = rng.integers(-127, 128, numbers.shape)
    floats: list[Any] = [stage.arrays.asarray(numbers, "float32") for numbers in (left, right)]
    exact = left.astype(np.float64) @ right.astype(np.float64)
    into = {"out": stage.arrays.asarray(aligned((m, n), "float32"))}
    calls: dict[tuple[str, str], Callable[[], object]] = {
        FLOAT_ALONE: partial(stage.matmul.LADDER["packed"], *floats, **into),
        FLOAT: partial(stage.matmul.LADDER["threads"], *floats, **into),
    }
    ladder = load_part(stage.name, "eight_bits").LADDER
    skipped: dict[str, str] = {}
    for rung, multiply in ladder.items():
        if reason := limit.reason(rung, m * k * n):
            skipped[rung] = reason
            continue
        sums.fill(-1)
        if np.array_equal(multiply(left, right, out=sums), exact):
            calls[stage.name, rung] = partial(multiply, left, right, out=sums)
        else:
            skipped[rung] = f"{rung}: its sums are not exact{NOT_TIMED}"
    threads = {key: effort.most_threads if key[1].endswith("threads") else 1 for key in calls}
    turns = take_turns(calls, [stage], effort, threads=threads, peak_in="int8")
    shape, flops = (m, k, n), 2 * m * k * n
    for key in (FLOAT_ALONE, FLOAT):
        columns = turns.columns(key, reference=None, label="")
        columns |= {"variant": key[1], "bytes": product_bytes(m, k, n, "float32"), "peak": None}
        yield BenchRow("integer", stage.name, product.name, "float32", shape, flops, **columns)
    for rung in ladder:
        key = (stage.name, rung)
        if key in turns.measured:
            limit.note(rung, m * k * n, turns.measured[key].median)
        reference = FLOAT if rung == "threads" else FLOAT_ALONE
        columns = turns.columns(key, reference=reference, label=f"stage 3 {reference[1]}")
        columns |= {"skipped": skipped.get(rung), "bytes": left.nbytes + right.nbytes + sums.nbytes, "variant": rung}
        yield BenchRow("integer", stage.name, product.name, "int8", shape, flops, **columns)
