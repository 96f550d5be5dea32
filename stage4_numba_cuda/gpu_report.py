"""The former name of `python -m groundup.gpu_report`."""

import sys

from groundup.gpu_report.report import main

if __name__ == "__main__":
    sys.exit(main())
