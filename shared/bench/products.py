"""The matrix products that a network of 784-128-10 spends its time in, and two large ones, against the libraries.

All contenders read the same two matrices and write into the same third one (`out=`), aligned as the strictest of them
likes it. Otherwise the comparison would be one of memory: whose operands still lie in the cache, whose result is a
fresh page that the system must clear first. A contender may copy what it was given into its own arrays only where it
cannot use NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shared.bench import pytorch
from shared.bench.gpu import NO_REFERENCE, on_gpu, waiter
from shared.bench.machine import flops_per_second, peak_call
from shared.bench.rows import BenchRow, product_bytes
from shared.bench.timing import aligned, measure, stage_dtypes, times_as_fast
from shared.contract import Stage, is_emulated
from shared.machine.environment import usable_cores


class Product(NamedTuple):
    """One product. form: nn is ab, tn is aᵀb with a (k, m), nt is abᵀ with b (n, k); (m, n) is the result's shape."""

    what: str
    form: str
    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """'xW 64x784x128': m, k and n in this order; 'ab 512³' where they are one."""
        square = self.m == self.k == self.n
        return f"{self.what} {self.m}³" if square else f"{self.what} {self.m}x{self.k}x{self.n}"


PRODUCTS = (
    Product("xW", "nn", 64, 784, 128),  # forward
    Product("xᵀg", "tn", 784, 64, 128),  # the gradient of the weights
    Product("gWᵀ", "nt", 64, 128, 784),  # the gradient of the input
    Product("ab", "nn", 512, 512, 512),
    Product("ab", "nn", 1024, 1024, 1024),
)

NUMPY, PYTORCH, PEAK = ("numpy", ""), ("pytorch", ""), ("", "peak")
METHODS = {"nn": "matmul", "tn": "matmul_tn", "nt": "matmul_nt"}


def product_rows(
    stages: Sequence[Stage],
    *,
    products: Sequence[Product] = PRODUCTS,
    dtype: str = "float32",
    repeats: int = 15,
    group_limit: float = 15.0,
    threads: int | None = None,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every product on every stage that computes in dtype, on NumPy and, where torch is given, on PyTorch.

    A stage's way is its `matmul`, `matmul_tn` or `matmul_nt`; of stage 3 also the packed rung, which is the same on
    one thread. The reference is NumPy's own call; what is emulated is set beside nothing. threads: as in `ladder_rows`.
    """
    threads = threads or usable_cores()
    able = [stage for stage in stages if dtype in stage_dtypes(stage)]
    for product in products:
        a, b, out = operands(product, dtype)
        candidates: dict[tuple[str, str], Callable[[], object]] = {NUMPY: _numpy(product.form, a, b, out)}
        for stage in able:
            candidates |= _of_stage(stage, product, dtype, a, b, out)
        if torch is not None:
            candidates[PYTORCH] = pytorch.product(torch, product.form, a, b, out)
        names = list(candidates)
        peak = peak_call(able, dtype)
        if peak:
            candidates[PEAK] = peak
        uses = {name: 1 if name[1] == "packed" else threads for name in names}
        threaded = {name for name, count in uses.items() if count > 1}
        waits = {stage.name: wait for stage in able if (wait := waiter(stage))}
        finish = {name: waits[name[0]] for name in names if name[0] in waits}
        measured = measure(candidates, repeats=repeats, limit=group_limit, threaded=threaded, finish=finish)
        roof = flops_per_second(peak, measured[PEAK]) if peak else None
        emulated = {stage.name for stage in able if is_emulated(stage.name)}
        no_core = emulated | {stage.name for stage in able if on_gpu(stage)}  # the peak is one of the CPU's cores
        for name in names:
            alone = name[0] in emulated
            yield BenchRow(
                "product",
                name[0],
                product.name,
                dtype,
                (product.m, product.k, product.n),
                2 * product.m * product.k * product.n,
                measured[name],
                NO_REFERENCE if alone else f"NumPy a @ b, {dtype}",
                None if alone else measured[name].median / measured[NUMPY].median,
                variant=name[1],
                bytes=product_bytes(product.m, product.k, product.n, dtype),
                threads=uses[name],
                peak=roof * uses[name] if roof and name[0] not in no_core else None,
                against={} if alone else times_as_fast(measured, name, {"numpy": NUMPY, "pytorch": PYTORCH}),
                emulated=alone,
            )


def operands(product: Product, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and out of this product, C-contiguous and each on a cache line; a and b are normal random numbers."""
    random = np.random.default_rng(0)
    m, k, n = product.m, product.k, product.n
    shapes = ((k, m) if product.form == "tn" else (m, k), (n, k) if product.form == "nt" else (k, n), (m, n))
    a, b, out = (aligned(shape, dtype) for shape in shapes)
    a[...], b[...] = random.standard_normal(a.shape), random.standard_normal(b.shape)
    return a, b, out


def _numpy(form: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    left, right = a.T if form == "tn" else a, b.T if form == "nt" else b
    return lambda: np.matmul(left, right, out=out)


def _of_stage(
    stage: Stage, product: Product, dtype: str, a: np.ndarray, b: np.ndarray, out: np.ndarray
) -> dict[tuple[str, str], Callable[[], object]]:
    own_a, own_b, own_out = (stage.arrays.asarray(array, dtype) for array in (a, b, out))
    ways: dict[str, Callable[..., object]] = {"": getattr(stage.matmul, METHODS[product.form])}
    if product.form == "nn" and "packed" in stage.matmul.LADDER:
        ways["packed"] = stage.matmul.LADDER["packed"]
    return {(stage.name, name): _bind(way, own_a, own_b, own_out) for name, way in ways.items()}


def _bind(multiply: Callable[..., object], a: Any, b: Any, out: Any) -> Callable[[], object]:
    return lambda: multiply(a, b, out=out)
