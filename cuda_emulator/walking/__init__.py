"""A walk: one block of a launch, statement by statement, with every access of every thread. It is made to be shown.

It runs the kernel's own lines in Python, as step mode does, but a thread stops at each statement and each access, and
the threads of a block go on together: those that are at the same statement in the same iteration take it in one step.
Without a walk's stops, a race would show only by chance; here the order of the warps can be chosen.

walked_launch the entry point: a launch, whose blocks can be walked through again and again
walk          walks through one block
rewriting     rewrites a kernel's function, so that a thread stops at statements and accesses
marks         the places where a thread stops, and their order
threads       a thread of a walk: where it is, in order to find those that are there too
memory        the arrays of a walk: the name and the place in memory of each element
record        what a walk has recorded: steps, accesses, variables
interleaving  takes barriers away and finds an order of the warps that gives another result
history       who wrote the value that each read gets
"""
