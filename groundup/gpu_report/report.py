"""The command of the GPU report: its parts, one after the other, and the file that has what they found.

    python3 -m groundup.gpu_report [--only ladder,steps] [--quick] [--data-dir FOLDER] [--out FOLDER] [--add]

From the repository root, with numba, numba-cuda and the packages that groundup depends on. PyTorch or CuPy and pytest
add the parts that need them. The parts, most important first, so that a report that is stopped early has the numbers:

    device         a trial kernel; the GPU, driver, versions, revision, day
    compile        what the parts after it launch, compiled side by side; how long that took
    steps          the training step beside PyTorch, eager and captured
    training       MNIST and Fashion-MNIST, accuracy and time to 97 %
    ladder         matmul beside cuBLAS at 1,024, 2,048 and 4,096, and the tensor cores
    correctness    every rung against float64
    launches       the cost of a launch, and of a CUDA graph's replay
    suite          the tests of stage 4
    sanitizer      compute-sanitizer over every kernel

Four more are for a second command, which --only asks for by name and --add puts into the same file:

    commands             how long somebody waits for the first step, `groundup check 4` and `groundup bench --quick`
    networks             steps, predictions, convolutions and memory beside PyTorch and cuDNN, TF32 off and on
    network_training     Fashion CNN and residual CNN by their recipes, accuracy and time
    fastest_pytorch      the steps once more beside PyTorch's fused optimizer and torch.compile

docs/gpu-report.md has a plan for a GPU that is lent for fifteen minutes.

Each part is a process of its own with a share of the time; a part that fails, crashes or hangs costs only itself. The
results are written after every part, and a part's rows after every row, into a file beside them. Ctrl-C and SIGTERM end
the report with all that it has started, and what was measured is kept. The last lines say which goals were met. Where
the trial kernel fails, the report ends with one sentence. Without a GPU (or with GROUNDUP_CUDA=emulator) everything is
rehearsed on the emulator at tiny sizes, with an hour's time. Such results are marked as emulated, and no chart shows
their times.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from groundup.gpu_report.document import JSON_NAME, begun, end, fits, keep, record
from shared.machine import caches, processes
from shared.machine.results import results_folder, write_json
from shared.training.run_lock import RunLock

SHARES = {
    "device": 20,
    "compile": 75,
    "steps": 105,
    "training": 45,
    "ladder": 65,
    "correctness": 75,
    "launches": 15,
    "suite": 95,
    "sanitizer": 100,
    "commands": 150,
    "networks": 370,
    "network_training": 130,
    "fastest_pytorch": 150,
}
"""Seconds for each part, of 10 minutes for one command. What a part leaves over goes to the parts after it. So
compute-sanitizer is the last of the usual ones: a tool that is stopped has cleared nothing. On an H100 (2026-11-22) the
steps wanted 93 s, most of them to compile, and each tool of the sanitizer about 60, side by side."""

COMPILED = (
    "steps",
    "training",
    "ladder",
    "correctness",
    "sanitizer",
    "networks",
    "network_training",
    "fastest_pytorch",
)
"""Parts whose kernels the part `compile` compiles."""

ASKED_FOR = ("commands", "networks", "network_training", "fastest_pytorch")
"""Parts that run only where --only names them: they and the others are too much for one command of ten minutes."""

ON_A_GPU, REHEARSAL = 570.0, 3600.0
"""Seconds for everything together, where --seconds does not say: a GPU is often lent for ten minutes. The emulator, on
which all of it is a rehearsal, first compiles every kernel for the CPU."""

GRACE, PATIENCE = 3.0, 2.0
"""Seconds that a part may take to end by itself before it is asked to, and then to end its own programs before it is
killed. Both are of its share."""

WATCH = 0.5
"""Seconds after which a part looks again whether its report still runs."""

INTERRUPTED = "interrupted"
BACKEND_VARIABLE = "GROUNDUP_CUDA"
PART_NAME = "gpu_report.part.json"
"""The rows of the part that runs. The file stays where somebody kills the report itself."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; 0 where all went well, 1 where one did not, 2 where there was nothing to run on."""
    given = _arguments(argv)
    if given.part:
        if given.result:
            threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        with _on_sigterm(_end_part):
            return run_part(given)
    with _on_sigterm(_interrupt):
        return report(given)


def report(options: argparse.Namespace) -> int:
    """All parts, one after the other."""
    parts = _parts(options.only)
    with contextlib.ExitStack() as held:
        try:
            out = results_folder(options.out)
            held.enter_context(RunLock(out))  # a second report would remove the rows of this one's parts
            document = begun(out, options.quick, options.add)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return _measured(options, parts, document, out)


def _measured(options: argparse.Namespace, parts: list[str], document: dict[str, Any], out: Path) -> int:
    """`report`, in a folder that is its own."""
    before, ran = {"seconds": document["seconds"], "complete": document["complete"]}, list[str]()
    document["complete"] = False
    begin, limit, shares = time.monotonic(), options.seconds or ON_A_GPU, dict(SHARES)
    with _kept_kernels() as variables:
        try:
            while parts:
                name = parts.pop(0)
                left = limit - (time.monotonic() - begin)
                budget = left * shares[name] / sum(shares[part] for part in (name, *parts))
                if name == "device":  # without it no other part runs, so that it is never hurried
                    budget = max(budget, min(left, shares[name]))
                print(f"{name}: up to {budget:.0f} s", flush=True)
                outcome = _in_process(name, budget, options, parts, out, variables)
                wrong = fits(document, outcome) if name == "device" and outcome["status"] == "ok" else ""
                if wrong:  # what the folder has stays as it is
                    print(f"error: {wrong}; choose another --out", file=sys.stderr)
                    document["complete"] = before["complete"]
                    return 2
                document["parts"][name] = _of_both(document["parts"].get(name), outcome)
                ran.append(name)
                if name == "device":
                    _note_device(document, outcome, variables)
                keep(document, out)
                print(f"{name}: {outcome['status']}{': ' + outcome['error'] if outcome['error'] else ''}", flush=True)
                if outcome["status"] == INTERRUPTED:
                    raise KeyboardInterrupt
                if name == "device":
                    if outcome["status"] != "ok":
                        return 2
                    if document["emulated"] and "compile" in parts:
                        # The emulator compiles a kernel when it is launched, and most of them are in this part.
                        parts.remove("compile")
                        shares["correctness"] += shares["compile"]
                if document["emulated"] and options.seconds is None:
                    limit = REHEARSAL
            document["complete"] = bool(before["complete"])
        except KeyboardInterrupt:
            print("interrupted: what was measured until now is kept", file=sys.stderr)
            return 2
        finally:
            document["seconds"] = round(before["seconds"] + time.monotonic() - begin, 1)
            written = end(document, out)
            if written:
                _result_file(out)
    if not written:  # which was said, and the document is on the screen
        return 1
    print(f"Written: {out / JSON_NAME}" + "".join(f", {chart['file']}" for chart in document["charts"]))
    if options.record:
        try:
            print(f"Recorded in {record(out, document)}")
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0 if all(document["parts"][name]["status"] in ("ok", "skipped") for name in ran) else 1


def _note_device(document: dict[str, Any], found: dict[str, Any], variables: dict[str, str]) -> None:
    """Write into the document what the part `device` has found. variables: those of the parts to come"""
    document["emulated"] = found.get("emulated", document["emulated"])
    # a device that was not found says nothing of what was measured before
    if found["status"] == "ok" or not document.get("device"):
        document |= {key: found.get(key) for key in ("backend", "device", "versions", "environment")}
    if found.get("backend"):  # if the GPU is lost later on, no part goes on with the emulator
        variables[BACKEND_VARIABLE] = found["backend"]


def run_part(options: argparse.Namespace) -> int:
    """One part, in this process. The document of what it found goes to --result."""
    try:
        from groundup.gpu_report.part import BACKEND, Part  # chooses the backend, which the process above need not
        from groundup.gpu_report.report_parts import PARTS
        from shared.bench.on_gpu.gpu_plan import GpuPlan
    except RuntimeError as error:
        print(f"{options.part}: {error}", file=sys.stderr)
        if options.result:
            write_json(options.result, {"status": "error", "error": str(error), "rows": []})
        return 2
    plan = GpuPlan(options.seconds or ON_A_GPU, options.quick, options.tiny or BACKEND.emulated, options.data_dir)
    part = Part(plan, options.result, (options.only or "").split(","))
    try:
        PARTS[options.part](part)
    except ModuleNotFoundError as error:
        part.finish("skipped", f"it needs the package {error.name}, which is not installed")
    except KeyboardInterrupt:  # its rows are in the file, and the report says why it ended
        return 2
    except Exception as error:  # whatever it is, it is what the report has to tell
        traceback.print_exc()
        part.finish("error", f"{type(error).__name__}: {error}")
    if part.status == "running":
        part.finish("ok")
    return 0 if part.status in ("ok", "skipped") else 1


def _in_process(
    name: str,
    budget: float,
    options: argparse.Namespace,
    later: Sequence[str],
    out: Path,
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """What a part found, in a process of its own, however that ends. later: the parts after it"""
    result = _result_file(out)
    command = processes.python("-m", "groundup.gpu_report", "--part", name, "--result", str(result))
    command += ["--seconds", f"{max(budget - GRACE - PATIENCE, 1.0):.1f}", *(["--quick"] if options.quick else [])]
    command += ["--data-dir", str(options.data_dir.resolve())] if options.data_dir else []
    command += ["--only", ",".join(later)] if later else []
    begin = time.monotonic()
    done = processes.Finished(None)
    interrupted = False
    try:
        limit = max(budget - PATIENCE, 1.0)
        found_by = processes.finding_our_packages(variables)
        done = processes.run(command, limit, variables=found_by, shown=True, patience=PATIENCE)
    except KeyboardInterrupt:
        interrupted = True
    outcome, unread = _found(result)
    if interrupted:
        outcome |= {"status": INTERRUPTED, "error": "the report was ended; what the part had is kept"}
    elif done.code is None:
        outcome |= {"status": "out of time", "error": f"stopped after {budget:.0f} s; what it had is kept"}
    elif outcome["status"] == "running":
        outcome |= {"status": "error", "error": f"its process ended with code {done.code}{unread}"}
    return outcome | {"seconds_taken": round(time.monotonic() - begin, 1), "budget": round(budget, 1)}


def _result_file(out: Path) -> Path:
    """Where the next part writes; without what the part before it has written, which is in the document now."""
    result = (out / PART_NAME).resolve()
    try:
        result.unlink(missing_ok=True)
    except OSError:  # the folder cannot be written any more
        result = Path(tempfile.mkdtemp(prefix="groundup-")) / PART_NAME
    return result


def _of_both(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """A part that is measured again: the rows of the time before where there are none now."""
    if before is None or now["rows"] or not before["rows"]:
        return now
    return before | {"status": now["status"], "error": f"again: {now['error']}; the rows are those of the time before"}


def _found(result: Path) -> tuple[dict[str, Any], str]:
    """(what the part's file has, or an empty part; why it is empty: the end of a sentence, "" where it is not)."""
    empty: dict[str, Any] = {"status": "running", "error": "", "rows": []}
    try:
        found = json.loads(result.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return empty, " before it had written anything"
    except (OSError, ValueError) as error:
        return empty, f", and what it wrote cannot be read: {error}"
    if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
        return empty, ", and what it wrote is no part of a report"
    return empty | found, ""


@contextlib.contextmanager
def _kept_kernels() -> Iterator[dict[str, str]]:
    """The variables of the parts' processes: where compiled kernels cannot be kept in the usual folder, they are in one
    that ends with the report. Else every part would compile the same kernels again."""
    folder = caches.compiled() / "gpu"
    try:
        usable = caches.private(folder) == folder and caches.may_be_written(folder)
    except OSError:
        usable = False
    if usable:
        yield dict(os.environ)
        return
    with tempfile.TemporaryDirectory(prefix="groundup-") as own:
        said = "cannot be used for compiled kernels: they are kept in"
        print(f"{folder} {said} {own} until the report ends", file=sys.stderr)
        yield os.environ | {caches.CACHE_VARIABLE: own}


@contextlib.contextmanager
def _on_sigterm(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have SIGTERM handled so within the `with`. `timeout` sends it, whose default ends a process at once: the programs
    that it has started would go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_with(report: int) -> None:
    """End this part, and what it has started, where the report's own process is gone: somebody has killed it, and it
    could not end its part. report: the number of that process"""
    while os.getppid() == report:
        time.sleep(WATCH)
    processes.kill_started()
    processes.end_own_group()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does; `processes.run` then ends the part."""
    raise KeyboardInterrupt


def _end_part(number: int, frame: FrameType | None) -> None:
    """End the programs that the part has started, too: each leads a group of its own, and a thread may wait for it."""
    processes.kill_started()
    raise KeyboardInterrupt


def _parts(only: str | None) -> list[str]:
    """The chosen parts in their order. The device is always among them, for no number means anything without it; and
    what they launch is compiled before."""
    if only is None:
        return [name for name in SHARES if name not in ASKED_FOR]
    chosen = {name.strip() for name in only.split(",") if name.strip()}
    if not chosen or chosen - set(SHARES):
        print(f"error: only: expected some of {', '.join(SHARES)} with commas between, got {only!r}", file=sys.stderr)
        raise SystemExit(2)
    return [name for name in SHARES if name in chosen | {"device"} or (name == "compile" and chosen & set(COMPILED))]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m groundup.gpu_report", description="Stage 4 on this machine's GPU, all of it."
    )
    parser.add_argument("--only", metavar="PART,...", help=f"some of {', '.join(SHARES)}")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: to see that it works")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu_report"), help="folder for the JSON and the charts")
    parser.add_argument(
        "--seconds",
        type=float,
        help=f"for everything together; {ON_A_GPU:.0f} unless it is given, without a GPU {REHEARSAL:.0f}",
    )
    parser.add_argument("--data-dir", type=Path, help="folder with the IDX files of the full data sets")
    parser.add_argument("--add", action="store_true", help="put the parts into the report that is in --out already")
    parser.add_argument("--record", action="store_true", help="copy JSON and charts to a folder in docs/benchmarks/gpu")
    parser.add_argument("--part", choices=SHARES, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.seconds is not None and not options.seconds > 0:
        parser.error(f"--seconds: expected a number above 0, got {options.seconds:g}")
    return options
