"""How an answer is graded: one check after the other, until the first that fails.

check.py            what a check is, and what it reports
exercise.py         how one function is graded
exercise_checks.py  the checks that follow from it
results.py          the numbers of a result, and how they read in a message
picture.py          the right result and the learner's as numbers to be drawn
derivatives.py      the check of a derivative against central differences
speed.py            the check of a time
source.py           the check of what stands in a function: names that it must not use, loops
mistakes.py         known mistakes, recognised by their results
sure_causes.py      a cause is named only if it explains all that is known of a wrong answer
repeated.py         the same objects, called again with other numbers
"""
