"""Finds out about a kernel's variables, and cuts it at its barriers.

webs             gives each independent use of a variable its own name
uniformity       finds the variables that are the same for all threads of a block
infer            finds the types of variables with Numba's inference
regions          cuts the kernel at its barriers; recompute finds values that are computed again after a cut
ownership        finds out whether a variable can own memory
pauses           lets a block stop at a barrier across the grid, and go on behind it
"""
