"""Stage 3 with many threads: several of Python's calling at once, any number in the pool, and a forked child."""

import hashlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.contract import load_stage
from stage3_c import library, matmul
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

THREADS, ROUNDS = 8, 12
SIZES = [(1, 1, 1), (5, 97, 2), (33, 65, 17), (64, 200, 128), (130, 70, 90)]
ROOT = Path(library.__file__).parents[1]


def together(work: Callable[[int], None]) -> None:
    """work(0) to work(7), all begun at once; the first error of any of them comes out."""
    start = threading.Barrier(THREADS)

    def begin(number: int) -> None:
        start.wait(timeout=600)
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(begin, number) for number in range(THREADS)]:
            done.result(timeout=600)


def factors(m: int, k: int, n: int, dtype: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """a (m, k) and b (k, n)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)


def close(got: Any, expected: Any, dtype: Any) -> None:
    bound = 1e-3 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(got, expected, rtol=bound, atol=bound)


def test_products_of_eight_threads_at_once_are_right() -> None:
    def work(number: int) -> None:
        for turn in range(ROUNDS):
            dtype = ("float32", "float64")[(number + turn) % 2]
            a, b = factors(*SIZES[(number * 3 + turn) % len(SIZES)], dtype, seed=100 * number + turn)
            expected = a.astype(np.float64) @ b.astype(np.float64)
            close(matmul.matmul(a, b), expected, a.dtype)
            close(matmul.packed(a, b), expected, a.dtype)
            close(matmul.matmul_tn(np.ascontiguousarray(a.T), b), expected, a.dtype)
            close(matmul.matmul_nt(a, np.ascontiguousarray(b.T)), expected, a.dtype)

    together(work)


def test_training_steps_of_eight_networks_at_once_are_those_of_stage_2() -> None:
    stages = [load_stage(name) for name in ("stage2_numpy", "stage3_c")]

    def train(stage: Any, number: int) -> list[np.ndarray]:
        rng = np.random.default_rng(number)
        network = stage.network.Network([20, 7 + 30 * number, 5], activation="tanh", seed=number, dtype="float64")
        optimizer = stage.optimizers.Adam(0.01)
        for turn in range(ROUNDS):
            rows = 1 + 40 * (turn % 3)
            network.train_step(rng.normal(size=(rows, 20)), rng.integers(0, 5, rows), optimizer)
        return [np.array(p) for p in network.parameters]

    expected = [train(stages[0], number) for number in range(THREADS)]

    def work(number: int) -> None:
        for got, wanted in zip(train(stages[1], number), expected[number], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)

    together(work)


DIGEST = """
import hashlib
import numpy as np
from stage3_c import convolution, library, matmul
rng, digest = np.random.default_rng(0), hashlib.sha256()
for dtype in ("float32", "float64"):
    for m, k, n in [(1, 1, 1), (64, 784, 128), (130, 70, 90), (3, 500, 300), (257, 33, 5)]:
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        digest.update(matmul.matmul(a, b))
        digest.update(matmul.matmul_tn(np.ascontiguousarray(a.T), b))
        digest.update(matmul.matmul_nt(a, np.ascontiguousarray(b.T)))
    for n, c, h, o, k, p in [(1, 1, 5, 3, 3, 0), (37, 3, 9, 7, 5, 2), (20, 32, 8, 33, 3, 1), (2, 40, 13, 20, 3, 1)]:
        x, w = rng.normal(size=(n, c, h, h)).astype(dtype), rng.normal(size=(o, c, k, k)).astype(dtype)
        y = convolution.conv2d(x, w, w[:, 0, 0, 0].copy(), 1, p)
        for each in (y, *convolution.conv2d_backward(y, x, w, 1, p)):
            digest.update(each)
print(library.plain_function("pool_threads")(library.pool()), digest.hexdigest())
"""


def run(code: str, threads: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GROUNDUP_THREADS": threads, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=1000, check=False
    )


def test_any_number_of_threads_gives_the_same_products_bit_for_bit() -> None:
    answers = {threads: run(DIGEST, threads).stdout.split() for threads in ("1", "3", "16")}
    assert [answer[0] for answer in answers.values()] == list(answers)
    assert len({answer[1] for answer in answers.values()}) == 1, answers


def digest_of_products(count: int) -> str:
    """Of stage 3's products alone: NumPy's own @ may hang in a child that was forked while another thread used it."""
    digest = hashlib.sha256()
    for seed in range(count):
        a, b = factors(64, 200, 128, "float32", seed)
        digest.update(matmul.matmul(a, b))
    return digest.hexdigest()


def digest_and_pool(connection: Any) -> None:
    """In a child: its answer, and whether it has a pool with threads of its own."""
    inherited = library._pool
    connection.send((inherited, digest_of_products(3), library._pool is not None))
    connection.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "another thread computing"])
def test_a_forked_child_makes_a_pool_of_its_own(busy: bool) -> None:
    expected = digest_of_products(3)
    assert library._pool is not None
    context, stop = multiprocessing.get_context("fork"), threading.Event()

    def compute() -> None:
        while not stop.is_set():
            digest_of_products(1)

    other = threading.Thread(target=compute)
    if busy:
        other.start()
    try:
        for _ in range(3):
            here, there = context.Pipe()
            child = context.Process(target=digest_and_pool, args=(there,), daemon=True)
            child.start()
            there.close()
            assert here.poll(60), "the child hangs"
            assert here.recv() == (None, expected, True)
            child.join(600)
            assert child.exitcode == 0
    finally:
        stop.set()
        if busy:
            other.join()
    assert digest_of_products(3) == expected


def test_other_threads_run_while_c_computes() -> None:
    """With this switch interval no thread is made to give up the GIL, so between the two looks at the counter it can
    only move while the call has let go of it."""
    a, b = factors(200, 200, 200, "float32", seed=0)
    out = np.empty((200, 200), np.float32)
    multiply = library.function("matmul_ijk", a.dtype)
    ticks, stop, ready = 0, threading.Event(), threading.Event()

    def tick() -> None:
        nonlocal ticks
        ready.set()
        while not stop.is_set():
            ticks += 1
            time.sleep(1e-4)  # which gives the GIL back

    interval = sys.getswitchinterval()
    other = threading.Thread(target=tick)
    other.start()
    ready.wait()
    try:
        sys.setswitchinterval(1000)
        moved = 0
        for _ in range(2000):  # the system decides when the other thread gets a core; it need not be at once
            before = ticks
            multiply(200, 200, 200, a, b, out)
            moved += ticks > before
            if moved >= 3:
                break
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()
    assert moved >= 3
