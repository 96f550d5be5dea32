"""What ends each phase: `checkpoint` makes the checks.

phase1_xor              XOR is learned with a hidden layer, and not without one
phase2_mnist            MNIST over 90 %
phase3_c                the C agrees with Python, and trains faster than NumPy
phase4_forward_pass     a forward pass through the learner's kernels
phase5_gpu_training     MNIST, trained by the learner's kernels
phase6_tools            the neuron that died, and the gradient that is wrong
phase7_images           LeNet-5 reads digits; its parts are in the other files of phase7:
phase7_lenet            by the learner's NumPy
phase7_kernels          by the learner's kernels
phase7_profile          what to mend first in the residual CNN
learners_training       training with the learner's functions together: phases 1, 2, 6 and 7
"""
