"""Compiles a kernel's source to machine code for the CPU.

The steps in their order, with their files; `compile` calls them one after another:

    source, names    read a function's text, its syntax tree and the values of its names
    normalise        rewrites the kernel in a smaller language. The rules are in expressions, calls, statements,
                     assignments and declarations; statics has the expressions for constant values and types, signatures
                     the parameter names of CUDA's own functions
    inline           inlines device functions that synchronise
    webs             gives each independent use of a variable its own name
    uniformity       finds the variables that are the same for all threads of a block
    infer            finds the types of variables with Numba's inference
    regions          cuts the kernel at its barriers; recompute finds values that are computed again after a cut
    pauses           lets a block stop at a barrier across the grid, and go on behind it
    emit             writes the generated source: emit_regions and emit_collectives the parts of the tree, thread_code
                     the statements of one thread, writer the lines; trace_code, trace_tree and trace_tables add the
                     events of a traced launch
    cache            stores generated sources and their machine code on disk

Used by several steps:

    unit             the data about one kernel that each step passes to the next
    trees            small tools for syntax trees
    functions        device functions
    groups           the group of all blocks, which has a barrier across the grid
    nested           functions that a kernel defines inside, with def or lambda
    diagnoses        error messages for a stopped run
"""
