"""What is measured on a GPU.

gpu_plan         what the GPU report measures, and its rows
gpu_goals        the goals of stage 4, and what a report has measured beside them
gpu_record       the recorded GPU reports, and their numbers beside emulated results (recorded_gpu.json)
gpu_rules        what must stand in a report that is drawn again
launches         what a launch costs
first_step       a process's first training step
resident_steps   steps over a data set that lies on the device
"""
