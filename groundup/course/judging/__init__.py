"""Grading in a process of its own, so that nothing in the learner's code can stop or harm the program that grades it.

judge.py            prepares the files, starts the child and waits for it
child.py            the child: runs one check after the other and reports each
warden.py           on Linux between the two: ends every process that the child leaves behind
verdict.py          the result, made from these reports
memory_limit.py     how much memory the child may take
compiler_hints.py   what the first error of a C compiler most likely means
"""
