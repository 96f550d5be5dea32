"""The parts of gpu_report.py, one file each: what a machine with a GPU is asked to show.

part, process, timing, facts                     a part and its file, its process, the device's clock, its facts
correctness, ladder, launches, steps, training   what is measured; beside_torch and roofs: what it is held against
sanitizer, suite, charts                         compute-sanitizer, the tests, the figures
"""
