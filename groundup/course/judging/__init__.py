"""Grading in a process of its own, so that nothing in the learner's code can stop or harm the program that grades it.

judge.py            prepares the files, starts the child and waits for it
surroundings.py     the environment of these processes: where kernels run
child.py            the child: runs one check after the other and reports each
reports.py          its report, read as what it is: a file that the learner's code may have written
examination.py      starts the examiner beside the child, and asks it whether a pass is one
examiner.py         the examiner: knows right results for numbers that it draws, and compares
questions.py        what is asked and answered between the two
warden.py           on Linux between the two: ends every process that the child leaves behind
verdict.py          the result, made from these reports
memory_limit.py     how much memory the child may take
compiler_hints.py   what the first error of a C compiler most likely means
raised_hints.py     the same for an exception
"""
