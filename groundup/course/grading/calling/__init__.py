"""How a learner's functions are called, floor by floor, so that a mistake is noticed and does no harm.

on_lists            stage 1: NumPy arrays become lists, and results become arrays
on_arrays           stage 2: with `out` and without, in both dtypes
c_functions         stage 3's C functions
fenced_arrays       arrays with margins around them, which show a write outside
kernel_launches     stage 4's kernels, a launch at a time
kernel_memory       races, reads of what nobody wrote, and how often memory is read
line_by_line        the same without compiling
kernels_on_host     NumPy in the place of kernels
"""
