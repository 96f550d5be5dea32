"""`python -m shared.doctor`: the report of `groundup doctor` where what that command is built on is not installed."""

import sys

from shared.doctor import diagnose
from shared.doctor.report import plain

diagnosis = diagnose()
print(plain(diagnosis))
sys.exit(0 if diagnosis.ok else 1)
