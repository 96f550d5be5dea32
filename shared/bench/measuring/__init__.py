"""How to measure: everything that is timed goes through here.

timing       how to time code so that the number means something
turns        measures several candidates in turns, one sample each, and makes their rows
rows         what a measurement is written down as
trust        what a reader must know before relying on the numbers
threads      how many cores, settled before NumPy is imported
children     code in a process of its own, for what can be measured only once
"""
