"""The `groundup` commands, one file each: arguments in, a table or JSON out. The work is done one folder up."""
