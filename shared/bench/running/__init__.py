"""How a run of `groundup bench` is carried out.

plan         what a quick and a full run consist of
worker       one pass, in a process of its own
session      all passes, safe to interrupt
passes       the rows of several processes as one row each
progress     the bar, and the guessing game
predict      the learner's guess before each measurement
"""
