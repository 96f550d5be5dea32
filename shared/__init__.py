"""What the stages share: the contract, data, training, checks, the harness that times them, and charts.

contract       what every stage must provide; load_stage and load_part, the ways to a stage
names          activations, losses, optimizers and dtypes: each list once
network_base, optimizer_base    what a network and an optimizer are on every stage: arguments, checks, order, state
shapes         which shapes fit together in the rooms; what is said when they do not
architectures  networks as data: shapes, parameters and work of every layer, and the known networks
layers         the layers that an architecture is made of
initialize     initial weights: the same numbers on every stage
dropout        dropout masks: the same on every stage
plain_arrays   numbers as callers have them, as NumPy arrays that lose nothing on the way
communicator   what the ranks of a training say to each other
windows        how often a window fits into an image; what is said when it does not
numbers        numbers as text: every time, size, factor and percentage that is printed
text, console, terminal
               text from files and names made safe to show; the console and the tables that show it
countdown      how far long work has come: its share, and the time left
markup         HTML and style sheets: every page is built with it
data/          data sets and batches
training/      the loop and what it needs
checks/        do the stages agree, are the gradients right
machine/       facts of this machine, its files and processes
bench/         how fast is everything
profile/       where the time of a training step goes
charts/        the figures
export/        a trained network as a file that others can open
"""

PROJECT = "groundup"
"""Whose package this is: a stage asks, because Python would import a folder `shared` beside a user's script instead."""
