"""A GPU made of programs, for tests. numba-cuda runs on it as it is, up to the PTX that a driver would assemble.

    driver               libcuda.so.1: memory, streams, graphs and launches; it writes down each call and each mistake
    ptx.py               PTX as data
    to_c.py              PTX as C; the operands are written by operands.py
    calls.py             functions, put in the place of their calls
    arithmetic.py        the instructions of one thread
    carry.py             whole numbers of several words
    bits.py              bits counted, reversed, inserted and extracted
    memory.py            loads, stores, atomic operations and asynchronous copies
    waiting.py           barriers, and what a warp does together
    kernel.h             what the driver and a kernel's library know of one another
    warps.h              what that C runs on: threads that wait for one another, checked memory, tensor cores
    image.py             that C compiled
    sitecustomize.py     lets numba-cuda hand PTX to the driver
    process.py           a Python process that has this machine as its GPU
    some_steps.py        a program for it: training steps
    needed.py            the marks that skip the tests where something is missing

The emulator runs the Python of a kernel. This machine runs what NVVM has made of it, with its inline PTX. Neither uses
anything of the other. If both compute the same, the compiled kernel does what its source says, as far as both
understand CUDA.
"""
