"""Results files: written, read, compared and shown.

document     the results file, written and read
schema       what may stand in one (results.schema.json)
trust        what a reader must know before relying on the numbers
compare      two results files beside each other
tables       what was measured, for a terminal
"""
