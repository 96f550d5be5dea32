"""The second floor: the same network on NumPy arrays, a whole batch in one call.

Besides the rooms (the files that every floor has):
layered    a network of any architecture: convolutions, pooling, batch normalisation, residual blocks
parts      its layers without weights
columns    where the windows of a convolution lie, and their copies as the columns of a matrix
"""

import shared

if getattr(shared, "PROJECT", "") != "groundup":
    raise ImportError(f"{shared} is imported in place of groundup's package shared: give it another name")
