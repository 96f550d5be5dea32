"""Compiles a kernel's source to machine code for the CPU.

    compile      calls the steps one after another
    reading      steps 1 and 2: reads the source, and rewrites it in a smaller language
    analysis     steps 3 to 6: finds out about its variables, and cuts it at its barriers
    writing      step 7: writes the generated source
    cache        stores generated sources on disk; machine_code what Numba makes of them
    private_folder  which folders are safe to run code from

Used by several steps:

    unit         the data about one kernel that each step passes to the next
    trees        small tools for syntax trees
    functions    device functions
    diagnoses    error messages for a stopped run
"""
