"""From a kernel's source to machine code for the CPU, one module a step. compile.py has the steps in order."""
