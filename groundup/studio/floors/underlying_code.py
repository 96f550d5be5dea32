"""Which C functions and kernels a Python function leads to.

of_stage3(file, function) the C functions whose names stand in the function, or in those of its file that it calls
of_stage4(file, name)     the kernels: a table, because a kernel is mostly chosen while the program runs
"""

from __future__ import annotations

import ast

from groundup.studio.floors import source
from groundup.studio.floors.source import Found
from shared.names import ACTIVATIONS, ELEMENTWISE, LOSSES

C: dict[str, tuple[str, ...]] = {
    "dense.Dense.forward": ("add_bias", "dense_forward"),
    "dense.Dense.backward": ("column_sums", "dense_backward"),
    "network.Network.train_step": ("network_step",),
    "matmul.threads": ("matmul_nn",),
    "steps.op_by_op": ("add_bias", "column_sums"),
    "steps.fused": ("dense_forward", "dense_backward"),
}
"""Function of stage 3 -> C functions whose names do not stand in it."""


def of_stage3(file: str, function: Found) -> list[Found]:
    """The C functions that a function of stage 3 leads to. file: its room, without .py"""
    own = function.name
    if "." in own or file == "steps":
        names = [*C.get(f"{file}.{own}", ()), *_texts(function)]
    else:
        base = own.removesuffix("_backward")
        names = [own, base + "_activation" + own.removeprefix(base), *C.get(f"{file}.{own}", ())]
        names += [name for name in _texts(function) if name.startswith(own) or name.endswith(f"_{own}")]
    known = [each for name in dict.fromkeys(names) if name.isidentifier() and (each := source.c(name))]
    if not known:
        texts = [name for each in source.helpers(function) for name in _texts(each)]
        known = [each for name in dict.fromkeys(texts) if name.isidentifier() and (each := source.c(name))]
    return [each for each in known if each.name not in (*ACTIVATIONS, *LOSSES) or each.name == own]


def _texts(found: Found) -> list[str]:
    nodes = ast.walk(ast.parse(found.text))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def of_stage4(file: str, name: str) -> list[Found]:
    """The kernels that a function of stage 4 leads to."""
    return [found for each in KERNELS.get(f"{file}.{name}", ()) if (found := source.kernel(each)) is not None]


_BLOCKED = ("matmul_4_fitted.multiply", "matmul_4_fitted.blocked_product", "matmul_4_fitted.pipeline")
_WINOGRAD = ("transform_weights", "transform_images", "finish")
_FEW = ("fused.make_forward_partial", "head.make_head", "update.make_update")

KERNELS: dict[str, tuple[str, ...]] = {
    **{f"activations.{name}": (f"activations.{name}_of", "activations.forward_kernel") for name in ELEMENTWISE},
    **{
        f"activations.{name}_backward": (f"activations.{name}_back", "activations.backward_kernel")
        for name in ELEMENTWISE
    },
    "activations.softmax": ("softmax.softmax_warp", "softmax.softmax_block", "softmax.softmax_thread"),
    "activations.softmax_backward": (
        "softmax.softmax_warp_backward",
        "softmax.softmax_block_backward",
        "softmax.softmax_thread_backward",
    ),
    "losses.mean_squared_error": ("losses.squared_error", "losses.target_kernels"),
    "losses.mean_squared_error_backward": ("losses.squared_error_slope", "losses.target_kernels"),
    "losses.softmax_cross_entropy": ("losses.softmax_kernels",),
    "losses.softmax_cross_entropy_backward": ("losses.softmax_kernels",),
    "losses.sigmoid_cross_entropy": ("losses.sigmoid_error", "losses.target_kernels"),
    "losses.sigmoid_cross_entropy_backward": ("losses.sigmoid_error_slope", "losses.target_kernels"),
    "losses.hinge": ("losses.hinge_kernels",),
    "losses.hinge_backward": ("losses.hinge_kernels",),
    "dense.Dense.forward": ("dense.add_bias",),
    "dense.Dense.backward": ("sums.columns_by_block",),
    "matmul.matmul": _BLOCKED,
    "matmul.matmul_tn": _BLOCKED[:2],
    "matmul.matmul_nt": _BLOCKED[:2],
    "matmul.naive": ("matmul_1_basic.naive",),
    "matmul.coalesced": ("matmul_1_basic.coalesced",),
    "matmul.tiled_16": ("matmul_1_basic.tiled",),
    "matmul.tiled_32": ("matmul_1_basic.tiled",),
    "matmul.register_1d": ("matmul_2_register.register_1d",),
    "matmul.register_2d": ("matmul_2_register.register_2d",),
    "matmul.vectorised": ("matmul_2_register.vectorised", "matmul_2_register._wide"),
    "matmul.conflict_free": ("matmul_2_register.conflict_free", "matmul_2_register._wide"),
    "matmul.warp_tiled": ("matmul_3_warp.multiply", "matmul_3_warp._product"),
    "matmul.pipelined": _BLOCKED,
    "matmul.wide_tile": _BLOCKED,
    "matmul.fitted_tile": _BLOCKED,
    "convolution.conv2d": ("convolution_4_blocked.correlate",),
    "convolution.conv2d_backward": ("convolution_4_blocked.correlate", "convolution_4_blocked.correlate_weights"),
    "convolution.naive": ("convolution_1_basic.naive",),
    "convolution.halo_tile": ("convolution_1_basic.halo_tile",),
    "convolution.im2col": ("convolution_2_im2col.columns", "convolution_2_im2col.finish"),
    "convolution.winograd2": tuple(f"convolution_5_winograd.{name}" for name in _WINOGRAD),
    "convolution.implicit_tile": ("convolution_3_implicit.correlate",),
    "convolution.implicit_blocked": ("convolution_4_blocked.correlate",),
    "convolution.fitted": ("convolution_4_blocked.correlate",),
    "pooling.max_pool2d": ("pooling.max_pool",),
    "pooling.max_pool2d_backward": ("pooling.max_backward", "pooling.max_backward_plane"),
    "pooling.average_pool2d": ("pooling.average_pool",),
    "pooling.average_pool2d_backward": ("pooling.average_backward",),
    "batch_norm.batch_norm": ("batch_norm.statistics", "batch_norm.normalise"),
    "batch_norm.batch_norm_backward": ("batch_norm.sums", "batch_norm.backward"),
    "network.Network.train_step": _FEW,
    "steps.few_kernels": _FEW,
    "steps.persistent_kernel": ("persistent.make_persistent",),
    "optimizers.SGD.step": ("optimizers.sgd", "optimizers.momentum", "optimizers.nesterov", "optimizers.update"),
    "optimizers.RMSProp.step": ("optimizers.rmsprop", "optimizers.update"),
    "optimizers.Adam.step": ("optimizers.adam", "optimizers.update"),
}
"""Function of stage 4 -> "file.function" of kernels, what computes first."""
