"""Random kernels in every mode of the emulator: compiled, in shuffled orders, on two cores, unchecked, step by step.

    python -m tests.cuda_emulator.fuzz_emulator --seeds 0:1000 [--jobs 2] [--limit SECONDS] [--keep DIR]
        [--modes step,compiled] [--shrink]

Each job is a process that takes one kernel after another; one that crashes or takes longer than the limit is named,
and the next process goes on behind it. A refusal counts as a failure unless it says "not supported by the emulator".
With --shrink, what failed is made small and written to emulator_kernels/shrunk/. Exit code 1 where one failed.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cuda_emulator.fuzz_kernels import kernel_text
from tests.cuda_emulator.fuzz_modes import MODES, STEP_MODES, Outcome, examine
from tests.cuda_emulator.fuzz_shrink import shrunk

HERE = Path(__file__).resolve().parent
SHRUNK = HERE / "emulator_kernels" / "shrunk"
NOT_SUPPORTED = "not supported by the emulator"
LIMIT = 60.0
#: Each of these compiles the kernel anew: where all modes are asked for, one is left out, in turn, for time.
LEFT_OUT = ("check", "unchecked")
FAILURES = ("mismatch", "race", "error", "crash", "hang", "refused")


def failed(outcome: Outcome) -> bool:
    """Whether this is a fault of the emulator (or of the generator)."""
    return outcome.kind in FAILURES and not (outcome.kind == "refused" and NOT_SUPPORTED in outcome.message)


# ---- the process that runs kernels


def work(modes: tuple[str, ...]) -> None:
    """Examine the files named on standard input, one a line with its seed; tell begin and end on standard output."""
    for line in sys.stdin:
        seed, path = line.rstrip("\n").split(" ", 1)
        chosen = tuple(mode for mode in modes if mode != LEFT_OUT[int(seed) % 2] or len(modes) < len(MODES))
        outcome = examine(Path(path), int(seed), chosen)
        print(json.dumps([outcome.kind, outcome.mode, outcome.message]), flush=True)


class Worker:
    """A process that examines kernels; started again after a crash or a hang."""

    def __init__(self, modes: tuple[str, ...], limit: float) -> None:
        self.modes, self.limit = modes, limit
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "tests.cuda_emulator.fuzz_emulator",
            "--worker",
            "--modes",
            ",".join(self.modes),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=HERE.parents[1],
        )
        self.answers: queue.Queue[str] = queue.Queue()
        self.complaints: list[str] = []
        threading.Thread(target=self._read, args=(process, self.answers), daemon=True).start()
        threading.Thread(target=self._listen, args=(process, self.complaints), daemon=True).start()
        return process

    @staticmethod
    def _read(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("["):
                answers.put(line)
        answers.put("")

    @staticmethod
    def _listen(process: subprocess.Popen[str], complaints: list[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            complaints[:] = [*complaints[-20:], line]

    def examine(self, path: Path, seed: int) -> Outcome:
        """How the kernel in that file fares."""
        if self.process is None or self.process.poll() is not None:
            self.process = self.start()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{seed} {path}\n")
            self.process.stdin.flush()
            answer = self.answers.get(timeout=self.limit)
        except queue.Empty:
            self.stop()
            return Outcome("hang", message=f"no result after {self.limit:g} s")
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.process = None
            return Outcome("crash", message=f"the process ended with {code}: {''.join(self.complaints)[-2000:]}")
        return Outcome(*json.loads(answer))

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


# ---- many seeds


def run_seeds(
    seeds: range, jobs: int, limit: float, modes: tuple[str, ...], folder: Path, tell: Callable[[str], None]
) -> dict[int, Outcome]:
    """Examine the kernels of these seeds; their texts are left in `folder`."""
    left: queue.Queue[int] = queue.Queue()
    for seed in seeds:
        left.put(seed)
    outcomes: dict[int, Outcome] = {}

    def job() -> None:
        worker = Worker(modes, limit)
        try:
            while True:
                try:
                    seed = left.get_nowait()
                except queue.Empty:
                    return
                path = folder / f"kernel_{seed}.py"
                path.write_text(kernel_text(seed), encoding="utf-8")
                outcome = outcomes[seed] = worker.examine(path, seed)
                if failed(outcome):
                    tell(f"seed {seed}: {outcome.kind} {outcome.mode}: {outcome.message}")
                else:
                    path.unlink()
                if len(outcomes) % 25 == 0:
                    tell(f"{len(outcomes)} of {len(seeds)} kernels")
        finally:
            worker.stop()

    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(job) for _ in range(jobs)]:
            future.result()
    return outcomes


def summary(outcomes: dict[int, Outcome], seconds: float) -> str:
    """One line: how many of each kind."""
    counts = Counter(
        outcome.kind if failed(outcome) or outcome.kind == "ok" else "unsupported" for outcome in outcomes.values()
    )
    parts = [f"{counts[kind]} {name}" for kind, name in WORDS.items()]
    return f"{len(outcomes)} kernels in {seconds:.0f} s: {', '.join(parts)}"


WORDS = {
    "ok": "right",
    "mismatch": "mismatches",
    "race": "races",
    "crash": "crashes",
    "hang": "hangs",
    "refused": "refusals",
    "error": "errors",
    "unsupported": "not supported",
}


# ---- shrinking


def shrink(path: Path, seed: int, outcome: Outcome, limit: float, most: int) -> str:
    """A smaller kernel that fails as this one does."""
    orders = STEP_MODES if outcome.kind in ("mismatch", "race") else STEP_MODES[:1]
    modes = tuple(dict.fromkeys((*orders, outcome.mode or "compiled")))
    worker = Worker(modes if outcome.kind != "crash" else tuple(MODES), limit)

    def fails(text: str) -> bool:
        candidate = path.with_name(f"{path.stem}_smaller.py")
        candidate.write_text(text, encoding="utf-8")
        found = worker.examine(candidate, seed)
        return (found.kind, found.mode, _gist(found)) == (outcome.kind, outcome.mode, _gist(outcome))

    try:
        return shrunk(path.read_text(encoding="utf-8"), fails, most)
    finally:
        worker.stop()


def _gist(outcome: Outcome) -> str:
    """What a message says, without the place it says it of: two failures with one gist are one fault."""
    if outcome.kind not in ("refused", "error"):
        return ""
    return "".join(letter for letter in outcome.message.split("\n")[0].rpartition("py:")[2] if not letter.isdigit())[
        :60
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the emulator with random kernels.")
    parser.add_argument("--seeds", default="0:100", help="FIRST:END")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that one kernel may take in all modes")
    parser.add_argument("--keep", type=Path, help="where kernels that fail are left")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--shrink-trials", type=int, default=150)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    modes = tuple(options.modes.split(","))
    if unknown := [mode for mode in modes if mode not in MODES]:
        parser.error(f"--modes: expected some of {', '.join(MODES)}, got {', '.join(unknown)}")
    if options.worker:
        work(modes)
        return 0
    first, end = (int(part) for part in options.seeds.split(":"))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = run_seeds(
            range(first, end), options.jobs, options.limit, modes, folder, lambda text: print(text, flush=True)
        )
        faults = {seed: outcome for seed, outcome in sorted(outcomes.items()) if failed(outcome)}
        for seed, outcome in faults.items() if options.shrink else ():
            text = shrink(folder / f"kernel_{seed}.py", seed, outcome, options.limit, options.shrink_trials)
            SHRUNK.mkdir(parents=True, exist_ok=True)
            path = SHRUNK / f"{outcome.kind}_{seed}.py"
            path.write_text(f"# ruff: noqa\n{text}", encoding="utf-8")
            print(f"seed {seed}, {len(text.splitlines())} lines: {path}", flush=True)
    print(summary(outcomes, time.monotonic() - begun))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
