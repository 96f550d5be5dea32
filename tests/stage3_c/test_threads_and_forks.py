"""Threads and forks that call stage 3 at once: the pool never locks up.

Each test runs a process of its own, with a time limit: what hangs in C cannot be ended from Python.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.stages import REASONS, USABLE_STAGES
from tests.wide import WIDE

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")

ROOT = Path(__file__).parents[2]
SECONDS = 30 if WIDE else 1
"""For which threads and forks call stage 3."""


def run(code: str, seconds: float) -> str:
    """What the code prints. Fails if it takes longer than so many seconds."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "GROUNDUP_THREADS": "3"},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


TOGETHER = f"""
    import faulthandler, os, random, threading, time
    import numpy as np
    from stage3_c import activations, convolution, library, losses, matmul
    faulthandler.dump_traceback_later({SECONDS + 40}, exit=True)
    end, failed, counts = time.monotonic() + {SECONDS}, [], [0, 0]

    def call(rng):
        m, k, n = (rng.choice([0, 1, 2, 61, 64, 311, 313]) for _ in range(3))
        a = np.full((m, k), 0.5, rng.choice(["f4", "f8"]))
        b = np.full((k, n), 2.0, a.dtype)
        try:
            got = rng.choice([
                lambda: matmul.matmul(a, b), lambda: matmul.matmul_tn(a.T, b), lambda: matmul.matmul_nt(a, b.T),
            ])()
        except ValueError:
            assert 0 in (m, k, n), (m, k, n)
            return
        assert got.shape == (m, n) and (got == k).all(), (m, k, n)
        images = np.ones((1 + m % 3, 2, 7, 5), a.dtype)
        assert (convolution.conv2d(images, images[:1, :, :3, :3].copy(), np.zeros(1, a.dtype)) == 18).all()
        assert losses.mean_squared_error(a, np.full((m, k), -0.5, a.dtype)) == 1
        activations.softmax(a)

    def work(seed):
        rng = random.Random(seed)
        try:
            while time.monotonic() < end and not failed:
                call(rng)
                counts[0] += 1
        except BaseException as error:
            failed.append(repr(error))

    def fork(seed):
        rng = random.Random(seed)
        while time.monotonic() < end and not failed:
            child = os.fork()
            if child == 0:
                try:
                    for _ in range(5):
                        call(rng)
                    os._exit(0)
                finally:
                    os._exit(1)
            until = time.monotonic() + 200
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.monotonic() > until:
                    failed.append("a child hangs")
                    os.kill(child, 9)
                time.sleep(0.001)
            if ended[1] and not failed:
                failed.append(f"a child ended with {{ended[1]}}")
            counts[1] += 1

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    threads += [threading.Thread(target=fork, args=(9,))] if hasattr(os, "fork") else []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*counts, *failed)
"""


def test_threads_and_forked_children_call_it_at_once_and_none_waits_for_ever() -> None:
    calls, forks, *failed = run(TOGETHER, SECONDS + 60).split()
    assert failed == []
    assert int(calls) > 20
    assert int(forks) > 0 or not hasattr(os, "fork")


LOADING = """
    import os, sys, threading, time
    from stage3_c import library
    build = library.build
    library.build = lambda: (__import__("slow"), build())[1]
    thread = threading.Thread(target=library.load)
    thread.start()
    while "slow" not in sys.modules:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        library.load()
        os._exit(0)
    thread.join()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_forked_while_a_thread_loads_the_library_can_load_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.3)\n")
    assert run(f"import sys; sys.path.append({str(tmp_path)!r})\n" + textwrap.dedent(LOADING), 20) == "0\n"
