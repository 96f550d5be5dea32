"""Everything that is to be known of stage 4 on a GPU, in one command and one file: `python -m groundup.gpu_report`.

report           the command: each part in a process of its own, with its share of the time; __main__ starts it
parts            what each part does, and the rows that it writes
commands         the part about what somebody waits for
networks         the parts about convolutional networks
suite_outcomes   writes down how each test of the suite ended
document         the file: begun or gone on with, written, drawn and recorded
"""
