"""The two guides to convolution: their worked sums are right, their matrices and figures are what the stages compute,
and what they say of ladders and networks is so. Their code blocks are run by test_docs."""

from __future__ import annotations

import importlib
import json
import math
import re
import runpy
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared import contract
from shared.architectures import NAMED, fashion_cnn, lenet5, residual_cnn
from shared.checks import winograd

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "guides" / name for name in ("convolution.md", "convolution-ladder.md")]
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def floor(stage: contract.Stage) -> contract.Stage:
    """The stages that have convolutions."""
    if stage.convolution is None:
        pytest.skip(f"{stage.title} has no convolutions yet")
    return stage


@pytest.fixture(scope="module")
def figures() -> Iterator[Any]:
    """The numbers that the figures are drawn from."""
    folder = str(ROOT / "docs" / "figures")
    sys.path.insert(0, folder)
    yield importlib.import_module("convolution_example")
    sys.path.remove(folder)


# ---- sums and matrices in the text


def formulas() -> list[str]:
    """What stands between dollar signs, outside of code, without the commas in large numbers."""
    text = PROSE.replace("{,}", "")
    alone = re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)
    return alone + re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))


def value(tex: str) -> float | None:
    """The value of a formula of numbers alone; None if there is a letter in it."""
    plain = tex.replace(r"\cdot", "*").replace(r"\,", "").replace(r"\sqrt", "math.sqrt")
    plain = re.sub(r"\\frac\{([\d.]+)\}\{([\d.]+)\}", r"(\1 / \2)", plain)
    plain = re.sub(r"\^\{?(-?\d+)\}?", r"**(\1)", plain).replace("{", "(").replace("}", ")").strip()
    if not plain or re.search(r"[A-Za-z\\_&]", plain.replace("math.sqrt", "")):
        return None
    return float(eval(plain, {"math": math}))


def statements(formula: str) -> Iterator[tuple[str, str]]:
    """Neighbours around a sign of equality, both numbers: 'y = 1 + 2 = 3' has one."""
    for part in re.split(r",(?!\d)|\\q?quad|\n\n", formula):
        sides = part.split("=")
        numbers = [(a, b) for a, b in pairwise(sides) if value(a) is not None and value(b) is not None]
        yield from numbers


def test_every_worked_sum_of_the_guide_is_right() -> None:
    found = [pair for formula in formulas() for pair in statements(formula)]
    assert len(found) >= 30
    for left, right in found:
        decimals = re.search(r"\.(\d+)\s*$", right)
        near = 0.6 * 10.0 ** -len(decimals[1]) if decimals else 1e-9
        assert value(left) == pytest.approx(value(right), abs=near), f"{left} = {right}"


def matrices() -> list[list[list[float]]]:
    """The matrices of the page, in order."""
    found = re.findall(r"\\begin\{pmatrix\}(.+?)\\end\{pmatrix\}", PROSE, re.DOTALL)
    return [[[float(each) for each in row.split("&")] for row in matrix.split(r"\\")] for matrix in found]


def test_the_matrices_of_the_guide_are_those_of_its_figures_and_those_that_the_c_is_derived_from(figures: Any) -> None:
    outputs, kernels, pixels = runpy.run_path(str(ROOT / "scripts" / "derive_winograd.py"))["matrices"](2)
    derived = [[[float(each) for each in row] for row in matrix] for matrix in (pixels, kernels, outputs)]
    wanted = [figures.IMAGE, figures.KERNEL, figures.OUTPUT, figures.SLOPES, *derived]
    for got, expected in zip(matrices(), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
    for got, expected in zip(
        derived, (figures.INPUT_TRANSFORM, figures.KERNEL_TRANSFORM, figures.OUTPUT_TRANSFORM), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


# ---- figures


def images(stage: contract.Stage, *planes: Any) -> Any:
    """Planes as the channels of one image, on a stage, in float64."""
    return stage.arrays.asarray([[np.asarray(plane).tolist() for plane in planes]], "float64")


def on_host(stage: contract.Stage, array: Any) -> Any:
    return np.asarray(stage.arrays.to_host(array))


def test_every_floor_computes_the_numbers_of_the_figures(floor: contract.Stage, figures: Any) -> None:
    image, kernel, slopes = (images(floor, each) for each in (figures.IMAGE, figures.KERNEL, figures.SLOPES))
    bias = floor.arrays.asarray([figures.BIAS], "float64")
    none = floor.arrays.asarray([0.0], "float64")
    room = floor.convolution
    for name, rung in room.CONVOLUTION_LADDER.items():
        np.testing.assert_allclose(
            on_host(floor, rung(image, kernel, bias))[0, 0], figures.OUTPUT, atol=1e-12, err_msg=name
        )
    grad_x, grad_weights, grad_bias = (on_host(floor, each) for each in room.conv2d_backward(slopes, image, kernel))
    np.testing.assert_allclose(grad_x[0, 0], figures.GRAD_INPUT, atol=1e-12)
    np.testing.assert_allclose(grad_weights[0, 0], figures.GRAD_WEIGHTS, atol=1e-12)
    np.testing.assert_allclose(grad_bias, [figures.SLOPES.sum()], atol=1e-12)
    np.testing.assert_allclose(on_host(floor, room.conv2d(image, kernel, none))[0, 0], figures.WINOGRAD, atol=1e-12)
    np.testing.assert_allclose(figures.KERNEL.reshape(1, 9) @ figures.COLUMNS, figures.SUMS.reshape(1, 4))


def test_every_floor_pools_as_the_figure_shows(floor: contract.Stage, figures: Any) -> None:
    drawn = importlib.import_module("convolution")
    output, indices = floor.pooling.max_pool2d(images(floor, figures.PLANE), 2)
    places = drawn.first_maxima()
    assert np.asarray(indices).reshape(-1).tolist() == [4 * row + column for row, column in places]
    assert on_host(floor, output).reshape(-1).tolist() == [figures.PLANE[place] for place in places]
    back = floor.pooling.max_pool2d_backward(images(floor, drawn.POOL_SLOPES), indices, (1, 1, 4, 4))
    np.testing.assert_array_equal(on_host(floor, back)[0, 0], drawn.pooled_slopes())


def test_the_figure_of_the_networks_counts_all_parameters_and_all_work(figures: Any) -> None:
    drawn = importlib.import_module("convolution_networks")
    for make in NAMED.values():
        parts = list(drawn.parts(make()))
        assert sum(part.parameters for part in parts) == make().parameter_count
        assert sum(part.multiply_adds for part in parts) == make().multiply_adds


# ---- what the text says


def test_what_the_guide_says_of_the_networks_is_so() -> None:
    lenet, fashion, residual = lenet5(), fashion_cnn(), residual_cnn()
    work = [math.prod(shape) for shape in fashion.parameter_shapes()]
    assert math.prod(lenet.input_shape) * math.prod(lenet.shapes()[1]) == 784 * 4704
    assert sum(map(math.prod, lenet.parameter_shapes()[:2])) == 156
    second = math.prod(fashion.shapes()[4]) * fashion.shapes()[3][0] * 9
    assert f"{second / fashion.multiply_adds:.0%}" == "88%"
    assert f"{(work[4] + work[5]) / fashion.parameter_count:.0%}" == "91%"
    assert round(residual.multiply_adds / 1e6) == 33
    assert round(residual.multiply_adds / lenet.multiply_adds) == 80
    assert round(residual.parameter_count / lenet.parameter_count) == 8
    for words in (
        "88 % of the multiply-adds",
        "91 % of the parameters",
        "33 million",
        "80 times as many",
        "8 times as many",
    ):
        assert words in " ".join(PROSE.split())


def test_the_rungs_in_the_guide_are_those_of_the_floors(floor: contract.Stage) -> None:
    rows = re.findall(rf"^\| {floor.name.split('_')[0].replace('stage', 'stage ')} \| (.+?) \|", PAGE, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [list(floor.convolution.CONVOLUTION_LADDER)]


def test_the_record_of_kernel_sizes_says_what_the_guide_says(figures: Any) -> None:
    drawn = importlib.import_module("convolution_sizes")
    record = json.loads(drawn.RECORD.read_text(encoding="utf-8"))
    assert {drawn.crossing(case) for case in record["cases"].values()} == {9}
    assert "loses up to 7 by 7 and wins from 9 by 9 on" in " ".join(PROSE.split())
    table = (ROOT / "docs" / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) by \1 \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", table, re.MULTILINE)
    assert len(rows) == 8
    for size, *told in rows:
        assert told == [f"{drawn.ratios(case)[int(size)]:.2f}" for case in record["cases"].values()]
    for case in record["cases"].values():
        assert max(row["difference"] for row in case["sizes"]) < 1e-6


def test_the_turnable_figure_of_winograd_has_the_matrices_of_the_page() -> None:
    figure = (ROOT / "docs" / "turnable" / "winograd.html").read_text(encoding="utf-8")
    of_pixels, of_outputs = (
        {int(side): json.loads(rows) for side, rows in re.findall(r"^ +(\d): (\[\[.*\]\]),$", part, re.MULTILINE)}
        for part in re.findall(r"const (?:pixels|outputs) = \{(.*?)\};", figure, re.DOTALL)
    )
    assert set(of_pixels) == set(of_outputs) == {1, 2, 4}
    assert of_pixels[1] == np.eye(3).tolist()
    assert of_outputs[1] == [[1, 1, 1]]
    for side in winograd.POINTS:
        at, _, bt = winograd.matrices(side)
        assert of_outputs[side] == at
        assert of_pixels[side] == bt
