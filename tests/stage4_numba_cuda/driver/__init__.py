"""Stage 4's host code beside a pretended CUDA driver, which needs no GPU: numba-cuda runs as it is, and its calls of
the driver are written down.

    pretend_cuda.c         the driver: it computes nothing, and refuses what a driver would refuse
    steps_on_a_driver.py   a program that takes steps on it
    test_driver_calls.py   what it called, and in which order
"""
