"""`python -m groundup.doctor`: the report of `groundup doctor` where what that command is built on is not installed."""

import sys

from groundup.doctor import diagnose
from groundup.doctor.report import plain

diagnosis = diagnose()
print(plain(diagnosis))
sys.exit(0 if diagnosis.ok else 1)
