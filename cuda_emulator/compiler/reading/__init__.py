"""Reads a kernel's source, and rewrites it in a smaller language.

source, names    read a function's text, its syntax tree and the values of its names
exec_text        the text of a function that exec() defines
normalise        rewrites the kernel. The rules are in expressions, calls, statements, assignments and declarations;
                 statics has the expressions for constant values and types, signatures the parameter names of
                 CUDA's own functions
inline           inlines device functions that synchronise
groups           the group of all blocks, which has a barrier across the grid
unassigned       variables that may have no value where they are read
loop_else        loops with `else`, as loops without; unrolled: loops over literal_unroll(tuple)
nested           functions that a kernel defines inside, with def or lambda
"""
