"""The drawing of a network: a row for each layer with weights or windows, and the way around a residual block."""

import pytest

from shared.architectures import NAMED, Architecture, mlp, named
from shared.charts.drawing.style import Chart
from shared.charts.figures.architecture import TITLES, drawing, rows_of
from shared.layers import Activate, BatchNorm, Conv, Dense, Dropout, Flatten, Residual
from tests.shared.charts import chart_checks

CASES = {TITLES[name]: named(name) for name in NAMED} | {
    "MLP": mlp([784, 128, 10]),
    "nested": Architecture(
        (3, 5, 7),
        (
            BatchNorm(),
            Residual((Conv(3, 1), Residual((Conv(3, 3, padding=1), Activate("relu"))))),
            *(Flatten(), Dropout(0.5), Dense(2)),
        ),
    ),
}


@pytest.fixture(params=["Residual CNN", "nested"])
def chart(request: pytest.FixtureRequest) -> Chart:
    return drawing(CASES[request.param], request.param)


def test_no_text_is_cut_off_too_small_over_another_or_unreadable(chart: Chart) -> None:
    chart_checks.assert_sound(chart.figure)


@pytest.mark.parametrize("name", CASES)
def test_rows_hold_all_parameters_and_all_work(name: str) -> None:
    rows, _ = rows_of(CASES[name])
    assert sum(row.parameters for row in rows) == CASES[name].parameter_count
    assert sum(row.work for row in rows) == CASES[name].multiply_adds


def test_what_follows_a_layer_stands_in_its_row_and_blocks_go_from_their_input_to_their_sum() -> None:
    rows, blocks = rows_of(CASES["Residual CNN"])
    assert [row.words for row in rows[:4]] == ["input", *["Conv(32, 3, padding=1)"] * 3]
    assert rows[3].after == ["batch norm", "+ input", "relu"]
    assert blocks == [(1, 3), (5, 7)]
    rows, blocks = rows_of(CASES["nested"])
    assert rows[0].after == ["batch norm"]
    assert rows[-2].after == ["relu", "+ input", "+ input", "flatten to 105", "dropout 0.5"]
    assert blocks == [(1, 2), (0, 2)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("LeNet-5", "Dense(120) holds 78 % of the 61,706 parameters, Conv(16, 5) does 58 % of the work"),
        ("Residual CNN", "Dense(128) holds 78 % of the 514,570 parameters, the convolutions do 99 % of the work"),
    ],
)
def test_the_title_says_where_parameters_and_work_are(name: str, found: str) -> None:
    assert drawing(CASES[name], name).title.replace("\u00a0", " ") == f"{name}: {found}"
