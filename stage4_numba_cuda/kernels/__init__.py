"""The kernels: what runs on the device, one file for each room. The rooms above check, allocate and launch."""
