"""The course: twenty-four weeks of exercises, functions of the real stages, graded on the learner's own machine.

course.toml     phases, weeks, tasks and hints: the one list of what there is; manifest.py reads it
cases.toml      the detective exercises, whose programs with a fault lie in programs/; faults.py has the kinds of fault
learner/        the learner's folder: the stages' own files with stubs in them, and a record of what has passed
assembly.py     the learner's functions inside the real stage: one function for grading, all that pass for training
learners_stage.py
                `groundup train STAGE --mine`: a stage with all functions of the learner's that pass
learners_lens.py
                `groundup learn lens`: the launch of the learner's kernel that its check of memory looks at
failing_call.py
                `groundup learn debug`: the call that fails, as a script that runs in a debugger
checks/         what a check is, how a function is graded by several, and how known mistakes are recognised
grading/        the checks of each task and of each checkpoint
rules/          what each command of `groundup learn` does to the folder: what is next, hints, passes, …
judging/        runs the checks in a process of its own, within limits of time and memory
"""
