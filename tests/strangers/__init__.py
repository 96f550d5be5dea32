"""Files of strangers, damaged or crafted: every command that reads them ends well, or with a sentence.

damage         bytes that are damaged, JSON values that are exchanged
fuzz           calls the program with one such file after another, in a process with limits
kinds          the files of each kind, and the commands that read them

test_kills asks the same of a process that is killed: what it was making is whole, or is made again.
"""
