"""Training: the loop that every floor shares, and what it needs, from schedules to checkpoints.

loop           the training loop, and evaluation
schedules      the learning rate over the epochs
metrics        what is measured after an epoch, and the file it goes to
checkpoints    a network and its optimizer in one file
runs           the folder of a run: what is needed to go on with it
progress       the progress bar
interrupts     Ctrl-C between two steps
"""
