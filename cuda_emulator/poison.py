"""The values that fill fresh shared and local memory, so that a read before the first write is noticed.

On a device, fresh memory holds what the last block left there. Here it holds a value that shows in the result: NaN
spreads through every sum, and -842150451 (the byte 0xCD, four times) is easy to recognise. Check mode runs a launch
several times, each time with other values, so that a result that depends on them differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BYTE = 0xCD

FLOAT, OTHER, BOOL = range(3)
"""The kinds of memory that are filled with different bytes; their places in a number of POISONS."""

POISONS = tuple(
    float_byte << 8 * FLOAT | other_byte << 8 * OTHER | bool_byte << 8 * BOOL
    for float_byte, other_byte, bool_byte in ((0xFF, BYTE, 1), (0x7E, 0x4D, 0), (0xFE, 0x00, 1), (0x00, 0xFF, 0))
)
"""The bytes of the runs of check mode: floats are NaN, large, large and negative, and 0; integers negative, positive, 0
and -1, or the largest without a sign."""


def kind_of(dtype: np.dtype[Any]) -> int | None:
    """FLOAT, OTHER or BOOL; None for a record with a bool in it, in which a byte may be neither True nor False."""
    if dtype.kind == "V":
        parts = [kind_of(dtype.fields[name][0].base) for name in dtype.names or ()] if dtype.fields else []
        return FLOAT if parts and BOOL not in parts and None not in parts else None
    return FLOAT if dtype.kind in "fc" else BOOL if dtype.kind == "b" else OTHER


def poison_value(dtype: Any) -> Any:
    """The NumPy scalar that fills fresh memory of `dtype`.

    NaN for floats and complex numbers, True for bool, and the byte 0xCD repeated for everything else: -842150451 as
    int32, 3452816845 as uint32.
    """
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return dtype.type(complex(np.nan, np.nan) if dtype.kind == "c" else np.nan)
    if dtype.kind == "b":
        return np.True_
    return np.frombuffer(bytes([BYTE]) * dtype.itemsize, dtype)[0]
