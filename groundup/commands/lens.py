"""`groundup lens`: what a kernel does to memory, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose words after `--` are the script's own arguments."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what stands after `--` apart, in the context's args."""
        at = args.index("--") if "--" in args else len(args)
        super().parse_args(ctx, args[:at])
        ctx.args = args[at + 1 :]
        return args


def lens(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A kernel: SCRIPT.py:KERNEL, or one of ours like tiled_16 or halo_tile.", show_default=False
        ),
    ],
    second: Annotated[str | None, typer.Argument(help="A second kernel, to compare.", show_default=False)] = None,
    size: Annotated[
        str,
        typer.Option(
            help="For our kernels: m,n,k of the product, or rows,columns, also of images; one number for all."
        ),
    ] = "256",
    dtype: Annotated[str, typer.Option(help="For our kernels: float32 or float64.")] = "float32",
    launch: Annotated[int, typer.Option(help="For a script: which launch of the kernel, from 1.")] = 1,
    args: Annotated[
        str | None, typer.Option(help='For a script: arguments, like "a=float32[64,64] n=64"; nothing is launched.')
    ] = None,
    grid: Annotated[str, typer.Option(help="With --args: blocks, like 4 or 4,4.", show_default=False)] = "",
    block: Annotated[str, typer.Option(help="With --args: threads in a block.", show_default=False)] = "",
    sharedmem: Annotated[int, typer.Option(help="With --args: bytes of dynamic shared memory.")] = 0,
    blocks: Annotated[
        str, typer.Option(help="How many blocks to trace (8), or which (0,5). Default: four.", show_default=False)
    ] = "",
    device: Annotated[
        str, typer.Option(help="For occupancy and roofline: T4, RTX 3080, RTX 4090, A100 or H100.")
    ] = "H100",
    html: Annotated[Path | None, typer.Option(help="Also write a page with pictures to this file.")] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead.")] = False,
    source: Annotated[
        bool, typer.Option("--source", help="Instead: print the Python that the emulator generates.")
    ] = False,
) -> None:
    """Show how a kernel uses memory. Needs no GPU.

    It finds uncoalesced accesses, bank conflicts, divergence, races and repeated loads. A few blocks of one launch run
    on the emulator, on copies of the arguments, and every access is recorded. A script runs up to this launch.

    Exit code: 0; 1 if a race, an uninitialised read or a fault was found, or the script raised; 2 for a mistake.

    \b
    Examples:
      groundup lens tiled_16
      groundup lens naive coalesced --size 512 --html compared.html
      groundup lens softmax_warp --size 128,1000
      groundup lens halo_tile --size 28             a convolution of two images of 28 by 28, 3 by 3
      groundup lens kernels.py:scale --blocks 8
      groundup lens kernels.py:scale -- --rows 64     the script's own arguments stand after --
      groundup lens kernels.py:scale --args "x=float32[1000] y=float32[1000]" --grid 4 --block 256
    """
    from cuda_emulator.inspection import lens_command
    from groundup.compiling.emulator_hooks import emulator_for_stage_4

    with emulator_for_stage_4():
        code = lens_command.lens(
            [target] if second is None else [target, second],
            launch=launch,
            args=args,
            grid=grid,
            block=block,
            sharedmem=sharedmem,
            blocks=blocks,
            device=device,
            html=html,
            json=as_json_,
            source=source,
            size=size,
            dtype=dtype,
            script_arguments=context.args,
        )
    if code:
        raise typer.Exit(code)


COMMAND_CLASS = Command
