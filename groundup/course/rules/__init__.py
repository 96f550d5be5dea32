"""The rules of `groundup learn`: what each of its commands does to the learner's folder. The command itself prints.

order.py        which task is meant, which is next, and skipping one
states.py       what has become of each task
passing.py      grading a task and writing the result down
class_grading.py
                grading many learners' folders into one table
watching.py     grading whatever is saved
style.py        one remark on a function that has passed
debugging.py    the call that fails, as a script for a debugger
detecting.py    the answer to a detective exercise: line and kind
hints.py        how far the help with a task goes
solutions.py    when the project's function may be seen, and how it differs from the learner's
resetting.py    putting a stub back, and undoing that
checkpoints.py  grading what ends a phase
"""
