"""How a learner's functions are called, floor by floor, so that a mistake is noticed and does no harm.

on_lists            stage 1: NumPy arrays become lists, and results become arrays
watched_lists       lists that count how they are read
on_arrays           stage 2: with `out` and without, in both dtypes
noted_products      whether a product is one of two matrices or of a stack of them
c_functions         stage 3's C functions
c_harness           functions of a header, without building the stage
c_trace             the order in which a C function reads and writes its arrays
failing_calls       calls of a learner's C that return a failure
fenced_arrays       arrays with margins around them, which show a write outside
guarded_memory      arrays beside pages that may not be read, and memory that is static or not freed
kernel_launches     stage 4's kernels, a launch at a time
launched_again      the same kernel on other types, numbers, grids and with gaps
shared_work         which thread touches what, and how evenly
early_returns       threads that have left when the others meet at a shuffle or a barrier
kernel_causes       why a launch failed: the emulator's error, its line and its cause
guards              which conditions guard an index
kernel_arithmetic   no float64 in a kernel of float32, and how often exp is called
kernel_memory       races, reads of what nobody wrote, and how often memory is read
line_by_line        the same without compiling
c_programs          the programs of the detective exercises in C
programs            those with kernels
kernels_on_host     NumPy in the place of kernels
"""
