"""The lists of names: C and JavaScript, which cannot import them, have the same ones, and Python has no second copy."""

import ast
import re
from pathlib import Path

import pytest

from shared import names

ROOT = Path(names.__file__).parents[1]
NOT_IN_THE_BROWSER: set[str] = set()
"""Activations that the pages without a server do not compute; the playground does not offer them."""


@pytest.mark.parametrize(
    ("enumeration", "expected"),
    [("activation", names.ACTIVATIONS), ("loss", names.LOSSES), ("optimizer", names.OPTIMIZERS)],
)
def test_c_numbers_the_names_in_the_same_order(enumeration: str, expected: tuple[str, ...]) -> None:
    header = (ROOT / "stage3_c" / "csrc" / "groundup.h").read_text(encoding="utf-8")
    found = re.search(rf"enum {enumeration} {{ ([A-Z_, ]+), [A-Z]+ }};", header)
    assert found is not None
    assert found[1].split(", ") == [name.upper() for name in expected]


def test_the_studio_offers_every_loss() -> None:
    settings = ROOT / "groundup" / "studio" / "playground" / "static" / "settings.js"
    losses = re.search(r'name: "loss".*?choices: \[(.*?)\] \}', settings.read_text(encoding="utf-8"), re.DOTALL)
    assert losses is not None
    assert set(re.findall(r'\["(\w+)",', losses[1])) == set(names.LOSSES)


def test_the_browser_computes_every_activation_and_loss() -> None:
    static = ROOT / "groundup" / "studio"
    activations = (static / "static" / "common" / "activations.js").read_text(encoding="utf-8")
    table = re.search(r"export const ACTIVATIONS = {\n(.*?)\n};", activations, re.DOTALL)  # the playground offers these
    assert table is not None
    offered = set(re.findall(r"^  (\w+): ", table[1], re.MULTILINE))
    assert offered == set(names.ACTIVATIONS) - NOT_IN_THE_BROWSER, (
        f"only in one of shared/names.py and common/activations.js, and not in NOT_IN_THE_BROWSER: "
        f"{', '.join(sorted(offered ^ (set(names.ACTIVATIONS) - NOT_IN_THE_BROWSER)))}"
    )
    losses = (static / "playground" / "static" / "training.js").read_text(encoding="utf-8")
    assert set(re.findall(r"^  (\w+): ", losses, re.MULTILINE)) >= set(names.LOSSES)


def test_every_activation_has_its_cost() -> None:
    assert tuple(names.ACTIVATION_FLOPS) == names.ACTIVATIONS


def test_no_python_file_has_a_list_of_its_own() -> None:
    lists = {frozenset(getattr(names, name)) for name in ("ACTIVATIONS", "LOSSES", "LABEL_LOSSES", "OPTIMIZERS")}
    copies = [
        str(path.relative_to(ROOT))
        for folder in ("shared", "groundup", "stage1_pure_python", "stage2_numpy", "stage3_c", "stage4_numba_cuda")
        for path in (ROOT / folder).rglob("*.py")
        if "cross_entropy" in (text := path.read_text(encoding="utf-8")) or "relu" in text or "Adam" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Tuple | ast.List)
        and frozenset(e.value if isinstance(e, ast.Constant) else None for e in node.elts) in lists
    ]
    assert copies == ["shared/names.py"] * len(lists)


def test_an_unknown_name_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"^unknown loss 'l1'; choose one of mean_squared_error, "):
        names.check_name("unknown loss", "l1", names.LOSSES)
    with pytest.raises(ValueError, match=r"^asarray: unknown dtype 'float16'; choose one of float32, float64$"):
        names.check_dtype("asarray", "float16")
