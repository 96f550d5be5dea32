"""shared.profile.work: floating-point operations and bytes, against counts made by hand for one case of each operation.

The cases are small enough to count on paper. All are float32, 4 bytes a number, but for labels and indices of 8.
"""

from __future__ import annotations

from typing import Any

import pytest

from shared.architectures import Architecture
from shared.bench.kinds.operation_table import Work
from shared.layers import Activate, AveragePool, BatchNorm, Conv, Dense, Dropout, Flatten, MaxPool, Placed, Residual
from shared.profile import work

IMAGE = (3, 5, 6)
"""3 channels of 5 x 6: 90 numbers, 180 in a batch of two."""

CONV = Conv(4, (2, 3), stride=(2, 1), padding=(1, 0))
"""(3, 5, 6) -> (4, 3, 4): 96 outputs of two images, 4 * 3 * 2 * 3 = 72 weights, each output a sum of 18 products."""

BY_HAND: list[tuple[Any, tuple[int, ...], tuple[int, int], tuple[int, int]]] = [
    # 96 outputs of 18 multiply-adds and a bias; x 180, w 72, b 4, y 96. Back: dW and dx cost a product each, db 96
    # additions; x 180, dy 96, dW 72, db 4 and for dx w 72 and dx 180.
    (CONV, IMAGE, (2 * 96 * 18 + 96, 4 * 352), (4 * 96 * 18 + 96, 4 * 604)),
    # (2, 7) times (7, 5): 70 multiply-adds and 10 biases; x 14, W 35, b 5, y 10. Back: two products and 10 additions;
    # x 14, dy 10, dW 35, db 5, W 35, dx 14.
    (Dense(5), (7,), (150, 4 * 64), (290, 4 * 113)),
    # Two images of 3 x 2 x 3 = 18 windows of four numbers: three comparisons each; 36 outputs and as many indices.
    # Back: an addition for each of them.
    (MaxPool(2), IMAGE, (36 * 3, 4 * (180 + 36) + 8 * 36), (36, 4 * (36 + 180) + 8 * 36)),
    # Three additions and a factor for each window; back a factor, and four additions into the image.
    (AveragePool(2), IMAGE, (36 * 4, 4 * (180 + 36)), (36 * 5, 4 * (180 + 36))),
    # 180 numbers, eight operations each; x and y, gamma and beta, and both running statistics read and written. Back:
    # nine; x, dy and dx; gamma, dgamma, dbeta.
    (BatchNorm(), IMAGE, (1440, 4 * (360 + 18)), (1620, 4 * (540 + 9))),
    (Activate("relu"), IMAGE, (180, 4 * 360), (180, 4 * 540)),
    (Activate("sigmoid"), (7,), (14 * 4, 4 * 28), (14 * 3, 4 * 42)),
    (Activate("identity"), (7,), (0, 4 * 28), (0, 4 * 28)),
    (Dropout(0.5), (7,), (14, 4 * 42), (14, 4 * 42)),
    (Flatten(), IMAGE, (0, 4 * 360), (0, 4 * 360)),
    # The addition alone: the block's layers are counted by themselves.
    (Residual((Activate("relu"),)), IMAGE, (180, 4 * 540), (180, 4 * 540)),
]


def placed(layer: Any, shape: tuple[int, ...]) -> Placed:
    return Architecture(shape, (layer,)).placed()[-1]


@pytest.mark.parametrize(("layer", "shape", "forward", "backward"), BY_HAND, ids=lambda value: type(value).__name__)
def test_the_work_of_a_layer_is_what_was_counted_by_hand(
    layer: Any, shape: tuple[int, ...], forward: tuple[int, int], backward: tuple[int, int]
) -> None:
    each = placed(layer, shape)
    assert work.forward(each, 2, 4) == Work(*forward)
    assert work.backward(each, 2, 4) == Work(*backward)


def test_the_first_layers_way_back_makes_no_gradient_of_the_input() -> None:
    assert work.backward(placed(CONV, IMAGE), 2, 4, needs_grad_input=False) == Work(2 * 96 * 18 + 96, 4 * 352)
    # x 14, dy 10, dW 35, db 5
    assert work.backward(placed(Dense(5), (7,)), 2, 4, needs_grad_input=False) == Work(150, 4 * 64)


def test_float64_doubles_the_numbers_and_leaves_indices_as_they_are() -> None:
    each = placed(MaxPool(2), IMAGE)
    assert work.forward(each, 2, 8).bytes == 8 * 216 + 8 * 36
    assert work.forward(each, 2, 4, index_bytes=4).bytes == 4 * 216 + 4 * 36
    assert work.forward(placed(Flatten(), IMAGE), 2, 4, moves=False) == Work(0, 0)


def test_the_work_of_the_loss_is_what_was_counted_by_hand() -> None:
    # Six outputs of two rows. Softmax cross-entropy: a maximum, a difference, an exponential and a sum; for its
    # gradient a quotient and one by the batch, too. Outputs 6, labels 2 of 8 bytes, the loss 8 bytes; the gradient 6.
    assert work.loss("softmax_cross_entropy", 2, 3, 4) == (
        Work(24, 24 + 16 + 8),
        Work(36, 24 + 16 + 24),
        Work(36, 24 + 16 + 8 + 24),
    )
    # Targets are numbers here: six of them. Nothing of the loss helps with the gradient.
    alone, gradient, both = work.loss("mean_squared_error", 2, 3, 4)
    assert (alone, gradient) == (Work(18, 24 + 24 + 8), Work(12, 24 + 24 + 24))
    assert both == Work(30, 24 + 24 + 24 + 8)


def test_the_work_of_the_update_is_what_was_counted_by_hand() -> None:
    # p and g read, p written; rate times g, and a difference.
    assert work.update("SGD", 100, 4) == Work(200, 1200)
    # m, v, p and g read, m, v and p written.
    assert work.update("Adam", 100, 8) == Work(1300, 5600)


def test_what_is_fused_computes_both_and_moves_the_intermediate_result_only_where_it_takes_a_pass() -> None:
    main, second = Work(100, 40), Work(10, 16)
    assert work.fused(main, second, in_pass=True) == Work(110, 40)
    assert work.fused(main, second, in_pass=False) == Work(110, 56)
