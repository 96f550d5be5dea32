"""`python -m groundup` is the program `groundup`, also where the folder of installed programs is not on the PATH."""

from groundup.entry import main

main()
