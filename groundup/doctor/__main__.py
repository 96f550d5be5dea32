"""`python -m groundup.doctor`: the report of `groundup doctor` where what that command is built on is not installed."""

import sys

from groundup import own_packages
from groundup.doctor import diagnose
from groundup.doctor.report import plain

own_packages.leave_working_folder()
try:
    diagnosis = diagnose()
except KeyboardInterrupt:
    print("error: interrupted", file=sys.stderr)
    sys.exit(2)
print(plain(diagnosis))
sys.exit(0 if diagnosis.ok else 1)
