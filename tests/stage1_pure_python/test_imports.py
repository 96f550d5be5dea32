"""Stage 1 needs nothing but Python, and no stage leans on another. Both are proven, not promised."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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

rooms = {room: importlib.import_module(f"stage1_pure_python.{room}") for room in ROOMS}
network = rooms["network"].Network([2, 4, 2], activation="tanh", seed=3)
x, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
optimizer = rooms["optimizers"].Adam(0.05)
losses = [network.train_step(x, y, optimizer) for _ in range(200)]
assert losses[-1] < 0.1 < losses[0], losses
assert network.predict(x) == y, network.predict(x)
for name in LOADED:
    assert name not in sys.modules, name
print("trained on the standard library alone")
'''


def test_stage_1_trains_with_everything_outside_the_standard_library_blocked() -> None:
    header = (
        f"ROOMS = {(*contract.ROOMS, *contract.IMAGE_ROOMS)!r}\nLOADED = ('numpy', 'stage2_numpy', 'shared.contract')\n"
    )
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


def imported_packages(path: Path) -> set[str]:
    """The top-level packages that a file imports; relative imports stay inside and are left out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def python_files(package: str) -> list[Path]:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"{package} has no Python files: this test would prove nothing"
    return files


@pytest.mark.parametrize("package", contract.available_stages())
def test_a_stage_imports_no_other_stage(package: str) -> None:
    others = set(contract.STAGES) - {package}
    for path in python_files(package):
        assert not imported_packages(path) & others, path


def test_shared_imports_no_stage_directly() -> None:
    for path in python_files("shared"):
        assert not imported_packages(path) & set(contract.STAGES), path


def test_stage_1_imports_only_the_standard_library_and_what_is_shared_by_all_floors() -> None:
    allowed = sys.stdlib_module_names | {"shared"}
    of_shared = {
        f"shared.{name}"
        for name in (
            "architectures",
            "initialize",
            "layers",
            "names",
            "network_base",
            "optimizer_base",
            "shapes",
            "windows",
        )
    }
    for path in python_files("stage1_pure_python"):
        if path.name == "train.py":  # the command, which is no room
            continue
        assert imported_packages(path) <= allowed, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("shared."):
                assert node.module in of_shared, path
