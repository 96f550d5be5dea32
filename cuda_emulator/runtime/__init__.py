"""The host's side of CUDA: launches, device arrays, streams, devices, random numbers.

decorators, dispatcher            @cuda.jit, and the kernels that it makes
signatures                        the signatures that programs give to @cuda.jit
arguments, limits, places         the arguments of a launch, the limits of a device, and the line that launched
launch, workers                   one launch, on one core or several
devicearray, transfers            arrays on the device, and the functions that make them
streams, device, facts            streams and events; the properties of the device and of a kernel
reduce, random                    cuda.reduce and cuda.random
check                             check mode: a launch in several orders of its threads
tracing                           a launch that records an event at every access
"""
