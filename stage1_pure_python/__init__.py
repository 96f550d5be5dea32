"""The ground floor: a neural network in lists and loops, with nothing but the standard library.

Besides the rooms (the files that every stage has):
parts              the layers without weights
optimizer_state    what an optimizer remembers between steps
"""

import shared

if getattr(shared, "PROJECT", "") != "groundup":
    raise SystemExit(f"error: {shared} is imported in place of groundup's package shared: give it another name")
