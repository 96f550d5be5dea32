"""The matrix products of a 784-128-10 network, and two large ones, beside NumPy and PyTorch.

All contenders read the same two matrices and write into the same third one (`out=`). All three are aligned as the
strictest contender needs it. Without that the comparison would be one of memory: whose operands are still in the cache,
whose result is a fresh page that the system has to clear first. A contender copies the matrices into arrays of its own
only where it cannot use NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shared.bench.measuring.compared_candidates import Effort, take_turns
from shared.bench.measuring.rows import BenchRow, product_bytes
from shared.bench.measuring.timing import aligned, random_arrays, stage_dtypes
from shared.bench.peers import pytorch
from shared.contract import Stage


class Product(NamedTuple):
    """One product. form: nn is ab, tn is aᵀb with a (k, m), nt is abᵀ with b (n, k); (m, n) is the result's shape."""

    what: str
    form: str
    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """'xW 64x784x128': m, k and n in this order; 'ab 512³' where they are equal."""
        square = self.m == self.k == self.n
        return f"{self.what} {self.m}³" if square else f"{self.what} {self.m}x{self.k}x{self.n}"


PRODUCTS = (
    Product("xW", "nn", 64, 784, 128),  # forward
    Product("xᵀg", "tn", 784, 64, 128),  # the gradient of the weights
    Product("gWᵀ", "nt", 64, 128, 784),  # the gradient of the input
    Product("ab", "nn", 512, 512, 512),
    Product("ab", "nn", 1024, 1024, 1024),
)

EFFORT = Effort(repeats=15, group_limit=15.0)
NUMPY, PYTORCH = ("numpy", ""), ("pytorch", "")
METHODS = {"nn": "matmul", "tn": "matmul_tn", "nt": "matmul_nt"}

Calls = dict[tuple[str, str], Callable[[], object]]
"""(stage or library, which of its ways) -> a call that computes the product."""


def product_rows(
    stages: Sequence[Stage],
    *,
    products: Sequence[Product] = PRODUCTS,
    dtype: str = "float32",
    effort: Effort = EFFORT,
    torch: Any | None = None,
) -> Iterator[BenchRow]:
    """Time every product on every stage that computes in dtype, on NumPy and, where torch is given, on PyTorch.

    A stage is called through its `matmul`, `matmul_tn` or `matmul_nt`; stage 3 also by its packed rung, which is the
    same on one thread. The reference is NumPy's own call. Rows of an emulated stage are compared with nothing.
    """
    able = [stage for stage in stages if dtype in stage_dtypes(stage)]
    for product in products:
        a, b, out = operands(product, dtype)
        calls: Calls = {NUMPY: _numpy(product.form, a, b, out)}
        for stage in able:
            calls |= _of_stage(stage, product, dtype, a, b, out)
        if torch is not None:
            calls[PYTORCH] = pytorch.product(torch, product.form, a, b, out)
        threads = {key: 1 if key[1] == "packed" else effort.most_threads for key in calls}
        turns = take_turns(calls, able, effort, threads=threads, peak_in=dtype)
        for key in calls:
            compared = turns.columns(
                key, reference=NUMPY, label=f"NumPy a @ b, {dtype}", opponents={"numpy": NUMPY, "pytorch": PYTORCH}
            )
            yield BenchRow(
                "product",
                key[0],
                product.name,
                dtype,
                (product.m, product.k, product.n),
                2 * product.m * product.k * product.n,
                variant=key[1],
                bytes=product_bytes(product.m, product.k, product.n, dtype),
                **compared,
            )


def operands(product: Product, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and out of this product, C-contiguous and each on a cache line; a and b are normal random numbers."""
    m, k, n = product.m, product.k, product.n
    left, right = (k, m) if product.form == "tn" else (m, k), (n, k) if product.form == "nt" else (k, n)
    a, b = random_arrays(left, right, dtype=dtype, seed=0)
    return a, b, aligned((m, n), dtype)


def _numpy(form: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], object]:
    left, right = a.T if form == "tn" else a, b.T if form == "nt" else b
    return lambda: np.matmul(left, right, out=out)


def _of_stage(stage: Stage, product: Product, dtype: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Calls:
    own_a, own_b, own_out = (stage.arrays.asarray(array, dtype) for array in (a, b, out))
    ways: dict[str, Callable[..., object]] = {"": getattr(stage.matmul, METHODS[product.form])}
    if product.form == "nn" and "packed" in stage.matmul.LADDER:
        ways["packed"] = stage.matmul.LADDER["packed"]
    return {(stage.name, name): partial(way, own_a, own_b, out=own_out) for name, way in ways.items()}
