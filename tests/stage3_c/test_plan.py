"""A network of stage 3 computes by its plan what it computes layer by layer."""

import copy
import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from shared.architectures import Architecture
from shared.names import OPTIMIZERS
from tests.layered_forms import FORMS
from tests.stages import REASONS, USABLE_STAGES

pytestmark = pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason=REASONS["stage3_c"] or "")
if "stage3_c" in USABLE_STAGES:
    from stage3_c import build, network, operations, optimizers, plan


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("rung", ["fused", "one_call"])
def test_a_step_by_the_plan_gives_what_a_call_for_each_layer_gives(name: str, rung: str) -> None:
    architecture = Architecture(*FORMS[name])
    one = network.Network(architecture, seed=1, dtype="float64")
    other = copy.deepcopy(one)
    step, layer_by_layer = network.STEP_LADDER[rung], network.STEP_LADDER["op_by_op"]
    mine, theirs = optimizers.Adam(0.01), optimizers.Adam(0.01)
    rng = np.random.default_rng(0)
    for rows in (3, 20, 2, 37):  # fewer than a register holds, more, a smaller batch in the same memory
        x, y = rng.normal(size=(rows, one.layer_sizes[0])), rng.integers(0, one.layer_sizes[1], rows)
        masks = [rng.choice([0.0, 2.0], size=(rows, size)) for size, _ in architecture.dropouts()]
        loss, expected = step(one, x, y, mine, masks), layer_by_layer(other, x, y, theirs, masks)
        assert loss == pytest.approx(expected, rel=1e-11)
        for got, wanted in zip(one.layer_gradients, other.layer_gradients, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
        for got, wanted in zip(one.running_statistics, other.running_statistics, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
        for p, q in zip(one.parameters, other.parameters, strict=True):
            np.copyto(p, q)  # or Adam would turn a rounding of a slope of zero into a step
        for training in (False, True):
            got = one.forward(x, masks, training)
            np.testing.assert_allclose(got, other.outputs(x, masks, training)[-1], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("rung", ["op_by_op", "fused", "one_call"])
def test_gradients_alone_leave_the_running_statistics_as_they_are(rung: str) -> None:
    made = network.Network(Architecture(*FORMS["rows"]), dtype="float64")
    before = [each.copy() for each in made.running_statistics]
    x, y = np.random.default_rng(0).normal(size=(6, made.layer_sizes[0])), np.zeros(6, np.int64)
    network.STEP_LADDER[rung](made, x, y, None)
    assert all(np.array_equal(one, other) for one, other in zip(made.running_statistics, before, strict=True))


@pytest.mark.parametrize("name", FORMS)
def test_float32_gives_what_float64_gives(name: str) -> None:
    """Sums of a few hundred products: seven digits, of which Winograd's transforms cost one or two."""
    architecture = Architecture(*FORMS[name])
    exact, made = (network.Network(architecture, seed=2, dtype=dtype) for dtype in ("float64", "float32"))
    rng = np.random.default_rng(1)
    for statistics in zip(exact.running_statistics, made.running_statistics, strict=True):
        for each in statistics:
            np.copyto(each, rng.uniform(0.5, 2, each.shape) if each is statistics[0] else statistics[0])
    for rows in (1, 7, 12, 13, 33):
        x = rng.normal(size=(rows, exact.layer_sizes[0]))
        expected = exact.outputs(x)[-1]
        np.testing.assert_allclose(made.forward(x), expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


def test_a_struct_that_differs_from_its_declaration_in_c_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COperation", "COptimizerStep"):
        with monkeypatch.context() as patched:
            fields = (*getattr(plan, name)._fields_, ("more", ctypes.c_void_p))
            patched.setattr(plan, name, type("Longer", (ctypes.Structure,), {"_fields_": fields}))
            with pytest.raises(ValueError, match=r"Longer has \d+ bytes but its struct in groundup.h has \d+"):
                network.Network([13, 5]).forward(np.ones((2, 13)))


def test_kinds_and_names_stand_in_the_order_of_the_enumerations_in_c() -> None:
    header = (Path(build.CSRC) / "groundup.h").read_text(encoding="utf-8")
    for enum, names in {"operation_kind": operations.KINDS, "optimizer": OPTIMIZERS}.items():
        found = re.search(rf"enum {enum} {{(.*?)}}", header, re.DOTALL)
        assert found
        assert [name.strip().lower() for name in found[1].split(",")][:-1] == [name.lower() for name in names]
