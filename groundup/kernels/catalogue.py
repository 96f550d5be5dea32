"""The list of all kernels: what each is compiled for, how many threads its blocks have, and what it may cost.

entries.py says how a line is read; the kernels of convolutional networks have their lines in images.py.

The budget is the most registers that a thread may take on any architecture. It is chosen by what it leaves room for:
a multiprocessor has 65,536 registers, so 32 a thread let 2,048 threads live there, 64 let 1,024, 128 let 512. float64
takes two registers a number.
"""

from __future__ import annotations

from groundup.kernels.entries import DTYPES, Entry, entry
from groundup.kernels.images import CONVOLUTION, IMAGES
from shared import names
from shared.names import ACTIVATIONS, LABEL_LOSSES

FORMS = ("nn", "tn", "nt")
VECTOR = (True, False)
"""Whether a kernel reads memory 128 bits at a time, as aligned rows allow."""

RELU, SOFTMAX = ACTIVATIONS.index("relu"), ACTIVATIONS.index("softmax")
"""Activations by number; softmax, the last, is none that a product ends in."""

MATMUL = (
    entry("matmul_1_basic.naive", "T[2] T[2] T[2]", 256, 40, 48, share=0.12),
    entry("matmul_1_basic.coalesced", "T[2] T[2] T[2]", 256, 40, 48, share=0.12),
    *(
        entry(
            f"matmul_1_basic.tiled({tile}, '{form}').{name}",
            arguments,
            tile * tile,
            64,
            64,
            share=0.15 if tile == 16 else 0.21,
            variant=tile == 16 and (form, name) != ("nn", "multiply"),
        )
        for tile in (16, 32)
        for form, name, arguments in (
            *((form, "multiply", "T[2] T[2] T[2]") for form in FORMS),
            ("nn", "forward", "T[2] T[2] T[1] int64 T[2]"),
            ("nt", "backward", "T[2] T[2] T[2] int64 T[2] int64 T[2]"),
        )
    ),
    *(
        entry(
            f"matmul_2_register.{rung}('{form}')",
            "T[2] T[2] T[2]",
            threads,
            *registers,
            share=share,
            variant=form != "nn",
        )
        for rung, threads, registers, share in (
            ("register_1d", 512, (64, 64), 0.15),
            ("register_2d", 256, (128, 232), 0.6),
        )
        for form in FORMS
    ),
    *(
        entry(
            f"matmul_2_register.{rung}('{form}', {vector}, dtype)",
            "T[2] T[2] T[2]",
            256,
            168,
            255,
            share=0.89 if vector else 0.8,
            wide_loads=32,
            variant=(form, vector) != ("nn", True),
        )
        for rung in ("vectorised", "conflict_free")
        for form in FORMS
        for vector in VECTOR
    ),
    *(
        entry(
            f"matmul_3_warp.{call}",
            arguments,
            256,
            128 if vector else 208,
            255,
            share=0.87 if vector else 0.8,
            wide_loads=32,
            variant=variant,
        )
        for vector in VECTOR
        for call, arguments, variant in (
            *(
                (f"multiply('{form}', {vector}, dtype)", "T[2] T[2] T[2]", not vector and form != "nn")
                for form in FORMS
            ),
            *(
                (
                    f"forward({vector}, dtype, {activation})",
                    "T[2] T[2] T[1] T[2]",
                    (vector, activation) != (True, RELU),
                )
                for activation in range(SOFTMAX)
            ),
            *(
                (
                    f"backward({vector}, dtype, {activation}, {masked})",
                    "T[2] T[2] T[2] T[2] T[2]",
                    (vector, activation, masked) != (True, RELU, True),
                )
                for activation in range(SOFTMAX)
                for masked in (False, True)
            ),
        )
    ),
    *(
        entry(
            f"matmul_4_fitted.multiply('{name}', '{form}', {vector}, dtype)",
            "T[2] T[2] T[2]",
            threads,
            registers if vector else most,
            255,
            share=share if vector else share - 0.1,
            wide_loads=32,
            dtypes=("float32",) if name == "wide_tile" else DTYPES,
            variant=(form, vector) != ("nn", True) or name == "narrow_tile",
        )
        for name, threads, registers, most, share in (
            ("pipelined", 256, 128, 168, 0.86),
            ("wide_tile", 256, 255, 255, 0.9),
            ("small_tile", 128, 168, 200, 0.85),
            ("narrow_tile", 128, 128, 128, 0.82),
        )
        for form in FORMS
        for vector in VECTOR
    ),
    *(
        entry(
            f"matmul_5_tensor.multiply('{form}', {vector}, '{precision}')",
            "T[2] T[2] T[2]",
            256,
            168,
            168,
            share=least[0 if vector else 1],
            dtypes=("float32",),
            needs=(8, 0),
            variant=(form, vector) != ("nn", True),
        )
        # Each factor is rounded in the inner loop. Keeping a NaN lowered tf32's share to 0.135 and 0.099.
        for precision, least in (("tf32", (0.13, 0.095)), ("bf16", (0.09, 0.05)))
        for form in FORMS
        for vector in VECTOR
    ),
    *(
        entry(
            f"matmul_6_operands.operand('{precision}', {transposed})",
            "float32[2] int32[2]",
            256,
            64,
            64,
            needs=needs,
            variant=(precision, transposed) != ("bf16", True),
        )
        for precision, needs in (("tf32", (8, 0)), ("bf16", (8, 0)), ("f16", (7, 5)))
        for transposed in (False, True)
    ),
    *(
        entry(
            f"matmul_7_fragments.multiply('{rung}', '{precision}')",
            "int32[2] int32[2] float32[2]",
            128 if rung == "square_warps" else 256,
            # with more registers fewer than two blocks would fit
            *((136, 136) if precision == "f16" else (255, 255) if rung == "square_warps" else (128, 128)),
            share=share,
            wide_loads=loads,
            needs=needs,
            variant=(rung, precision) not in (("swizzled", "f16"), ("staged", "tf32"), ("square_warps", "bf16")),
        )
        for rung, share, loads in (
            ("packed", 0.24, 0),
            ("ldmatrix", 0.31, 12),
            ("swizzled", 0.33, 12),
            ("staged", 0.28, 12),
            ("square_warps", 0.37, 16),
        )
        for precision, needs in (("tf32", (8, 0)), ("bf16", (8, 0)), ("f16", (7, 5)))
        if precision != "f16" or rung not in ("staged", "square_warps")
    ),
    *(
        entry(
            f"matmul_8_pipelined.multiply('{rung}', '{precision}')",
            "int32[2] int32[2] float32[2]",
            threads,
            *(255, 255),
            share=0.4,
            wide_loads=16,
            needs=(8, 0),
            launch_shared=given,
            variant=(rung, precision) != ("wide_tile", "bf16"),
        )
        for rung, threads, given in (("pipelined", 128, 0), ("wide_tile", 256, 72 * 1024))
        for precision in ("tf32", "bf16")
    ),
)

ELEMENTWISE = (
    *(entry(f"activations.FORWARD['{name}']", "T[1] T[1]", 256, 40, 64) for name in names.ELEMENTWISE),
    *(entry(f"activations.BACKWARD['{name}']", "T[1] T[1] T[1]", 256, 40, 64) for name in names.ELEMENTWISE),
    *(entry(f"softmax.softmax_{name}", "T[2] T[2]", 256, 72, 80) for name in ("thread", "warp", "block")),
    *(entry(f"softmax.softmax_{name}_backward", "T[2] T[2] T[2]", 256, 64, 64) for name in ("thread", "warp", "block")),
    entry("dense.add_bias", "T[2] T[1]", 256, 40, 40),
    entry("dense.multiply", "T[1] T[1] T[1]", 256, 40, 40),
)

LOSSES = tuple(
    # A lane for each row is for the emulator.
    entry(f"losses.{kernels}[{lanes}]['{name}']", f"T[2] {targets} {written}", 256, 64, 80, variant=lanes == 1)
    for lanes in (32, 1)
    for name, targets in ((name, "int32[1]" if name in LABEL_LOSSES else "T[2]") for name in names.LOSSES)
    for kernels, written in (("LOSS", "T[1]"), ("BACKWARD", "T[2]"), ("FUSED", "T[1] T[2]"))
)

BATCHES = (
    entry("gather.gather_bytes", "uint8[2] int32[1] int64[1] T[2]", 256, 64, 64),
    entry("gather.gather_rows", "float32[2] int32[1] int64[1] T[2]", 256, 64, 64),
    entry("gather.gather_labels", "int32[1] int32[1] int64[1] int32[1]", 256, 40, 40),
    entry("gather.gather_targets", "int32[1] int32[1] int64[1] T[2]", 256, 64, 64),
    entry("images.gather_table", "uint8[2] T[1] int32[1] int64[1] T[2]", 256, 64, 64),
    entry(
        "images.gather_moved",
        "uint8[2] T[1] T int32[1] int64[1] float64[2] int32 int32 T[2]",
        *(256, 64, 64),
        float64=True,
    ),
    entry("dropout.dropout_mask", "uint64 int64[1] uint64 uint64 T T[2]", 256, 64, 64),
    entry("interchange.leaky_relu", "T[1] T T[1]", 256, 40, 40),
    entry("interchange.leaky_relu_backward", "T[1] T[1] T T[1]", 256, 40, 40),
    entry("resident.begin_step", "T[2] int64[1] T[1]", 256, 40, 40),
    entry("resident.end_step", "int64[1] int64", 256, 40, 40),
    entry("resident.end_kept_step", "T[1] T[2] int64[1]", 256, 40, 40),
)

SUMS = (
    entry("sums.columns_by_thread", "T[2] T[1]", 256, 64, 64),
    entry("sums.columns_by_atomics", "T[2] T[1]", 256, 64, 64),
    entry("sums.columns_by_block", "T[2] T[1]", 1024, 64, 64),
    entry("sums.total_by_thread", "T[1] T[1]", 1, 64, 64),
    entry("sums.total_by_tree", "T[1] T[1]", 1024, 64, 64),
    entry("sums.total_by_warps", "T[1] T[1]", 1024, 64, 64),
)

OPTIMIZERS = (
    entry("optimizers.sgd", "T[1] T[1] T[1]", 256, 40, 64),
    entry("optimizers.momentum", "T[1] T[1] T[1] T[1]", 256, 40, 64),
    entry("optimizers.nesterov", "T[1] T[1] T[1] T[1]", 256, 40, 64),
    entry("optimizers.rmsprop", "T[1] T[1] T[1] T[1]", 256, 40, 64),
    entry("optimizers.adam", "T[1] T[1] T[1] T[1] T[1]", 256, 40, 64),
)

_LAYER = "T[2] T[2] T[1] T[1] T[1] T[1] T[1] T[1] T[2] T[1]"

FUSED = (
    *(
        line
        for tile in (16, 32)
        for line in (
            entry(f"fused.FORWARD_PARTIAL[{tile}]", "T[2] T[2] T[3]", tile * tile, 64, 64, variant=tile == 32),
            entry(
                f"fused.FORWARD_BYTES[{tile}]",
                "uint8[2] int32[1] int32[1] int64[1] T[2] T[1] T[2] T[2] int32[1] T[3]",
                tile * tile,
                64,
                64,
                variant=tile == 32,
            ),
            entry(
                f"update.UPDATE[{tile}]",
                f"int64 T[1] int64[1] int64 int64 {_LAYER} {_LAYER}",
                tile * tile,
                64,
                64,
                # Tiles of 32 are for the emulator: in float64 no device has the registers for such a block.
                dtypes=DTYPES if tile == 16 else ("float32",),
                variant=tile == 32,
            ),
        )
    ),
    entry("fused.combine", "int64 T[3] T[1] T[2] T[2] T[2] int64", 256, 80, 80),
    entry("blocked.combine_back", "int64 T[3] T[2] T[2] int64 T[2]", 256, 80, 80),
    *(
        entry(
            f"head.HEAD[{rows}]",
            "int64 int64 T[3] T[1] T[2] T[2] T[2] int64 T[2] T[1] int32[1] T[2] T[2] T[2] T[2] int64[1]",
            256,
            96,
            128,
            variant=rows == 8,
        )
        for rows in (4, 8)
    ),
)

BLOCKED = tuple(
    entry(f"blocked.{name}[{side}]", arguments, 256, registers, 128, share=0.4, wide_loads=16, variant=side == 64)
    for side in (32, 64)
    for name, arguments, registers in (
        ("FORWARD", "T[2] T[2] T[1] int64 T[2]", 80),
        ("BACKWARD", "T[2] T[2] T[2] int64 T[2] int64 T[2]", 80),
        ("FORWARD_PARTIAL", "T[2] T[2] T[3]", 80),
        ("BACKWARD_PARTIAL", "T[2] T[2] T[3]", 80),
        ("FORWARD_BYTES", "uint8[2] int32[1] int32[1] int64[1] T[2] T[1] T[2] T[2] int32[1] T[3]", 80),
        ("UPDATE", f"int64 T[1] int64[1] int64 int64 {_LAYER} {_LAYER}", 80),
    )
)

_PARAMETERS = "T[1] T[1] T[1] T[1] T[1] T[1] T[2] T[1]"

PERSISTENT = tuple(
    entry(
        f"persistent.PERSISTENT[{chunk}, {as_bytes}]",
        f"{'uint8' if as_bytes else 'T'}[2] int32[1] T[2] int64 int32[1] int64 int64 int64 int64 int64 int64 T[2] "
        f"T[2] int64 uint64 int64 uint64 T {_PARAMETERS} {_PARAMETERS} T[1] T[1] T[1] T[1] T[2] int32[1]",
        256,
        248,  # one block is alone on a multiprocessor, whose 65,536 registers would do for 256 a thread
        248,
        dtypes=dtypes,
        variant=(chunk, as_bytes) != (32, True),
    )
    for chunk, dtypes in ((64, ("float32",)), (32, DTYPES), (16, ("float64",)))
    for as_bytes in (True, False)
)

CATALOGUE: tuple[Entry, ...] = (
    *MATMUL,
    *ELEMENTWISE,
    *LOSSES,
    *BATCHES,
    *IMAGES,
    *SUMS,
    *OPTIMIZERS,
    *FUSED,
    *BLOCKED,
    *CONVOLUTION,
    *PERSISTENT,
)
