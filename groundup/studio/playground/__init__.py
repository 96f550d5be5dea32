"""The playground page: a small network that learns while its reader watches, on any stage, with every setting at hand.

settings   everything that decides about a training, checked
sets       the points: made, drawn by hand or read from CSV; and the digits
mistakes   planted mistakes, really computed
model      the training: a step at a time, moved to another stage in its middle
picture    what the page draws after a step
player     the thread that steps and hands out pictures while the training runs
routes     what the page asks for
embedded   what an exported page carries
static/    the page and its modules; training.js trains in the browser where there is no server
"""
