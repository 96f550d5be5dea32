"""Draws the figures of the book.

    python docs/figures/draw.py             all of them, into docs/figures
    python docs/figures/draw.py roofline    those with this in their name

Numbers in a figure are computed here, by the project's own code, or come from the data sheets in
cuda_emulator/lens/devices.py. style.py has what the figures have in common; each other file has those of one subject.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import backpropagation
import convolution
import convolution_gradient
import convolution_networks
import convolution_rungs
import convolution_sizes
import cuda_guide
import eight_bits
import gpu_step
import house
import matplotlib
import numerics
import phase1_python
import phase2_numpy
import phase3_c
import phase4_first_kernels
import phase5_training_kernels
import phase6_inside
import phase7_feeding
import phase7_kernels
import phase7_week21
import phase7_week22
import phase7_windows
import ranks
import training_networks
from matplotlib.figure import Figure
from style import save

FIGURES: dict[str, Callable[[], Figure]] = {
    **house.FIGURES,
    **backpropagation.FIGURES,
    **convolution.FIGURES,
    **convolution_gradient.FIGURES,
    **convolution_networks.FIGURES,
    **convolution_rungs.FIGURES,
    **convolution_sizes.FIGURES,
    **cuda_guide.FIGURES,
    **eight_bits.FIGURES,
    **gpu_step.FIGURES,
    **numerics.FIGURES,
    **phase1_python.FIGURES,
    **phase2_numpy.FIGURES,
    **phase3_c.FIGURES,
    **phase4_first_kernels.FIGURES,
    **phase5_training_kernels.FIGURES,
    **phase6_inside.FIGURES,
    **phase7_windows.FIGURES,
    **phase7_week21.FIGURES,
    **phase7_week22.FIGURES,
    **phase7_feeding.FIGURES,
    **phase7_kernels.FIGURES,
    **ranks.FIGURES,
    **training_networks.FIGURES,
}
"""File name without its ending -> the function that draws it."""


def main(wanted: str = "") -> None:
    for name, draw in FIGURES.items():
        if wanted in name:
            with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
                print(save(draw(), name))


if __name__ == "__main__":
    main(*sys.argv[1:])
