"""Kernels for check mode: correct ones that it must not accuse, and wrong ones with the line of the mistake.

cases           a launch, and how it is collected
correct         kernels that are right: arrays, tiles, warps, loops
correct_atomics right because of atomics, fences and orders that only look like races
correct_patterns   right: queues, last blocks, compaction, double buffers, swaps, halos
wrong_races     lost updates, missing barriers and syncwarps, races between blocks
wrong_memory    reads of what nobody wrote, indices out of bounds, divergent barriers
wrong_patterns  the same mistakes through device functions, tuples, views, records, 2-D tiles and while loops
"""
