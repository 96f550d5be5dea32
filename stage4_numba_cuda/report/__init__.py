"""The parts of gpu_report.py, one file each: what a machine with a GPU is asked to show."""
