"""The course: eighteen weeks of exercises that are functions of the real stages, graded on the learner's own machine.

course.toml     weeks, tasks, hints: the one list of what there is; manifest.py reads it
functions.py    a function's place in a source file, Python or C (c_source.py): its stub, and how it is put back
workspace.py    the learner's folder: the stages' own files, with stubs where the exercises are
migration.py    a learner's folder from an earlier version, brought to where the project's files are now
progress.py     what the learner has done, in a plain-text file
assembly.py     the learner's functions inside the real stage: one for grading, all that pass for training (mine.py)
checks.py       how an answer is graded: one check after the other, until the first that fails
mistakes.py     known mistakes, recognised by their results
grading/        the checks of each task and the checkpoint of each phase
judge.py        runs child.py, the grading, in a process of its own, within limits of time and memory (limits.py)
"""
