"""Where the windows of one convolution lie: the sizes that its kernels and their launches are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.windows import Pair


@dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution, for any number of images. Equal sizes are equal objects.

    channels, image: of x, (C, H, W); filters: O; window: (kh, kw); output: (H', W')
    """

    channels: int
    image: Pair
    filters: int
    window: Pair
    stride: Pair
    padding: Pair
    output: Pair

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """(down, right, top, left): the strides and the padding, as the kernels take them."""
        return (*self.stride, *self.padding)

    @property
    def terms(self) -> int:
        """How many products are summed for an output: C kh kw."""
        return self.channels * math.prod(self.window)

    @property
    def weights(self) -> int:
        """How many numbers all kernels have: O C kh kw."""
        return self.filters * self.terms
