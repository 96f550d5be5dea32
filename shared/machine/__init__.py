"""What this machine is, and what is done with its files and processes: asked and done here, for all the rest.

environment    the facts that stand beside every measurement
hardware       processor, caches and memory, as the operating system tells them
atomic         writes a file whole or not at all
"""
