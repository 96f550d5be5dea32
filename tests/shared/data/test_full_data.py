"""What the full data sets are good for: the accuracies that the README and docs/benchmarks promise."""

import json
import os
from pathlib import Path

import pytest

from groundup.cli import main
from tests.stages import STAGE_PARAMS, USABLE_STAGES
from tests.wide import wide

DATA = os.environ.get("GROUNDUP_DATA", "")


@pytest.mark.parametrize("stage", [p for p in STAGE_PARAMS if p.id != "stage1_pure_python"])
@pytest.mark.parametrize(
    ("dataset", "options", "promised"),
    [
        ("mnist", ["--hidden", "128", "--learning-rate", "0.2"], 0.975),
        (
            "fashion-mnist",
            ["--hidden", "128,64", "--dropout", "0.2", "--optimizer", "adam", "--learning-rate", "0.002"],
            0.88,
        ),
    ],
)
def test_a_stage_reaches_the_promised_accuracy_in_ten_epochs(
    stage: str, dataset: str, options: list[str], promised: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path(DATA, dataset).is_dir():
        pytest.skip(f"needs the full {dataset} set: set GROUNDUP_DATA to a folder that has {dataset}/")
    command = ["train", stage, "--dataset", dataset, *options, "--schedule", "cosine", "--epochs", "10"]
    with pytest.raises(SystemExit) as end:
        main([*command, "--run-dir", str(tmp_path / "run"), "--json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["test_accuracy"] >= promised


@wide
@pytest.mark.skipif("stage3_c" not in USABLE_STAGES, reason="stage 3 does not run here, and the others take hours")
@pytest.mark.parametrize(
    ("model", "dataset", "promised"),
    [("lenet5", "mnist", 0.989), ("fashion_cnn", "fashion-mnist", 0.91), ("residual_cnn", "mnist", 0.99)],
)
def test_a_known_network_reaches_the_promised_accuracy_with_its_recipe(
    model: str, dataset: str, promised: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path(DATA, dataset).is_dir():
        pytest.skip(f"needs the full {dataset} set: set GROUNDUP_DATA to a folder that has {dataset}/")
    with pytest.raises(SystemExit) as end:
        main(
            ["train", "stage3_c", "--model", model, "--dataset", dataset, "--run-dir", str(tmp_path / "run"), "--json"]
        )
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["test_accuracy"] >= promised
