"""The second stage: the same network on NumPy arrays, a whole batch in one call.

Besides the rooms (the files that every stage has):
parts              the layers without weights
optimizer_state    what an optimizer remembers between steps
eight_bits         weights and activations as whole numbers of eight bits
eight_bit_steps    what happens in a network of them from one rounding to the next
eight_bit_network  a whole network of them: folded, calibrated on images
columns            where the windows of a convolution lie, and their copies as the columns of a matrix
"""

import shared

if getattr(shared, "PROJECT", "") != "groundup":
    raise SystemExit(f"error: {shared} is imported in place of groundup's package shared: give it another name")
