"""The values that fill fresh shared and local memory, so that a read before the first write is noticed.

On a device, fresh memory holds what the last block left there. Here it holds a value that shows in the result: NaN
spreads through every sum, and -842150451 (the byte 0xCD, four times) is easy to recognise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BYTE = 0xCD


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
