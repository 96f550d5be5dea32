"""The harness: how fast is each rung, each operation, each stage, and how sure is that?

    timing       how to time code so that the number means something
    turns        measures several candidates in turns, one sample each, and makes their rows
    rows         what a measurement is written down as
    passes       several processes, one after the other, and the noise of a ratio
    trust        what a reader must know before relying on the numbers

What is measured, one file for each kind:

    machine      the peak of a core and the bandwidth of its memories: the two roofs
    ladders      every rung of every matmul ladder over sizes
    products     the products of a network's shapes, beside NumPy and PyTorch
    convolutions every rung of every convolution ladder on the shapes of the known networks
    operations   every activation, loss, layer and optimizer, forward and backward (from operation_table)
    steps        a training step, and (step_parts) where its time goes
    inference    predictions for batches of 1 to 1,024 images
    training     an epoch, the time to an accuracy, the curves
    memory       the most memory that training holds
    emulator_speed, emulator_speed_kernels, emulator_speed_tables
                 the emulator against its promises
    phases       what surrounds computing: import, compile, copy in, compute, copy out

How it is run, kept and read:

    plan         what a quick and a full run consist of
    worker       one pass, in a process of its own
    session      all passes, with a progress bar, safe to interrupt
    document     the results file, written and read (its schema: results.schema.json, schema)
    progress     the bar, and the guessing game
    compare      two results files beside each other
    predict      the learner's guess before each measurement
    tables       what was measured, for a terminal
    results      JSON in and out

On a GPU:

    gpu_plan     what the GPU report measures, and its rows
    gpu_record   the recorded GPU reports, and their numbers beside emulated results (recorded_gpu.json)
    device_clock, device_roofs
                 the GPU's own clock; kernels that show its peak and its bandwidth
    launches     what a launch costs
    resident_steps
                 steps over a data set that lies on the device

    pytorch, pytorch_layers, gpu
                 PyTorch and a GPU, where this machine has them: what is compared with, and how it is timed
    threads      how many cores, settled before NumPy is imported
    children     code in a process of its own, for what can be measured only once
"""
