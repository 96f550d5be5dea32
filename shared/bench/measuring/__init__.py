"""How to measure: everything that is timed goes through here.

timing       how to time code so that the number means something
compared_candidates
             measures several candidates in turns, one sample each, and makes their rows
rows         what a measurement is written down as
noise        how far another run may differ
peak         the peak of one core
gpu          whether there is a GPU, and how its work is timed
device_clock the GPU's own clock
device_roofs kernels that show the GPU's peak and its bandwidth
threads      how many cores, settled before NumPy is imported
children     code in a process of its own, for what can be measured only once
"""
