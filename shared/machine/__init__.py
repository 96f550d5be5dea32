"""This machine: its facts, its folders and its processes. Everything else asks here, and nowhere else.

hardware       processor and memory, as the operating system describes them
software       operating system, Python, installed packages, the commit of this project
gpu            the NVIDIA GPU and its driver
misfits        versions of packages that do not work together
environment    the record of all these facts that stands beside every measurement
caches         the folders in which files are kept between two runs
private_folder which of them are safe to run code from
own_process    this process: its memory, its processor time, and a mark to know it by later
nvml           how busy the NVIDIA GPUs are
processes      child processes with limits of time and output
atomic         writes a file whole or not at all
results        a folder for results, and JSON that any reader can read
regular        opens regular files alone, and reads only so much of one
strict_json    JSON of a stranger, read with limits

All of them import without NumPy and without any other package, so that `groundup doctor` can use them everywhere.
"""
