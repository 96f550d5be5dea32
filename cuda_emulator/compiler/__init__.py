"""From a kernel's source to machine code for the CPU.

The steps in their order, and the files of each; `compile` calls them in a row:

    source, names    a function's text and syntax tree; what its names stand for
    normalise        rewrites the kernel in a smaller language. The rules are in expressions, calls, statements,
                     assignments and declarations; statics has the values and types that are known beforehand
    inline           puts a device function that synchronises in its caller's place
    webs             gives each independent use of a variable a name of its own
    uniformity       finds what is the same for all threads of a block
    infer            types, by Numba's inference; signatures reads those that a decorator states
    regions          cuts the kernel at its barriers; recompute finds what is computed again after a cut
    emit             writes the generated source: emit_regions and emit_collectives the parts of the tree,
                     thread_code what one thread does, writer the lines; trace_code, trace_tree and trace_tables write
                     the events of a traced launch
    cache            keeps generated sources and their machine code on disk

Used by several steps:

    unit             what one step hands to the next
    trees            small tools for syntax trees
    functions        device functions
    diagnoses        turns the numbers that a stopped run leaves into a sentence
"""
