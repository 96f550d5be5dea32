"""The harness: how fast is each rung, each operation, each stage, and how sure is that?

measuring    how to time code so that the number means something, and what a measurement is written down as
kinds        what is measured, one file for each kind
emulator     the emulator against its promises
on_gpu       what is measured on a GPU
peers        PyTorch, where this machine has it: what is compared with
running      what a run consists of, and how it is carried out
records      results files: written, read, compared and shown
"""
