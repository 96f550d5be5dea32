"""The `groundup` program and the tools around the four floors.

cli, commands/    the program: one command a file
race              the main job: every stage trains, all are compared, charts are drawn
inside, live      what a trained network has learned; a training, watched while it runs
doctor/           what this machine has and lacks, and the command that mends it
compiling/        every kernel through a GPU's compiler, without a GPU
lens/             what a kernel does to memory
course/           the exercises, their grader and the learner's folder
"""

__version__ = "0.1.0"
