"""Writes docs/benchmarks/eight-bits.json: what trained networks lose in eight bits, and what their files do.

    GROUNDUP_DATA=… python scripts/measure_eight_bits.py runs/dense runs/lenet5 …

Each run is checked on all its test images, as `groundup check --int8` does it. ONNX Runtime computes the same images by
the exported file, with its optimisations and without, and is timed on one core with both files in turn. Needs the extra
onnx. Runs that the file has from before and that are not named stay.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from groundup.eight_bits import CALIBRATE, check, in_eight_bits  # noqa: E402  (where this file lies, it finds groundup)
from groundup.trained import as_learned, load_data, open_checkpoint, settings_of  # noqa: E402
from shared.data.normalisation import Normalisation  # noqa: E402
from shared.export import eight_bit_graph, onnx_graph  # noqa: E402
from shared.export.equal_answers import EIGHT_BIT_IMAGES, INPUT, compare_in_eight_bits  # noqa: E402
from shared.machine.environment import environment  # noqa: E402

BATCH, PASSES = 100, 30
RECORD = ROOT / "docs" / "benchmarks" / "eight-bits.json"


def files(run: Path) -> dict[str, Any]:
    """The sizes of a run's two files, and ONNX Runtime's answers by the one in eight bits to all test images."""
    checkpoint = open_checkpoint(run)
    plain = load_data(checkpoint)
    data, normalisation = as_learned(checkpoint, plain), Normalisation.from_notes(settings_of(checkpoint))
    network = in_eight_bits(checkpoint, data, CALIBRATE)
    content = eight_bit_graph.model_of(network, normalisation).SerializeToString()
    numbers = checkpoint.architecture, checkpoint.parameters, checkpoint.running_statistics
    floats = onnx_graph.model_of(*numbers, normalisation).SerializeToString()
    parts = [slice(start, start + EIGHT_BIT_IMAGES) for start in range(0, len(plain.test), EIGHT_BIT_IMAGES)]
    answers = [compare_in_eight_bits(content, network, plain.test.x[part], data.test.x[part]) for part in parts]
    return {
        "bytes": {"float32": len(floats), "int8": len(content)},
        "runtime": answers[0].runtime,
        "same_class": sum(each.same_class for each in answers),
        "steps": max(each.steps for each in answers),
        "seconds": times(
            {"float32": floats, "int8": content},
            plain.test.x[:BATCH].astype(np.float32).reshape(BATCH, *checkpoint.architecture.input_shape),
        ),
    }


def times(contents: dict[str, bytes], x: np.ndarray) -> dict[str, float]:
    """Processor time of ONNX Runtime for an image of a batch: the fastest of many passes.

    On one thread, the caller's. By the clock, a batch that is long enough never has the core for itself.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    sessions = {name: onnxruntime.InferenceSession(each, options) for name, each in contents.items()}
    seconds = dict.fromkeys(contents, np.inf)
    for _ in range(PASSES):
        for name, session in sessions.items():
            begin = time.thread_time()
            session.run(None, {INPUT: x})
            seconds[name] = min(seconds[name], (time.thread_time() - begin) / len(x))
    return seconds


def main(runs: list[str]) -> None:
    before = json.loads(RECORD.read_text())["networks"] if RECORD.exists() else {}
    for run in map(Path, runs):
        before[run.name] = check(run, "numpy") | {"files": files(run), "checkpoint": run.name}
        RECORD.write_text(json.dumps({"environment": environment(), "networks": before}, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
