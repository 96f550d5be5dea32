"""The data of this stage: a matrix is a list of rows, a row is a list of floats.

A batch of two samples with three features is [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]. A batch of images is a list of
images; an image is a list of channels, and each channel is a matrix. There is no array type to learn, and
every operation on a number is a line that you can read. Python floats are 64-bit, so this stage is also
the most exact one: the others are checked against it.
"""

from collections.abc import Sequence
from numbers import Real
from operator import index
from typing import Any

from shared.names import check_dtype
from shared.shapes import DIMENSIONS, check_images, check_vector, fits_in_64_bits, label_beyond, whole

Vector = list[float]
Matrix = list[list[float]]
Images = list[list[list[list[float]]]]
"""(batch, channels, rows, columns), as are the weights of a convolution: (out_channels, in_channels, rows, columns)."""

Array = Any
"""A vector, a matrix (batch, features), or images."""

_FLOAT = {float}


def asarray(values: Any, dtype: str = "float32") -> Any:
    """Values as this stage's array: a list of floats, or lists of equally long lists of floats.

    values: nested sequences of numbers, or anything with `tolist()`, such as a NumPy array; 1-D, 2-D or 4-D
    dtype: "float32" or "float64". Both give Python floats, which are 64-bit: the parameter is here so
        that the same call works on every floor.
    Returns a new list; the values given are not kept.
    Raises ValueError for an empty or ragged array, another number of dimensions or an unknown dtype,
    TypeError where something is not a number.

    >>> asarray([(1, 2), (3, 4)])
    [[1.0, 2.0], [3.0, 4.0]]
    """
    check_dtype("asarray", dtype)
    values = _unwrapped(values)
    if not isinstance(values, Real) and not _is_sequence(values):
        raise TypeError(f"asarray: expected real numbers, got {type(values).__name__}")
    array, shape = _nested_lists(values)
    if 0 in shape:
        raise ValueError(f"asarray: expected at least one value, got shape {shape}")
    if len(shape) not in DIMENSIONS:
        raise ValueError(f"asarray: expected 1, 2 or 4 dimensions, got {len(shape)}")
    return array


def _nested_lists(values: Any) -> tuple[Any, tuple[int, ...]]:
    """Nested sequences as nested lists of floats, and their shape."""
    if isinstance(values, list) and _FLOAT.issuperset(map(type, values)):  # most are: nothing to convert
        return values.copy(), (len(values),)
    if not _is_sequence(values):
        return _number(values), ()
    values = [_unwrapped(value) for value in values]
    if not any(map(_is_sequence, values)):  # the innermost level: one list, without a call for each number
        return [_number(value) for value in values], (len(values),)
    parts, shapes = zip(*map(_nested_lists, values), strict=True)
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                "asarray: expected rows of equal length, "
                f"got shape {shape} at index {i} but {shapes[0]} at index 0 (ragged)"
            )
    return list(parts), (len(parts), *shapes[0])


def as_list(values: Any) -> Any:
    """The values as `asarray` makes them; the same list where it is a matrix or a batch of images of floats already."""
    shape = own_shape(values)
    return values if shape is not None and len(shape) in (2, 4) else asarray(values)


def own_shape(values: Any) -> tuple[int, ...] | None:
    """The shape of equally long nested lists of floats; None for anything else."""
    if not isinstance(values, list) or not values:
        return None
    if _FLOAT.issuperset(map(type, values)):
        return (len(values),)
    shapes = set(map(own_shape, values))
    shape = shapes.pop()
    return None if shapes or shape is None else (len(values), *shape)


def as_images(name: str, values: Any, axes: str = "batch, channels, rows, columns") -> tuple[Images, tuple[int, ...]]:
    """The values as lists of 4 dimensions, and their shape; or an error that names them and their axes."""
    try:
        images = as_list(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
    shape = shape_of(images)
    check_images(name, shape, axes)
    return images, shape


def as_vector(name: str, values: Any) -> Vector:
    """The values as a list of numbers; or an error that names them."""
    try:
        vector = asarray(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
    check_vector(name, shape_of(vector))
    return vector


def shape_of(array: Any) -> tuple[int, ...]:
    """The shape of an array that `asarray` made: (2, 3) of two rows with three columns."""
    shape = []
    while isinstance(array, list):
        shape.append(len(array))
        array = array[0]
    return tuple(shape)


def copied(array: Array) -> Array:
    """The same numbers in new lists."""
    return [copied(row) for row in array] if isinstance(array[0], list) else list(array)


def zeros(shape: tuple[int, ...]) -> Array:
    """Lists of this shape, filled with 0."""
    return [0.0] * shape[0] if len(shape) == 1 else [zeros(shape[1:]) for _ in range(shape[0])]


def as_rows(x: Array) -> Matrix:
    """Each image as one row of its numbers, channel by channel and row by row; a matrix as it is."""
    if not isinstance(x[0][0], list):
        return x
    return [[value for channel in image for row in channel for value in row] for image in x]


def from_rows(rows: Matrix, shape: tuple[int, ...]) -> Array:
    """The rows as images of this shape (batch, channels, rows, columns), or as they are for a matrix."""
    if len(shape) == 2:
        return rows
    _, channels, height, width = shape
    starts = [[(c * height + i) * width for i in range(height)] for c in range(channels)]
    return [[[row[start : start + width] for start in channel] for channel in starts] for row in rows]


def to_host(array: Any) -> Any:
    """The array as something numpy.asarray accepts: the lists themselves."""
    return array


def matrix_shape(name: str, matrix: Any) -> tuple[int, int]:
    """(rows, columns) of a matrix, or an error that names it: not a list of equally long, non-empty rows of numbers."""
    if not isinstance(matrix, list) or any(not isinstance(row, list) for row in matrix):
        raise TypeError(
            f"{name}: expected a list of rows, each a list of numbers, got {_describe(matrix)}; see asarray"
        )
    if not matrix or not matrix[0]:
        raise ValueError(f"{name}: expected at least one row and one column, got {_describe(matrix)}")
    columns = len(matrix[0])
    for i, row in enumerate(matrix):
        if len(row) != columns:
            raise ValueError(f"{name}: row {i} has {len(row)} values but row 0 has {columns} (ragged)")
        # A set of types costs a small part of what using the numbers does, and catches strings, None and lists.
        for value in () if _FLOAT.issuperset(map(type, row)) else row:
            if type(value) not in (float, int):
                raise TypeError(f"{name}: row {i} holds {value!r}, which is no Python number; see asarray")
            if not fits_in_64_bits(value):
                raise TypeError(f"{name}: row {i} holds {whole(value)}; expected real numbers")
    return len(matrix), columns


def check_same_shape(function: str, **matrices: Any) -> tuple[int, int]:
    """The common shape of the matrices, or a ValueError naming the two that differ."""
    shapes = {name: matrix_shape(f"{function}: {name}", matrix) for name, matrix in matrices.items()}
    (first, expected), *others = shapes.items()
    for name, shape in others:
        if shape != expected:
            raise ValueError(f"{function}: {name} is {shape} but {first} is {expected}; they must have the same shape")
    return expected


def check_labels(function: str, labels: Any, rows: int, classes: int) -> list[int]:
    """Labels as a list of ints, one a row and each in 0 … classes - 1, or an error that says which is not."""
    _refuse_masked(f"{function}: labels", labels)
    if getattr(getattr(labels, "dtype", None), "kind", "") == "O":
        raise TypeError(f"{function}: labels must be whole numbers, got {type(labels).__name__} of object")
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    if _is_whole(labels):
        raise ValueError(f"{function}: expected {rows} labels, one a row, got a single number")
    if not _is_sequence(labels):
        raise TypeError(f"{function}: labels must be whole numbers, got {type(labels).__name__}")
    if any(map(_is_sequence, labels)):
        raise ValueError(f"{function}: expected {rows} labels, one a row, got rows of them")
    for i, label in enumerate(labels):
        if not _is_whole(label):
            raise TypeError(f"{function}: labels must be whole numbers, got {label!r} as labels[{i}]")
    if len(labels) != rows:
        raise ValueError(f"{function}: expected {rows} labels, one a row, got {len(labels)}")
    checked = [index(label) for label in labels]
    for i, label in enumerate(checked):
        if not 0 <= label < classes:
            raise ValueError(label_beyond(function, i, label, classes))
    return checked


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _unwrapped(value: Any) -> Any:
    """A NumPy array or number as Python's lists and numbers; anything else as it is. TypeError for a masked array."""
    _refuse_masked("asarray", value)
    if getattr(getattr(value, "dtype", None), "kind", "f") not in "fiub":
        raise TypeError(f"asarray: expected real numbers, got {type(value).__name__} of {value.dtype}")
    return value.tolist() if hasattr(value, "tolist") else value


def _refuse_masked(function: str, values: Any) -> None:
    if hasattr(values, "filled"):
        raise TypeError(f"{function}: a masked array would lose its mask; fill it first, with .filled(value)")


def _number(value: Any) -> float:
    if not isinstance(value, float | int) and not hasattr(value, "dtype"):
        raise TypeError(f"asarray: expected real numbers, got {value!r}")
    if isinstance(value, int) and not fits_in_64_bits(value):
        raise TypeError(f"asarray: expected real numbers, got {whole(value)}")
    return float(value)


def _describe(value: Any) -> str:
    return f"a list of {len(value)}" if isinstance(value, list) else type(value).__name__
