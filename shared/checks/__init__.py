"""Do the floors agree, are the gradients right, and how far apart may two correct answers be?

tolerance      how far apart two correct answers may be
equivalence    the four levels of agreement between two stages, one a file: ops, steps (layers and the step as a
               whole) and trajectory, with pair (two stages side by side), problems and scales
rungs          every rung of every ladder alone, for a device
gradients      is the gradient the slope of the loss?

The same for convolutional networks:

images         what each of the four levels does with them: convolution_ops, pooling_ops and batch_norm_ops alone,
               with image_scales; then layered_steps, with layered_problems
layered_walk   a step of the reference through any architecture, and how far rounding moves its results
layered_gradients
               their gradients against slopes
image_rungs    every rung of the convolution ladder and of the step alone, for a device
layered_resident
               runs whose data stay on the device
winograd       Winograd's transforms in fractions, proven exact, and what rounding they cost
"""
