"""The numbers of the made-up results in bench_results.py: speeds of every rung, operation and library."""

from __future__ import annotations

from typing import Any

ONE, TWO, THREE, FOUR = "stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda"
CPU_STAGES = (ONE, TWO, THREE)
PEAK = {"float64": 57e9, "float32": 114e9}
"""FLOP/s of one core."""

GPU_PEAK = {"float64": 30e12, "float32": 52e12}
NUMPY_SPEED = {
    "float64": {16: 7.3, 32: 22.3, 64: 50.4, 128: 70.2, 256: 133.0, 512: 101.0},
    "float32": {16: 8.0, 32: 30.0, 64: 91.3, 128: 142.6, 256: 182.0, 512: 200.9},
}
"""GFLOP/s of `a @ b`, by size."""

LADDERS: dict[str, dict[str, dict[str, dict[int, float]]]] = {
    ONE: {
        "index_loops": {"float64": {16: 0.0296, 32: 0.0242, 64: 0.0318, 128: 0.0329}},
        "zip_rows_columns": {"float64": {16: 0.0334, 32: 0.0265, 64: 0.0451, 128: 0.048}},
        "transpose_once": {"float64": {16: 0.0341, 32: 0.0314, 64: 0.0511, 128: 0.0527}},
        "multiply_in_c": {"float64": {16: 0.052, 32: 0.0674, 64: 0.0779, 128: 0.0811}},
    },
    TWO: {
        "dot_per_output": {
            "float64": {64: 0.141, 128: 0.261, 256: 0.355, 512: 0.435},
            "float32": {64: 0.144, 128: 0.275, 256: 0.472, 512: 0.505},
        },
        "outer_products": {
            "float64": {64: 1.68, 128: 2.51, 256: 2.72, 512: 2.73},
            "float32": {64: 2.37, 128: 4.26, 256: 5.3, 512: 5.52},
        },
        "einsum": {
            "float64": {64: 6.92, 128: 8.79, 256: 9.89, 512: 10.0},
            "float32": {64: 10.6, 128: 14.6, 256: 18.0, 512: 19.7},
        },
        "at_operator": {
            "float64": {64: 45.5, 128: 67.3, 256: 92.1, 512: 99.1},
            "float32": {64: 69.7, 128: 138.7, 256: 179.2, 512: 202.0},
        },
    },
    THREE: {
        "ijk": {
            "float64": {64: 3.4, 128: 2.15, 256: 1.03, 512: 0.695},
            "float32": {64: 3.15, 128: 2.91, 256: 2.5, 512: 1.03},
        },
        "ikj": {
            "float64": {64: 6.28, 128: 6.55, 256: 6.61, 512: 6.29},
            "float32": {64: 6.26, 128: 6.79, 256: 6.85, 512: 6.53},
        },
        "blocked": {
            "float64": {64: 6.25, 128: 6.44, 256: 6.63, 512: 6.16},
            "float32": {64: 5.88, 128: 6.93, 256: 6.87, 512: 6.47},
        },
        "restrict": {
            "float64": {64: 20.7, 128: 23.0, 256: 20.3, 512: 14.9},
            "float32": {64: 29.7, 128: 55.0, 256: 52.7, 512: 38.3},
        },
        "packed": {
            "float64": {64: 33.8, 128: 50.0, 256: 54.0, 512: 51.9},
            "float32": {64: 51.6, 128: 95.0, 256: 107.5, 512: 106.9},
        },
        "threads": {
            "float64": {64: 46.4, 128: 89.0, 256: 104.0, 512: 98.0},
            "float32": {64: 58.3, 128: 168.2, 256: 208.7, 512: 222.5},
        },
    },
}
"""GFLOP/s by stage, rung, dtype and size."""

GPU_LADDER = {
    "naive": (12.7, 310.0, 330.0, 325.0),
    "coalesced": (63.3, 3600.0, 4500.0, 4700.0),
    "tiled_16": (76.7, 4900.0, 6600.0, 6900.0),
    "tiled_32": (73.3, 5300.0, 7400.0, 7800.0),
    "register_1d": (56.7, 6100.0, 14500.0, 16900.0),
    "register_2d": (40.0, 5600.0, 19800.0, 27500.0),
    "vectorised": (41.7, 5900.0, 22400.0, 34100.0),
    "conflict_free": (42.7, 6000.0, 23100.0, 36600.0),
    "warp_tiled": (43.7, 6400.0, 26500.0, 41800.0),
}
GPU_SIZES = (128, 512, 1024, 2048)
CUBLAS = {128: 137.0, 512: 14200.0, 1024: 35600.0, 2048: 48900.0}
NETWORK = (784, 128, 10)
STEP = "784-128-10, batch 64"
STEP_FLOPS = 2 * 64 * (784 * 128 * 2 + 128 * 10 * 3)
OPS: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("identity", "forward"): (0.3e-3, 2.2e-6, 2.0e-6, 2.4e-6),
    ("relu", "forward"): (1.1e-3, 4.1e-6, 2.3e-6, 2.6e-6),
    ("relu", "backward"): (1.4e-3, 11e-6, 2.9e-6, 2.8e-6),
    ("sigmoid", "forward"): (2.9e-3, 52e-6, 24e-6, 3.1e-6),
    ("sigmoid", "backward"): (1.6e-3, 9e-6, 3.0e-6, 2.8e-6),
    ("tanh", "forward"): (1.7e-3, 34e-6, 38e-6, 3.1e-6),
    ("softmax", "forward"): (3.8e-3, 61e-6, 19e-6, 5.2e-6),
    ("softmax_cross_entropy", "forward"): (4.1e-3, 78e-6, 21e-6, 6.4e-6),
    ("softmax_cross_entropy", "backward"): (4.4e-3, 84e-6, 22e-6, 6.0e-6),
    ("dense", "forward"): (165e-3, 84e-6, 62e-6, 9.5e-6),
    ("dense", "backward"): (360e-3, 190e-6, 130e-6, 18e-6),
    ("SGD", "step"): (9.2e-3, 58e-6, 9.9e-6, 3.3e-6),
    ("Adam", "step"): (39e-3, 410e-6, 61e-6, 4.6e-6),
}
"""Seconds on stages 1 to 4, the last one a GPU's."""

PARTS: dict[str, tuple[float, float, float, float]] = {
    "dense 1 forward": (152e-3, 96e-6, 63e-6, 11e-6),
    "relu forward": (1.2e-3, 4.5e-6, 2.4e-6, 2.6e-6),
    "dense 2 forward": (2.4e-3, 7.9e-6, 3.1e-6, 5.4e-6),
    "softmax cross-entropy": (1.9e-3, 19e-6, 3.6e-6, 5.0e-6),
    "softmax cross-entropy backward": (2.1e-3, 17e-6, 3.0e-6, 5.1e-6),
    "dense 2 backward": (4.9e-3, 16e-6, 5.8e-6, 8.7e-6),
    "relu backward": (1.4e-3, 8.8e-6, 2.8e-6, 2.8e-6),
    "dense 1 backward": (181e-3, 110e-6, 71e-6, 12e-6),
    "SGD step": (9.2e-3, 61e-6, 9.9e-6, 3.3e-6),
    "whole step": (384e-3, 496e-6, 181e-6, 88e-6),
}
ENVIRONMENT: dict[str, Any] = {
    "cpu": "AMD EPYC 9B14",
    "cores": 2,
    "architecture": "x86_64",
    "os": "Debian GNU/Linux 12 (bookworm)",
    "python": "CPython 3.11.7",
    "numpy": "2.4.6",
    "blas": "scipy-openblas 0.3.31",
    "stage3_c": {"compiler": "cc (Debian 12.2.0) 12.2.0", "flags": ["-O3"], "simd_bits": 512, "threads": 2},
    "stage4_numba_cuda": {"backend": "emulator", "emulated": True},
    "load_average": 0.12,
    "thread_variables": {"OPENBLAS_NUM_THREADS": "2"},
    "groundup": "0.1.0",
    "revision": "0123456789ab",
    "date": "2026-01-31T09:00:00+00:00",
    "threads": 2,
    "pytorch": "2.13.0+cpu",
    "pinned": [0, 1],
}
GPU_FACTS = {"backend": "gpu", "emulated": False, "device": "NVIDIA H100 80GB HBM3", "compute_capability": [9, 0]}
