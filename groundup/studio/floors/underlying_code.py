"""Which C functions and kernels a Python function leads to.

below(stage, file, function, chain)
                  the C functions or kernels, what computes first
WORK              functions that put others together, in Python on every stage
"""

from __future__ import annotations

import ast
import re

from groundup.studio.floors import source
from groundup.studio.floors.source import STAGE3, STAGE4, Found
from shared.names import ACTIVATIONS, ELEMENTWISE, LOSSES

WORK = {
    **{name: name for name in ("Dense.forward", "Dense.backward")},
    **{"Network.forward": "forward", "Network.train_step": "Network._step", "Network.predict": "Network._classes"},
}
"""Method that puts other functions together -> the function of each stage in which it does so."""

C: dict[str, tuple[str, ...]] = {
    "dense.Dense.forward": ("add_bias", "dense_forward"),
    "dense.Dense.backward": ("column_sums", "dense_backward"),
    "network.Network.train_step": ("network_step",),
    **{f"matmul.{name}": ("matmul_packed.tile",) for name in ("matmul", "matmul_tn", "matmul_nt", "packed")},
    "matmul.threads": ("matmul_packed.tile", "matmul_nn"),
    **{f"convolution.{name}": ("convolution_channels.tile",) for name in ("conv2d", "threads")},
    "convolution.conv2d_backward": ("convolution_lanes.patch",),
    "steps.op_by_op": ("add_bias", "column_sums"),
    "steps.fused": ("dense_forward", "dense_backward"),
}
"""Function of stage 3 -> C functions whose names do not stand in it, what computes first."""


def below(stage: str, file: str, function: Found, chain: list[Found]) -> list[Found]:
    """The C functions or kernels that a function of a stage leads to; [] on the first two stages.

    file: its room, without .py; chain: the function, and those of its file that it calls
    """
    if stage == STAGE4:
        names = KERNELS.get(f"{file}.{function.name}") or _kernels_named(file, function.name)
        return [found for each in names if (found := source.kernel(each)) is not None]
    return _down_to_a_loop(_of_stage3(file, function, chain)) if stage == STAGE3 else []


def _of_stage3(file: str, function: Found, chain: list[Found]) -> list[Found]:
    """The C functions whose names stand in a function of stage 3, or in those of its file that it calls."""
    own = function.name
    texts = _texts(function)
    names = [*C.get(f"{file}.{own}", ()), *texts]
    if "." not in own and file != "steps":
        base = own.removesuffix("_backward")
        names = [*C.get(f"{file}.{own}", ()), own, base + "_activation" + own.removeprefix(base)]
        names += [name for name in texts if name.startswith(own) or name.endswith(f"_{own}")]
    known = [each for name in dict.fromkeys(names) if re.fullmatch(r"[\w.]+", name) and (each := source.c(name))]
    if not known:
        texts = [name for helper in chain[1:] for name in _texts(helper) if name.isidentifier()]
        known = [each for name in texts if (each := source.c(name))]
    return [each for each in dict.fromkeys(known) if each.name not in (*ACTIVATIONS, *LOSSES) or each.name == own]


def _down_to_a_loop(functions: list[Found]) -> list[Found]:
    """C functions, and what the first calls, if none has a loop: so that what computes is among them."""
    found = list(functions)
    for each in found:  # it grows
        if any("for (" in other.text for other in found):
            break
        found += [other for other in source.called_in_c(each) if other not in found]
    return found


def _texts(found: Found) -> list[str]:
    nodes = ast.walk(ast.parse(found.text))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _kernels_named(file: str, name: str) -> list[str]:
    """The kernel of a room's files that has a rung's own name."""
    files = sorted((source.ROOT / STAGE4 / "kernels").glob(f"{file}*.py"))
    return [f"{path.stem}.{name}" for path in files if re.search(rf"^def {name}\(", path.read_text("utf-8"), re.MULTILINE)]


_BLOCKED = ("matmul_4_fitted.blocked_product.product", "matmul_4_fitted.multiply", "matmul_4_fitted.pipeline")
_TILED = "matmul_1_basic.tiled.product"
_CORRELATE = "convolution_4_blocked.correlate.correlate_blocked"
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
    "losses.mean_squared_error": ("losses.squared_error", "losses.target_kernels.loss"),
    "losses.mean_squared_error_backward": ("losses.squared_error_slope", "losses.target_kernels.backward"),
    "losses.sigmoid_cross_entropy": ("losses.sigmoid_error", "losses.target_kernels.loss"),
    "losses.sigmoid_cross_entropy_backward": ("losses.sigmoid_error_slope", "losses.target_kernels.backward"),
    **{
        f"losses.{kind}{way}": tuple(f"losses.{kernels}.{each}" for each in (kind + way, *helpers))
        for kind, kernels, helpers in (
            ("softmax_cross_entropy", "softmax_kernels", ("largest_of", "exponentials_into", "exponentials_to_slopes")),
            ("hinge", "hinge_kernels", ("margins_of", "margins_to_slopes")),
        )
        for way in ("", "_backward")
    },
    "dense.Dense.forward": ("dense.add_bias",),
    "dense.Dense.backward": ("sums.columns_by_block",),
    **{f"matmul.{name}": (_TILED, *_BLOCKED) for name in ("matmul", "matmul_tn", "matmul_nt")},
    **{f"matmul.{name}": (_TILED, "matmul_1_basic.tiled") for name in ("tiled_16", "tiled_32")},
    "matmul.register_1d": ("matmul_2_register.register_1d.multiply",),
    "matmul.register_2d": ("matmul_2_register.register_2d.multiply",),
    **{f"matmul.{name}": ("matmul_2_register._wide.multiply",) for name in ("vectorised", "conflict_free")},
    "matmul.warp_tiled": ("matmul_3_warp._product.product", "matmul_3_warp.multiply"),
    **{f"matmul.{name}": _BLOCKED for name in ("pipelined", "wide_tile", "fitted_tile")},
    **{f"convolution.{name}": (_CORRELATE,) for name in ("conv2d", "implicit_blocked", "fitted")},
    "convolution.conv2d_backward": (
        "convolution_4_blocked.correlate_weights.correlate_weights_blocked",
        _CORRELATE,
    ),
    "convolution.im2col": ("convolution_2_im2col.columns", "convolution_2_im2col.finish"),
    "convolution.winograd2": tuple(f"convolution_5_winograd.{name}" for name in _WINOGRAD),
    "convolution.implicit_tile": ("convolution_3_implicit.correlate.correlate_tile",),
    "pooling.max_pool2d": ("pooling.max_pool",),
    "pooling.max_pool2d_backward": ("pooling.max_backward", "pooling.max_backward_plane"),
    "pooling.average_pool2d": ("pooling.average_pool",),
    "pooling.average_pool2d_backward": ("pooling.average_backward",),
    "batch_norm.batch_norm": ("batch_norm.normalise", "batch_norm.statistics"),
    "batch_norm.batch_norm_backward": ("batch_norm.backward", "batch_norm.sums"),
    "network.Network.train_step": _FEW,
    "steps.few_kernels": _FEW,
    "steps.persistent_kernel": ("persistent.make_persistent",),
    "optimizers.SGD.step": tuple(f"optimizers.{name}" for name in ("update", "sgd", "momentum", "nesterov")),
    "optimizers.RMSProp.step": ("optimizers.update", "optimizers.rmsprop"),
    "optimizers.Adam.step": ("optimizers.update", "optimizers.adam"),
}
"""Function of stage 4 -> "file.function" of kernels, what computes first."""
