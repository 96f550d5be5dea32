"""Step mode: Python runs the kernel's own lines, one thread after another.

step              the entry point: the threads of a block, their order and their barriers
waiting_threads   which threads can go on from a barrier, a shuffle or a vote
loading           loads the rewritten functions
step_rewrite      rewrites the kernel's function, so that a thread can wait in it
step_memory       arrays with a check of every index
step_numbers      arithmetic with the types of compiled code
step_namespace    the module `cuda` in step mode
step_warps        the results of shuffles, votes and matches
"""
