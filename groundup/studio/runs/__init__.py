"""The page Runs: every run folder, live or done, its curves, its layers, its mistakes, and runs over each other.

routes      the addresses of the page
folders     which run folders there are, and what may be read in them
overview    a run in the list: what it trains, how far it is, whether it runs
curves      its steps and epochs as columns for the charts, thinned
command     the command that reproduces it
histograms  how the weights of a checkpoint are spread
labels      the name and the note that a reader gives to a run
mistakes    which test images its network takes for what, computed in a thread
watching    which runs have changed since the page last looked

A run folder may come from a stranger, or from a training that was killed in the middle of a line. What cannot be read
becomes a sentence beside the run; the other runs are shown as ever.
"""
