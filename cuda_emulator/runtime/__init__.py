"""What a script sees of CUDA besides kernels: launches, device arrays, streams, devices, random numbers.

decorators, dispatcher            @cuda.jit; kernel[blocks, threads](...); signatures that a decorator states
arguments, limits, places         what a launch is given, what a device would refuse, and the line that launched
launch, workers                   one launch, on one core or several
devicearray, transfers            device memory and copies
streams, device, facts            streams and events; what the device says of itself
reduce, random                    cuda.reduce, and cuda.random's generator
check                             check mode: the same launch in several orders of its threads
tracing                           a launch whose every access is written down
signatures                        types of arguments, as numba-cuda spells them
"""
