"""Time stage 2's convolution by Fourier transforms beside im2col, from small kernels to large ones.

    OPENBLAS_NUM_THREADS=1 python scripts/measure_kernel_sizes.py docs/benchmarks/convolution-kernel-sizes.json

The padding is (size - 1) / 2, so that the output has the size of the image for every kernel. Both rungs are timed in
turns, and by the processor's time of this process, so that other programs on the machine disturb less. That is right on
one thread only. The guide to convolution and its figure take their numbers from the file.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from shared.bench.measuring.timing import Clock, Rounds, measure, random_arrays
from shared.contract import load_stage
from shared.machine.environment import environment

SIZES = (1, 3, 5, 7, 9, 11, 13, 15, 19, 23, 27, 31)
CASES = {
    "1 channel, 256 x 256": (1, 1, 256),
    "16 channels, 32 x 32": (8, 16, 32),
    "64 channels, 32 x 32": (8, 64, 32),
}
"""What the figure calls it -> (images, channels in and out, rows and columns)."""
RUNGS = ("fourier", "im2col", "im2col_in_cache")


def times(images: int, channels: int, side: int, size: int) -> dict[str, Any]:
    """Seconds of each rung on a batch, and the largest difference of their results in units of the largest number."""
    ladder = load_stage("stage2_numpy").convolution.CONVOLUTION_LADDER
    shapes = (images, channels, side, side), (channels, channels, size, size), (channels,)
    x, weights, bias = random_arrays(*shapes, dtype="float32", seed=size)
    results = {name: ladder[name](x, weights, bias, 1, size // 2) for name in RUNGS}
    candidates = {name: lambda rung=ladder[name]: rung(x, weights, bias, 1, size // 2) for name in RUNGS}
    measured = measure(candidates, repeats=15, rounds=Rounds(limit=12.0), clock=Clock(now=time.process_time))
    largest = float(np.abs(results["im2col"]).max())
    return {
        "size": size,
        "seconds": {name: each.median for name, each in measured.items()},
        "spread": {name: each.spread for name, each in measured.items()},
        "difference": float(np.abs(results["fourier"] - results["im2col"]).max()) / largest,
    }


def main(target: str) -> None:
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1: the processor's time of several threads is their sum")
    found: dict[str, Any] = {"environment": environment(), "cases": {}}
    for name, (images, channels, side) in CASES.items():
        rows = found["cases"][name] = {"images": images, "channels": channels, "side": side, "sizes": []}
        for size in SIZES:
            row = times(images, channels, side, size)
            rows["sizes"].append(row)
            told = "   ".join(f"{rung} {1e3 * row['seconds'][rung]:9.3f} ms" for rung in RUNGS)
            print(f"{name:22} kernel {size:2}   {told}", flush=True)
    Path(target).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
