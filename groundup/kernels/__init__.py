"""The project's own CUDA kernels, all of them, by name: for the compile check, which compiles them, the lens and bench.

catalogue    every kernel with the types it is compiled for, its block and its budget; images: those of convolutional
             networks; entries: how a line is written
launched     those that `groundup bench`, `groundup check` and the GPU report launch on a GPU, from launched.json
launching, image_launching
             a way to launch each, by the rooms of stage 4, as in training
"""
