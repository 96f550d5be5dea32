"""What several weeks ask of the learner's functions: arguments, right results, results by hand, and known mistakes.

matrices, activations, cross_entropy, dense, networks, optimizer_steps      phases 1 and 2
c_products                                                                  phase 3
first_kernels                                                               phase 4
kernel_reductions, kernel_losses, kernel_optimizers                         phase 5
images, pools, norms, image_kernels, images_on_device, streams              phase 7
"""
