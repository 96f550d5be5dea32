from groundup.kernels.catalogue import entry

OF_BENCH = (
    entry("device_clock.sleep", "int64", 32, 255, 255, package="shared.bench"),
    entry("device_roofs.multiply_add", "int64 T[1] T[1]", 256, 255, 255, package="shared.bench"),
    entry("device_roofs.triad_kernel", "T[1] T[1] T T[1]", 256, 255, 255, package="shared.bench"),
)
