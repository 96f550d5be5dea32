"""What a script sees of CUDA besides kernels: launches, device arrays, streams, devices, random numbers."""
