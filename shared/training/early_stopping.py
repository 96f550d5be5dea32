"""Early stopping: a training ends when the samples that were set aside have not got better for some epochs.

    epoch               1      2      3      4      5
    validation loss  0.50   0.31   0.28   0.29   0.28
    best epoch          1      2      3      3      3
    epochs after it     0      0      0      1      2     a patience of 2 ends the training here

The loss of the training samples goes on falling, so it cannot tell when to stop. The parameters of the best epoch are
kept in best.safetensors, and the epochs after it cost only time.
"""

from __future__ import annotations

from collections.abc import Sequence


def best_epoch_and_wait(values: Sequence[float], higher_is_better: bool) -> tuple[int, int]:
    """The best epoch so far, and how many epochs have come after it.

    values: the measurement after each epoch, at least one; not changed
    higher_is_better: True for an accuracy, False for a loss
    Returns (the number of the best epoch, from 1; the number of epochs after it), two ints. Of equal values the first
    is the best: an epoch that is only as good as the best one has improved nothing.

    >>> best_epoch_and_wait([0.50, 0.31, 0.28, 0.29, 0.28], higher_is_better=False)
    (3, 2)
    """
    # index finds the first of equal values.
    best = max(values) if higher_is_better else min(values)
    epoch = values.index(best) + 1
    return epoch, len(values) - epoch
