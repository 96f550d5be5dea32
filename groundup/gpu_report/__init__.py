"""Everything that is to be known of stage 4 on a GPU, in one command and one file: `python -m groundup.gpu_report`.

report           the command: each part in a process of its own, with its share of the time; __main__ starts it
report_parts     what each part does
part             what a part has found: its rows, in a file that is written after every row
networks         the parts about convolutional networks
fastest_pytorch  the part about steps beside the fused optimizer and torch.compile
suite            the part about the tests of stage 4; suite_outcomes writes down how each of them ended
sanitizer        the part about compute-sanitizer
commands         the part about what somebody waits for
document         the file: begun or gone on with, written, drawn and recorded
"""
