"""Writes the generated source.

emit             the whole of it; emit_regions and emit_collectives the parts of the tree
thread_code      the statements of one thread
writer           the lines
trace_code, trace_tree, trace_tables
                 the events of a traced launch
"""
