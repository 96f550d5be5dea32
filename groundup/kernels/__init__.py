"""The project's own CUDA kernels, all of them, by name: for the compile check, which compiles them, the lens and bench.

catalogue    every kernel with the types it is compiled for, its block and its budget; images: those of convolutional
             networks; entries: how a line is written
quick_bench, networks, report
             those that a quick `groundup bench` launches on a GPU; those of the known convolutional networks; and those
             of `groundup check` and of the GPU report's other parts
launching, image_launching
             a way to launch each, by the rooms of stage 4, as in training
"""
