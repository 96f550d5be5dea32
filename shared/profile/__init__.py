"""Where the time of a training step goes: every operation inside the real step, timed while the step runs.

    work           floating-point operations and bytes of an operation, counted from its shapes
    multiplications
                   how many a convolution takes window by window, by Winograd and by Fourier
    operations     the operations of a step, in order, with their names, shapes and work
    step_profile   what one profile holds, and its form in a file

How a stage's step is listened to, a file for each way:

    python_step    stages 1 and 2: the network's own functions are called through a clock
    c_step         stage 3: the step is one call, and C notes the clock inside of it
    kernel_step    stage 4: a clock, or a GPU's events, around every launch and copy
    kernel_work    which layers a launch belongs to, and its work

    roofs          the peak of this machine and the bandwidth of its caches and its memory
    bound          what keeps an operation from being faster: compute, memory, or neither
    gain           which operation to mend first, and what the step gains
    measure        noted and plain steps in turns
    worker         one stage, in a process of its own
    document       the results file (its schema: profile.schema.json)
    trace          a file for Perfetto and chrome://tracing
    table          the operations, for a terminal
"""
