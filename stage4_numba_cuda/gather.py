"""Launches of the kernels that pick a mini-batch on the device; what each does is said in kernels/gather.py.

All four: order (any,) int32 on the device, one index into the data for each sample of the epoch; position (1,) int64 on
the device, where in `order` the batch begins. The batch has as many rows as the array that is written. The values
of the indices are not checked: they are on the device, and a check would take longer than the gathering.
"""

from __future__ import annotations

from . import launch
from .arrays import Array, on_device
from .kernels import gather as kernels

Wanted = tuple[str, Array, str, int]
"""An argument: its name, the array, the dtypes that it may have, how many dimensions it must have."""

FLOATS = "float32 or float64"


def gather_bytes(images: Array, order: Array, position: Array, x: Array) -> None:
    """x (rows, features) = images (n, features) uint8 of these samples, / 255 in float32; x float32 or float64.

    Raises ValueError where shapes, and TypeError where dtypes do not fit, or an array is not on the device.
    """
    _check("gather_bytes", order, position, ("images", images, "uint8", 2), ("x", x, FLOATS, 2))
    kernels.gather_bytes[launch.over_matrix(*x.shape)](images, order, position, x)


def gather_rows(values: Array, order: Array, position: Array, x: Array) -> None:
    """x (rows, features) = values (n, features) float32 of these samples; x float32 or float64. Raises as above."""
    _check("gather_rows", order, position, ("values", values, "float32", 2), ("x", x, FLOATS, 2))
    kernels.gather_rows[launch.over_matrix(*x.shape)](values, order, position, x)


def gather_labels(labels: Array, order: Array, position: Array, y: Array) -> None:
    """y (rows,) int32 = labels (n,) int32 of these samples. Raises as above."""
    _check("gather_labels", order, position, ("labels", labels, "int32", 1), ("y", y, "int32", 1))
    kernels.gather_labels[launch.elementwise(y.size)](labels, order, position, y)


def gather_targets(labels: Array, order: Array, position: Array, targets: Array) -> None:
    """targets (rows, classes) = the labels (n,) int32 of these samples as one-hot rows; with one column, 0 and 1.

    Raises as above.
    """
    _check("gather_targets", order, position, ("labels", labels, "int32", 1), ("targets", targets, FLOATS, 2))
    kernels.gather_targets[launch.over_matrix(*targets.shape)](labels, order, position, targets)


def _check(function: str, order: Array, position: Array, data: Wanted, out: Wanted) -> None:
    """That everything is on the device, of the right dtype and dimensions, and large enough for the rows of `out`."""
    for name, array, dtypes, dimensions in (
        data,
        ("order", order, "int32", 1),
        ("position", position, "int64", 1),
        out,
    ):
        if not on_device(array):
            raise TypeError(f"{function}: {name} is a {type(array).__name__}, expected a device array")
        if str(array.dtype) not in dtypes.split(" or "):
            raise TypeError(f"{function}: {name} is {array.dtype}, expected {dtypes}")
        if array.ndim != dimensions:
            raise ValueError(f"{function}: {name} is {array.shape}, expected {dimensions} dimension(s)")
    source, target = data[1], out[1]
    if position.size != 1:
        raise ValueError(f"{function}: position is {position.shape}, expected (1,)")
    if len(target) > len(order):
        raise ValueError(f"{function}: {out[0]} has {len(target)} rows, but order has only {len(order)} indices")
    if source.ndim == 2 and source.shape[1] != target.shape[1]:
        raise ValueError(
            f"{function}: {data[0]} is {source.shape} but {out[0]} is {target.shape}; "
            "they must have the same number of columns"
        )
