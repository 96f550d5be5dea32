"""The kernels: what runs on the device. The rooms above check, allocate and launch.

A kernel checks only that its thread has something to do; shapes, dtypes and overlap are checked in the room of the same
name. docs/cuda.md goes through the kernels.

    matmul_1_basic, matmul_2_register, matmul_3_warp, matmul_4_fitted, matmul_5_tensor
                         the matmul ladder, in three forms: ab, aᵀb, abᵀ
    matmul_6_operands, matmul_7_fragments, matmul_8_pipelined
                         the tensor cores' ladder: operands rounded in memory, and products of them
    matmul_tiles         how its upper rungs move a tile, and what they do with it
    fragment_tiles       what the tensor cores' upper rungs share: copies of a tile, and who reads and writes what
    ptx                  128-bit loads and tensor cores: all that needs LLVM or PTX, with its meaning in Python
    fragments            what tensor cores and late copies do, in Python
    convolution_1_basic, convolution_2_im2col, convolution_3_implicit, convolution_4_blocked, convolution_5_winograd
                         the convolution ladder, and the gradients
    convolution_6_tensor convolution on tensor cores
    convolution_gather   where the numbers lie that a convolution multiplies
    activations, softmax, losses
                         forward and backward, and the two fused
    dense, sums          bias and mask; sums of columns and of vectors
    pooling, batch_norm  windows' maxima and means; channels brought to mean 0 and deviation 1
    residual             the sum at the end of a residual block, and its activation
    optimizers           every optimizer's formula for one number
    dropout, gather      masks from a counter; a mini-batch by index
    images               a mini-batch of images that lie as bytes, also augmented
    fused, head, update  a training step in three kernels
    blocked, blocked_tiles
                         the products of a large step, with 4 x 4 numbers to a thread
    persistent           many training steps in one kernel, whose blocks wait for each other
    persistent_tile, persistent_sums
                         what its blocks do with their tiles, and with the gradients that belong to no tile
    resident             what moves on between the steps of a training run
    interchange          leaky ReLU with any slope, for PyTorch
"""
