"""Every kernel through a GPU's compiler, without a GPU: `groundup check --compile`.

show         the command's table; here it starts
check        compiles the kernels for every architecture, in processes of their own (worker)
log, sass    the compiler's log and the machine code, read as numbers
precompile   the kernels that a bench, a check or the GPU report launches on a GPU, compiled side by side before
registers    the registers of a learner's kernel, from a process of its own (registers_worker, shipping)
emulator_hooks
             what groundup adds to the emulator: registers, its own kernels by name
"""
