"""One file for each figure.

ladder_share   every rung as a share of the best library
sizes          speed against size, and where the GPU starts to win
ladder_sizes   the same for every rung, stage by stage
roofline       every rung under the measured roofs of the machine
convolution_ladder   every rung of each stage, on the convolutions of the known networks
products_and_steps   both beside the libraries
operations     every operation, forward and backward, beside NumPy
staircase      the time of an epoch on each stage, and the factors between
step_parts     where the time of one training step goes
curves         training curves of all stages over each other
accuracy       accuracy against seconds of training
inference      images per second against the batch
memory         the most memory that a training holds
phases         import, compile, copy in, compute, copy out
profile        a training step by its layers; of a Profile, not Results
architecture   the layers of a network, its parameters and its work; of an Architecture, not Results
inside         what a trained network looks for and confuses; of Findings, not Results
activation_maps  what each layer of a convolutional network makes of one image
ranks          training on several processes: by a model, and batch against all-reduce; of ranks.json, not Results
gpu_report     the four figures of the GPU report
"""
