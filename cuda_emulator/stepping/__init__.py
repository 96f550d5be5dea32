"""Step mode: a kernel's own lines, run by Python one thread after another.

step              where it starts: the threads of a block, their order and their barriers
step_rewrite      the kernel's function, changed so that a thread can wait in it
step_memory       arrays that watch their accesses
step_numbers      numbers that compute as a device's do
step_namespace    `cuda` as a kernel in step mode sees it
step_warps        warps and their votes
"""
