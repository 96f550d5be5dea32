"""The learner's folder.

workspace.py        the folder, opened: the learner's text of each file, what has passed, resetting
learners_folder.py  makes a new folder, or finds and opens the one that is there
record.py           what has passed, was skipped or was seen, in progress.toml
project_files.py    the project's own text of the files with exercises, whole and with stubs
functions.py        the lines of a function in a source file, Python or C (c_source.py), and its stub
migration.py        a folder from an earlier version: which tasks ask for other functions now
"""
