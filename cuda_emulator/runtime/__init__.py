"""The host's side of CUDA: launches, device arrays, streams, devices, random numbers.

decorators, dispatcher            @cuda.jit, and the kernels that it makes
signatures                        the signatures that programs give to @cuda.jit
arguments, limits, places         the arguments of a launch, the limits of a device, and the line that launched
launch, workers                   one launch, on one core or several
grid_barriers                     a launch whose blocks meet at barriers across the grid
devicearray, transfers            arrays on the device, and the functions that make them
streams, device, facts            streams and events; the properties of the device and of a kernel
stream_record                     which copies and launches no wait puts in an order, and which of these share memory
reduce, random, libdevice         cuda.reduce, cuda.random and cuda.libdevice
ufuncs                            numba.vectorize and guvectorize with target="cuda"
check, check_messages             check mode: a launch in several orders of its threads; where results differ, and why
chance                            which results the order of atomics may change
detector_schedule, check_report   the launches that check mode shows to a detector; the account of all of them
unwritten                         global memory that nobody has written, for check mode
tracing, trace_run                a launch that records an event at every access; its blocks, one after another
"""
