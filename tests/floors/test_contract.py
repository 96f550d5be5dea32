"""Every stage keeps the contract: the same names, parameters and defaults in every module (docs/architecture.md)."""

import importlib
import importlib.util
import inspect
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from shared import contract
from shared.contract import (
    ACTIVATIONS,
    IMAGE_ROOMS,
    LOSSES,
    ROOMS,
    STAGES,
    Stage,
    StageUnavailable,
    load_stage,
    stage_name,
)

# Room and dotted name -> the parameters a caller may rely on: a bare name is required, (name, default) is not.
# A stage may take further parameters after these as long as they have defaults (stage 2's `out`).
SIGNATURES: dict[str, list[str | tuple[str, Any]]] = {
    "arrays.asarray": ["values", ("dtype", "float32")],
    "arrays.to_host": ["array"],
    "matmul.matmul": ["a", "b"],
    "matmul.matmul_tn": ["a", "b"],
    "matmul.matmul_nt": ["a", "b"],
    **{f"activations.{name}": ["z"] for name in ACTIVATIONS},
    **{f"activations.{name}_backward": ["grad_output", "z", "output"] for name in ACTIVATIONS},
    **{f"losses.mean_squared_error{end}": ["outputs", "targets"] for end in ("", "_backward")},
    **{f"losses.softmax_cross_entropy{end}": ["logits", "labels"] for end in ("", "_backward")},
    **{f"losses.sigmoid_cross_entropy{end}": ["logits", "targets"] for end in ("", "_backward")},
    **{f"losses.hinge{end}": ["scores", "labels"] for end in ("", "_backward")},
    "dense.Dense": ["weights", "bias"],
    "dense.Dense.forward": ["self", "x"],
    "dense.Dense.backward": ["self", "grad_output", ("needs_grad_input", True)],
    "convolution.conv2d": ["x", "weights", "bias", ("stride", 1), ("padding", 0)],
    "convolution.conv2d_backward": [
        *("grad_output", "x", "weights"),
        *(("stride", 1), ("padding", 0), ("needs_grad_input", True)),
    ],
    "convolution.Conv2d": ["weights", "bias", ("stride", 1), ("padding", 0)],
    "convolution.Conv2d.forward": ["self", "x"],
    "convolution.Conv2d.backward": ["self", "grad_output", ("needs_grad_input", True)],
    "pooling.max_pool2d": ["x", "size", ("stride", None)],
    "pooling.max_pool2d_backward": ["grad_output", "indices", "input_shape"],
    "pooling.average_pool2d": ["x", "size", ("stride", None)],
    "pooling.average_pool2d_backward": ["grad_output", "input_shape", "size", ("stride", None)],
    "batch_norm.batch_norm": [
        *("x", "gamma", "beta", "running_mean", "running_var", "training"),
        *(("momentum", 0.1), ("epsilon", 1e-5)),
    ],
    "batch_norm.batch_norm_backward": ["grad_output", "saved"],
    "batch_norm.BatchNorm": [
        *("gamma", "beta"),
        *(("running_mean", None), ("running_var", None), ("momentum", 0.1), ("epsilon", 1e-5)),
    ],
    "batch_norm.BatchNorm.forward": ["self", "x", ("training", False)],
    "batch_norm.BatchNorm.backward": ["self", "grad_output"],
    "network.Network": [
        "layer_sizes",
        ("activation", "relu"),
        ("loss", "softmax_cross_entropy"),
        ("initializer", "he"),
        ("seed", 0),
        ("dtype", "float32"),
    ],
    "network.Network.from_parameters": [
        "parameters",
        ("activation", "relu"),
        ("loss", "softmax_cross_entropy"),
        ("dtype", "float32"),
    ],
    "network.Network.forward": ["self", "x", ("dropout_masks", None), ("training", False)],
    "network.Network.outputs": ["self", "x", ("dropout_masks", None), ("training", False)],
    "network.Network.loss": ["self", "x", "y", ("dropout_masks", None), ("training", False)],
    "network.Network.gradients": ["self", "x", "y", ("dropout_masks", None)],
    "network.Network.train_step": ["self", "x", "y", "optimizer", ("dropout_masks", None)],
    "network.Network.predict": ["self", "x"],
    "network.Network.normalise_over": ["self", "whole_batch"],
    "optimizers.SGD": ["learning_rate", ("momentum", 0.0), ("nesterov", False), ("weight_decay", 0.0)],
    "optimizers.RMSProp": [("learning_rate", 0.01), ("alpha", 0.99), ("epsilon", 1e-8), ("weight_decay", 0.0)],
    "optimizers.Adam": [
        ("learning_rate", 0.001),
        ("beta1", 0.9),
        ("beta2", 0.999),
        ("epsilon", 1e-8),
        ("weight_decay", 0.0),
    ],
    **{f"optimizers.{name}.step": ["self", "parameters", "gradients"] for name in contract.OPTIMIZERS},
    **{f"optimizers.{name}.state": ["self"] for name in contract.OPTIMIZERS},
    **{f"optimizers.{name}.load_state": ["self", "state"] for name in contract.OPTIMIZERS},
}
PROTOCOLS = {
    "ArraysRoom": "arrays",
    "MatmulRoom": "matmul",
    "DenseLayer": "dense.Dense",
    "NetworkLike": "network.Network",
    "Optimizer": "optimizers.SGD",
}


def find(root: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        root = getattr(root, name)
    return root


def as_listed(function: Any) -> list[str | tuple[str, Any]]:
    """A callable's parameters in the notation of SIGNATURES."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name if p.default is p.empty else (p.name, p.default) for p in parameters]


@pytest.mark.parametrize("dotted", SIGNATURES)
def test_every_stage_has_the_name_with_these_parameters_and_defaults(stage: Stage, dotted: str) -> None:
    got = as_listed(find(stage, dotted))
    promised = SIGNATURES[dotted]
    assert got[: len(promised)] == promised
    assert all(isinstance(extra, tuple) for extra in got[len(promised) :]), f"{dotted} demands more than the contract"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_protocols_in_contract_py_say_the_same(protocol: str) -> None:
    functions = {n: f for n, f in vars(getattr(contract, protocol)).items() if inspect.isfunction(f) and n[0] != "_"}
    listed = {n: f for n, f in functions.items() if f"{PROTOCOLS[protocol]}.{n}" in SIGNATURES}
    assert listed.keys() == functions.keys()
    for name, function in functions.items():
        promised = SIGNATURES[f"{PROTOCOLS[protocol]}.{name}"]
        assert [p for p in as_listed(function) if p != "self"] == [p for p in promised if p != "self"], name


def test_every_public_function_says_what_it_does(stage: Stage) -> None:
    for dotted in SIGNATURES:
        assert inspect.getdoc(find(stage, dotted)), dotted
    for room in (*ROOMS, *IMAGE_ROOMS):
        assert getattr(stage, room).__doc__, room


def test_the_ladder_maps_names_to_functions_with_docstrings_slowest_first(stage: Stage) -> None:
    assert all(as_listed(rung)[:2] == ["a", "b"] and rung.__doc__ for rung in stage.matmul.LADDER.values())
    header = stage.matmul.__doc__ or ""
    positions = [header.find(name) for name in stage.matmul.LADDER]
    assert -1 not in positions, "the file's header lists every rung"
    assert positions == sorted(positions)


def test_a_convolution_ladder_maps_names_to_functions_with_docstrings_slowest_first(stage: Stage) -> None:
    promised = SIGNATURES["convolution.conv2d"]
    header = stage.convolution.__doc__ or ""
    positions = [header.find(f"    {rung} ") for rung in stage.convolution.CONVOLUTION_LADDER]
    assert -1 not in positions, "the file's header lists every rung"
    assert positions == sorted(positions)
    for name, rung in stage.convolution.CONVOLUTION_LADDER.items():
        assert as_listed(rung)[: len(promised)] == promised, name
        assert rung.__doc__, name


def test_the_network_has_the_attributes_that_shared_code_reads(stage: Stage) -> None:
    network = stage.network.Network([2, 3])
    for name in ("layers", "activation", "loss_name", "dtype", "layer_sizes", "parameters"):
        assert hasattr(network, name), name
    for name in ("weights", "bias", "grad_weights", "grad_bias"):
        assert hasattr(network.layers[0], name), name
    for name in contract.OPTIMIZERS:
        assert getattr(stage.optimizers, name)(learning_rate=0.25).learning_rate == 0.25


def test_architecture_page_and_contract_list_the_same_stages_and_rooms() -> None:
    page = (Path(contract.__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name in (
        *STAGES,
        *(f"| {room} |" for room in (*ROOMS, *IMAGE_ROOMS)),
        *ACTIVATIONS,
        *LOSSES,
        *contract.OPTIMIZERS,
    ):
        assert name in page, name


@pytest.mark.parametrize("full", STAGES)
def test_a_stage_answers_to_its_number_and_its_short_name(full: str) -> None:
    number, _, short = full.partition("_")
    for alias in (full, number, number.removeprefix("stage"), short):
        assert stage_name(alias) == full


@pytest.mark.parametrize("alias", ["5", "0", "", "stage", "NumPy", "stage2_", "stage2-numpy"])
def test_an_unknown_stage_is_rejected_with_the_choices(alias: str) -> None:
    for function in (stage_name, load_stage):
        with pytest.raises(ValueError, match=f"unknown stage '{alias}'; choose one of {', '.join(STAGES)}"):
            function(alias)


def test_load_stage_hands_over_the_stages_own_modules(stage: Stage) -> None:
    assert load_stage(str(stage.number)).network is stage.network
    for room in (*ROOMS, *IMAGE_ROOMS):
        assert getattr(stage, room) is importlib.import_module(f"{stage.name}.{room}")
    assert stage.title.startswith(f"stage {stage.number}: ")


def test_a_stage_that_is_not_installed_is_unavailable_and_the_message_names_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.util.find_spec

    def without_stage_3(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "stage3_c" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_stage_3)
    assert "stage3_c" not in contract.available_stages()
    with pytest.raises(StageUnavailable, match=r"stage3_c is not installed \(this version has stage1_pure_python, "):
        load_stage("c")


def test_the_first_two_stages_are_always_there_in_order() -> None:
    assert contract.available_stages()[:2] == ["stage1_pure_python", "stage2_numpy"]
