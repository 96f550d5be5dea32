"""`python -m groundup.doctor`: the report of `groundup doctor` where what that command is built on is not installed."""

import sys

from groundup.doctor import diagnose
from groundup.doctor.report import plain

try:
    diagnosis = diagnose()
except KeyboardInterrupt:
    print("error: interrupted", file=sys.stderr)
    sys.exit(2)
print(plain(diagnosis))
sys.exit(0 if diagnosis.ok else 1)
