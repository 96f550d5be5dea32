"""The checks of every task: in a phase's file GRADES has what makes them, by the task's id, and checkpoint() its end.

pure_python, vectorised        phases 1 and 2; what they share is in layers, networks and steps
compiled                       phase 3, with c_functions and c_products; guarded keeps an eye on what C writes to
first_kernels, first_forward   phase 4 and its checkpoint
training_kernels               phase 5, with activation_kernels and reduction_kernels
seeing                         phase 6
kernels, line_by_line          a learner's kernel launched and traced; the same line by line, without compiling
checkpoints                    of phases 1, 2 and 6
"""
