"""The harness: how fast is each rung, each operation, each stage, and how sure is that?

A folder imports from those above it only (tests/layout/test_imports.py):

peers        PyTorch, where this machine has it: what is compared with
measuring    how to time code so that the number means something, and what a measurement is written down as
records      results files: written, read, compared and shown
kinds        what is measured, one file for each kind
on_gpu       what is measured on a GPU
emulator     the emulator against its promises
running      what a run consists of, and how it is carried out
"""
