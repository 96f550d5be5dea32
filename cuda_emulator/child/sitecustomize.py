"""Found through PYTHONPATH by the children of a program that runs on the emulator: Python imports it at its start.

It starts the emulator (startup.py), and then the sitecustomize that Python would have found without it.
"""

import os
import runpy
import sys
from importlib import import_module

_here = os.path.dirname(os.path.abspath(__file__))
runpy.run_path(os.path.join(os.path.dirname(_here), "startup.py"))

_without = [folder for folder in sys.path if os.path.abspath(folder) != _here]
_before, sys.path[:] = list(sys.path), _without
del sys.modules["sitecustomize"]
try:
    import_module("sitecustomize")  # the next one on the path
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = sys.modules[__name__] if __name__ in sys.modules else type(sys)("sitecustomize")
finally:
    sys.path[:] = _before
