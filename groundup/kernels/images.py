"""The kernels of convolutional networks: lines of the catalogue, whose first lines say how to read them."""

from __future__ import annotations

from groundup.kernels.entries import entry

_PLANES = "T[3] int64 int64 int64 int64"
_CHANNELS = "T[1] T[1] T[1] T[1]"

IMAGES = (
    entry("pooling.max_pool", f"{_PLANES} int64 T[3] int32[3]", 256, 72, 80),
    entry("pooling.max_backward_plane", "T[2] int64[2] T[3]", 256, 64, 64),
    entry("pooling.max_backward", f"T[3] T[3] int64 int32[3] T[3] int64 {_PLANES[5:]} T[3]", 256, 64, 64),
    entry("pooling.average_pool", f"{_PLANES} T[3]", 256, 64, 64),
    entry("pooling.average_backward", f"{_PLANES} T[3]", 256, 64, 64),
    entry("residual.join", "T[1] T[1] int64 T[1]", 256, 40, 64),
    entry("batch_norm.statistics", "T[3] T[3]", 256, 64, 64),
    entry(
        "batch_norm.normalise",
        f"T[3] T[3] {_CHANNELS} T T int64 int64 T[3] int64 int64 T[2] T[3]",
        256,
        96,  # on 12.0; at most 64 up to 9.0
        96,
    ),
    entry("batch_norm.sums", "T[3] T[3] int64 T[3] T[2] T[3]", 256, 64, 64),
    entry(
        "batch_norm.backward",
        "T[3] T[3] int64 T[3] T[2] T[1] T[3] int64 T[1] T[1] T[3] int64 T[3]",
        256,
        96,  # the same
        96,
    ),
)

MAX_POOL_INT64 = entry("pooling.max_pool", f"{_PLANES} int64 T[3] int64[3]", 256, 72, 80)
"""`max_pool2d` by itself, whose indices are int64; those of a network are int32."""

_IMAGES = "T[4] T[4] T[1] int64 int64 int64 int64 T[4]"

CONVOLUTION = (
    entry("convolution_1_basic.naive", _IMAGES, 256, 64, 80),
    entry("convolution_1_basic.halo_tile", _IMAGES, 256, 96, 104),
    entry("convolution_1_basic.grad_input", "T[4] T[4] int64 int64 int64 int64 T[4]", 256, 80, 96),
    entry("convolution_1_basic.grad_weights_parts", "T[4] T[4] int64 int64 int64 int64 T[4] T[2]", 256, 80, 96),
    entry("convolution_1_basic.add_parts", "T[2] T[1] T[1]", 256, 64, 64),
    *(
        entry(
            f"convolution_3_implicit.correlate({spread})",
            "T[1] T[1] int64 T[1] int64 int32[2] int32[1] T[1]",
            512,
            96,
            96,
            variant=spread,
        )
        for spread in (False, True)
    ),
    *(
        entry(
            f"convolution_4_blocked.correlate({side}, {spread})",
            "T[1] T[1] int64 T[1] int64 int32[2] int32[1] T[1]",
            256,
            80,
            128,
            share=(0.1 if spread else 0.38) if side == 32 else (0.18 if spread else 0.55),
            wide_loads=16,
            variant=spread or side == 64,
        )
        for side in (32, 64)
        for spread in (False, True)
    ),
    *(
        entry(
            f"convolution_4_blocked.CORRELATE_WEIGHTS[{side}]",
            "T[1] T[1] int32[2] int32[1] T[2]",
            256,
            80,
            128,
            share=0.19 if side == 32 else 0.38,
            wide_loads=16,
            variant=side == 64,
        )
        for side in (32, 64)
    ),
    entry("convolution_2_im2col.columns", "T[1] int32[2] int32[1] T[2]", 256, 48, 48),
    entry("convolution_2_im2col.finish", "T[2] T[1] int64 int32[1] T[1]", 256, 64, 64),
    entry("convolution_5_winograd.transform_weights", "T[4] T[2]", 256, 64, 80),
    entry("convolution_5_winograd.transform_images", "T[4] int64 int64 int64 int64 T[2]", 256, 96, 128),
    entry("convolution_5_winograd.finish", "T[3] T[1] int64 int64 int64 T[4]", 256, 80, 96),
    entry("convolution_3_implicit.correlate_weights", "T[1] T[1] int32[2] int32[1] T[2]", 512, 64, 64),
    *(
        entry(
            f"convolution_6_tensor.{call}",
            arguments,
            256,
            96,
            96,
            dtypes=("float32",),
            needs=(8, 0),
            variant=(precision, spread) != ("tf32", False),
        )
        for precision in ("tf32", "bf16")
        for call, arguments, spread in (
            *(
                (
                    f"correlate('{precision}', {spread})",
                    "T[1] T[1] int64 T[1] int64 int32[2] int32[1] T[1]",
                    spread,
                )
                for spread in (False, True)
            ),
            (f"correlate_weights('{precision}')", "T[1] T[1] int32[2] int32[1] T[2]", False),
        )
    ),
)
