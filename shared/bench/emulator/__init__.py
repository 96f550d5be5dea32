"""The emulator's speed beside what is promised of it.

emulator_speed           the measurements
emulator_speed_kernels   the kernels that they run
emulator_speed_tables    the tables for a terminal
"""
