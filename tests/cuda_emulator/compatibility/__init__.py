"""The emulator beside numba-cuda: the same names, the same kernels accepted, the same results.

    test_namespace.py       the emulator in the place of numba.cuda, and a clear word on each name that it lacks
    test_accepted.py        what other programs use of numba-cuda, which the emulator runs
    compile_for_real.py     a process in which numba-cuda compiles the emulator's test kernels
    test_real_compiler.py   both accept the same kernels, up to a list of differences
    run_for_real.py         a process in which numba-cuda runs them, on the GPU made of programs of stage 4's tests
    fuzz_for_real.py        a process that runs random kernels there and on the emulator
    test_on_the_machine.py  the compiled kernels give the results that the emulator's tests expect

The tests that ask numba-cuda are skipped where it is not installed. None of them needs a GPU.
"""
