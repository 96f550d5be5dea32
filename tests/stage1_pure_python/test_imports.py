"""Stage 1 needs nothing but Python: it trains where every other import is refused."""

import subprocess
import sys
from pathlib import Path

from shared import contract

ROOT = Path(contract.__file__).parents[1]

WITHOUT_NUMPY = '''
import importlib, sys

OURS = {"stage1_pure_python", "shared"}

class OnlyTheStandardLibrary:
    """Refuses every import of anything that Python does not bring along and that is not ours."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | OURS:
            raise ImportError(f"{name} is blocked: stage 1 uses the standard library only")
        return None

sys.meta_path.insert(0, OnlyTheStandardLibrary())
try:
    import numpy
except ImportError:
    pass
else:
    raise SystemExit("the block does not work: numpy could be imported")

modules = {name: importlib.import_module(f"stage1_pure_python.{name}") for name in MODULES}
network = modules["network"].Network([2, 4, 2], activation="tanh", seed=3)
x, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
optimizer = modules["optimizers"].Adam(0.05)
losses = [network.train_step(x, y, optimizer) for _ in range(200)]
assert losses[-1] < 0.1 < losses[0], losses
assert network.predict(x) == y, network.predict(x)
for name in LOADED:
    assert name not in sys.modules, name
print("trained on the standard library alone")
'''


def test_stage_1_trains_with_everything_outside_the_standard_library_blocked() -> None:
    modules = (*contract.ROOMS, *contract.IMAGE_ROOMS)
    header = f"MODULES = {modules!r}\nLOADED = ('numpy', 'stage2_numpy', 'shared.contract')\n"
    done = subprocess.run(
        [sys.executable, "-c", header + WITHOUT_NUMPY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "trained on the standard library alone"
