"""The multiplications of a convolution: counted by hand, and the crossover that they predict."""

from __future__ import annotations

import pytest

from shared.profile.multiplications import by_fourier, by_windows, by_winograd, crossover


def test_small_layers_are_counted_by_hand() -> None:
    assert by_windows((1, 1, 4, 4), (1, 1, 3, 3)) == 4 * 9
    assert by_windows((2, 3, 5, 4), (7, 3, 3, 2), (1, 0)) == 2 * 7 * (5 * 3) * (3 * 3 * 2)
    assert by_winograd((1, 1, 4, 4), (1, 1, 3, 3)) == 16
    assert by_winograd((2, 3, 13, 13), (5, 3, 3, 3), outputs=4) == 2 * 3 * 5 * 9 * 36
    assert by_fourier((1, 1, 4, 4), (1, 1, 3, 3)) == 3 * 16 * 4 + 4 * 8
    assert by_fourier((2, 3, 2, 6), (5, 3, 1, 1), (1, 1)) == 31 * 32 * 5 + 4 * 16 * 30


def test_winograds_products_are_as_many_times_fewer_as_its_tile_says() -> None:
    x, weights = (8, 16, 18, 18), (32, 16, 3, 3)
    for outputs, times in ((2, 36 / 16), (4, 144 / 36)):
        assert by_windows(x, weights) == times * by_winograd(x, weights, outputs=outputs)


@pytest.mark.parametrize(("layer", "size"), [((1, 1, 1, 256), 9), ((8, 16, 16, 32), 3), ((1, 1, 1, 4), 0)])
def test_the_crossover_is_the_first_kernel_that_fourier_multiplies_less_for(
    layer: tuple[int, int, int, int], size: int
) -> None:
    assert crossover(*layer) == size


def test_a_window_that_does_not_fit_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"the window \(5, 5\) is larger than the image \(4, 4\)"):
        by_windows((1, 1, 4, 4), (1, 1, 5, 5))
