"""Step mode: a kernel's own lines, run by Python one thread after another. step.py is where it starts."""
