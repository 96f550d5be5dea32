"""shared.contract: the two ways to load a stage, and the optional capability to train on resident data.

tests/floors/test_contract.py holds every stage to the contract itself.
"""

import inspect
import sys
from typing import Any

import numpy as np
import pytest

from shared import contract
from tests.stages import USABLE_STAGES


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_a_part_of_a_stage_is_its_module_by_any_name_of_the_stage() -> None:
    for name in ("2", "numpy", "stage2_numpy"):
        assert contract.load_part(name, "activations") is contract.load_stage("2").activations
    assert contract.load_part("3", "library") is sys.modules["stage3_c.library"]


def test_a_part_of_an_unknown_stage_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"unknown stage '5'; choose one of stage1_pure_python, "):
        contract.load_part("5", "network")
    with pytest.raises(ModuleNotFoundError, match=r"stage2_numpy\.attention"):
        contract.load_part("2", "attention")


@pytest.mark.parametrize("name", USABLE_STAGES)
def test_only_stage_4_can_keep_the_data_on_its_device(name: str) -> None:
    network = contract.load_stage(name).network.Network([3, 2])
    assert contract.can_be_resident(network) is (name == "stage4_numba_cuda")


@pytest.mark.skipif("stage4_numba_cuda" not in USABLE_STAGES, reason="stage 4 cannot run here")
def test_a_resident_run_of_stage_4_has_what_the_contract_promises() -> None:
    own = contract.load_stage("4").network.Network.resident
    assert parameters(own) == parameters(contract.ResidentNetwork.resident)
    stage = contract.load_stage("4")
    network, optimizer = stage.network.Network([3, 2], dtype="float64"), stage.optimizers.SGD(0.1)
    run = network.resident(np.ones((4, 3), np.float32), np.array([0, 1, 1, 0]), optimizer, 2, 0)
    assert run.interval >= 1
    for name in ("begin_epoch", "prefetch", "take"):
        assert parameters(getattr(type(run), name)) == parameters(getattr(contract.ResidentRun, name))
