"""The kernels that a quick `groundup bench` launches on a GPU, by the part of the plan that needs them first."""

from __future__ import annotations

from groundup.kernels.catalogue import CATALOGUE
from groundup.kernels.entries import Entry, entry
from groundup.kernels.images import MAX_POOL_INT64

OF_BENCH = (
    entry("device_clock.sleep", "int64", 1, 255, 255, package="shared.bench.measuring"),
    entry("device_roofs.multiply_add", "int64 T[1] T[1]", 256, 255, 255, package="shared.bench.measuring"),
    entry("device_roofs.triad_kernel", "T[1] T[1] T T[1]", 256, 255, 255, package="shared.bench.measuring"),
)
"""Those that are no part of stage 4."""

KNOWN: dict[str, tuple[Entry, str]] = {
    f"{each.kernel} {dtype}".strip(): (each, dtype) for each in (*OF_BENCH, *CATALOGUE) for dtype in each.dtypes
} | {f"pooling.max_pool, int64 {dtype}": (MAX_POOL_INT64, dtype) for dtype in MAX_POOL_INT64.dtypes}
"""Name and dtype of every kernel -> its line in a list, and the dtype."""

QUICK: dict[str, tuple[str, ...]] = {
    "machine": (
        "device_clock.sleep",
        "device_roofs.multiply_add float32",
        "device_roofs.multiply_add float64",
        "device_roofs.triad_kernel float32",
    ),
    "ladders": (
        "matmul_1_basic.naive float32",
        "matmul_1_basic.tiled(32, 'nn').multiply float32",
        "matmul_2_register.register_2d('nn') float32",
        "matmul_3_warp.multiply('nn', True, dtype) float32",
        "matmul_4_fitted.multiply('narrow_tile', 'nn', True, dtype) float32",
    ),
    "products": (
        "matmul_1_basic.tiled(16, 'nn').multiply float32",
        "matmul_1_basic.tiled(16, 'nt').multiply float32",
        "matmul_4_fitted.multiply('narrow_tile', 'nn', True, dtype) float32",
        "matmul_4_fitted.multiply('narrow_tile', 'nt', True, dtype) float32",
        "matmul_4_fitted.multiply('narrow_tile', 'tn', True, dtype) float32",
        "matmul_4_fitted.multiply('small_tile', 'nn', True, dtype) float32",
    ),
    "convolutions": (
        "convolution_1_basic.add_parts float32",
        "convolution_1_basic.halo_tile float32",
        "convolution_1_basic.naive float32",
        "convolution_2_im2col.columns float32",
        "convolution_2_im2col.finish float32",
        "convolution_3_implicit.correlate(False) float32",
        "convolution_4_blocked.CORRELATE_WEIGHTS[32] float32",
        "convolution_4_blocked.correlate(32, False) float32",
        "matmul_1_basic.tiled(16, 'nn').multiply float32",
        "matmul_4_fitted.multiply('narrow_tile', 'nn', False, dtype) float32",
        "matmul_4_fitted.multiply('small_tile', 'nn', False, dtype) float32",
    ),
    "operations": (
        "activations.BACKWARD['relu'] float32",
        "activations.FORWARD['relu'] float32",
        "dense.add_bias float32",
        "losses.BACKWARD[32]['softmax_cross_entropy'] float32",
        "losses.LOSS[32]['softmax_cross_entropy'] float32",
        "matmul_1_basic.tiled(16, 'nn').multiply float32",
        "matmul_1_basic.tiled(16, 'nt').multiply float32",
        "matmul_1_basic.tiled(16, 'tn').multiply float32",
        "optimizers.adam float32",
        "softmax.softmax_warp float32",
        "softmax.softmax_warp_backward float32",
        "sums.columns_by_block float32",
        "sums.total_by_warps float32",
    ),
    "steps": (
        "activations.BACKWARD['relu'] float32",
        "activations.FORWARD['relu'] float32",
        "blocked.FORWARD_PARTIAL[32] float32",
        "blocked.UPDATE[32] float32",
        "dense.add_bias float32",
        "fused.FORWARD_PARTIAL[16] float32",
        "head.HEAD[4] float32",
        "losses.BACKWARD[32]['softmax_cross_entropy'] float32",
        "losses.FUSED[32]['softmax_cross_entropy'] float32",
        "losses.LOSS[32]['softmax_cross_entropy'] float32",
        "matmul_1_basic.tiled(16, 'nn').forward float32",
        "matmul_1_basic.tiled(16, 'nn').multiply float32",
        "matmul_1_basic.tiled(16, 'nt').multiply float32",
        "matmul_1_basic.tiled(16, 'tn').multiply float32",
        "matmul_1_basic.tiled(32, 'nn').forward float32",
        "matmul_1_basic.tiled(32, 'nt').backward float32",
        "matmul_4_fitted.multiply('narrow_tile', 'tn', True, dtype) float32",
        "optimizers.sgd float32",
        "persistent.PERSISTENT[64, False] float32",
        "sums.columns_by_block float32",
        "sums.total_by_warps float32",
        "update.UPDATE[16] float32",
    ),
    "inference": (
        "blocked.FORWARD[32] float32",
        "blocked.FORWARD[64] float32",
        "matmul_1_basic.tiled(16, 'nn').forward float32",
        "matmul_1_basic.tiled(32, 'nn').forward float32",
    ),
    "training": (
        "blocked.FORWARD[32] float64",
        "losses.LOSS[32]['softmax_cross_entropy'] float64",
        "matmul_1_basic.tiled(16, 'nn').forward float64",
        "persistent.PERSISTENT[32, True] float64",
        "sums.total_by_warps float64",
    ),
    "phases": (
        "matmul_1_basic.tiled(16, 'nn').multiply float32",
        "matmul_4_fitted.multiply('narrow_tile', 'nn', True, dtype) float32",
        "matmul_4_fitted.multiply('small_tile', 'nn', True, dtype) float32",
    ),
}
"""Part -> names of KNOWN: what it launches on a GPU with 40, 68, 108, 132 or 144 multiprocessors, which choose
different tiles. A rehearsal of the run finds them (tests/groundup/compiling/bench_rehearsal.py)."""
