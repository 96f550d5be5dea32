"""The page Kernel: a kernel, walked through thread by thread, forwards and backwards.

routes      the addresses
workers     the child process of a tab, with limits
worker      what runs in it
targets     opens a kernel of the project, of a script, or the learner's own
choices     what can be opened
opened      an open kernel: its walks, races and verdicts
document    a walk as compact JSON
racing      a race as JSON and in sentences
walks       the walks that the book shows
embedded    what an exported page carries: one of them
static/     the page
"""
