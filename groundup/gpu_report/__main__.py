"""`python -m groundup.gpu_report`: the command, and each of its parts in a process of its own."""

import sys

from groundup.gpu_report.report import main

if __name__ == "__main__":
    sys.exit(main())
