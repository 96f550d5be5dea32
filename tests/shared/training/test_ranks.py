"""Several ranks train as one does: the same numbers, whatever the stage, the network and the optimizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared.checks.trajectory import compare_parameters, longest_sum
from shared.communicator import Communicator, WholeBatch
from shared.contract import load_stage
from shared.training.shared_step import SharedStep, parts_of
from tests.mpi import needs_mpi, run_ranks
from tests.shared.training.ranks_worker import BATCH, NETWORKS, trained
from tests.stages import USABLE_STAGES

STEPS_OF_EPOCH = 4
CASES = [
    case
    for case in (
        "stage2_numpy dense SGD float64 25",
        "stage2_numpy residual Adam float64 25",
        "stage2_numpy lenet SGD float64 5",
        "stage2_numpy dense SGD float64 5 7",
        "stage2_numpy dense Adam float32 10",
        "stage3_c dense Adam float64 25",
        "stage3_c lenet SGD float64 25",
        "stage3_c residual SGD float64 10",
        "stage3_c residual Adam float32 10",
        "stage1_pure_python dense SGD float64 5",
        "stage1_pure_python residual Adam float64 2",
        "stage4_numba_cuda dense SGD float64 2",
        "stage4_numba_cuda residual SGD float64 1",
    )
    if case.split()[0] in USABLE_STAGES
]


def assert_as_one_rank(case: str, got: list[np.ndarray], expected: list[np.ndarray], dtype: str) -> None:
    if dtype == "float64":
        # By the largest number of an array: parameters are about 1, but running variances of a deep network hundreds.
        for array, one in zip(got, expected, strict=True):
            assert np.abs(array - one).max() <= 1e-10 * max(1.0, np.abs(one).max()), case
        return
    architecture = NETWORKS[case.split()[1]]()
    k = int(case.split()[4]) * STEPS_OF_EPOCH * longest_sum(architecture, BATCH)
    compared = compare_parameters(got, expected, architecture, dtype, k)
    assert max(np.abs(one).max() for one in expected) > 0.1
    for comparison, one in zip(compared, expected, strict=True):
        # The gradient of a bias before a batch normalisation is 0, so that bias is made of rounding errors alone.
        assert comparison.ok or np.abs(one).max() < 1e-6, (case, comparison)


def ran(ranks: int, path: Path, *cases: str) -> dict[str, np.ndarray]:
    """What so many ranks save of these cases."""
    ended = run_ranks(ranks, "-m", "mpi4py", "-m", "tests.shared.training.ranks_worker", str(path), *cases)
    assert ended.code == 0, ended.errors
    with np.load(path) as saved:
        return dict(saved)


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return ran(1, tmp_path_factory.mktemp("one") / "out.npz", *CASES)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_numbers_are_those_of_one_rank(ranks: int, one_rank: dict[str, np.ndarray], tmp_path: Path) -> None:
    cases = [case for case in CASES if ranks == 2 or case.startswith(("stage2", "stage3"))]
    got = ran(ranks, tmp_path / "out.npz", *cases)
    assert len(got) > 4 * len(cases)
    assert got.keys() <= one_rank.keys()
    for case in cases:
        dtype = case.split()[3]
        arrays = [f"{case}/{i}" for i in range(sum(name.startswith(f"{case}/") for name in got) - 1)]
        assert_as_one_rank(case, [got[name] for name in arrays], [one_rank[name] for name in arrays], dtype)
        numbers = f"{case}/numbers"
        np.testing.assert_allclose(got[numbers], one_rank[numbers], rtol=1e-10 if dtype == "float64" else 1e-4)


@needs_mpi
def test_as_many_ranks_give_the_same_bits(tmp_path: Path) -> None:
    case = "stage2_numpy residual Adam float32 3"
    one, other = (ran(3, tmp_path / name, case) for name in ("one.npz", "other.npz"))
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


@pytest.mark.parametrize("stage", USABLE_STAGES)
@pytest.mark.parametrize("parts", [2, 3, 50])
def test_a_batch_in_parts_gives_the_numbers_of_a_whole_one(stage: str, parts: int) -> None:
    epochs = 2 if stage.startswith("stage4") else 5
    case = f"{stage} dense SGD float64 {epochs}"
    got, result = trained(case, accumulate=parts)
    expected, whole = trained(case)
    assert_as_one_rank(case, got, expected, "float64")
    assert [each.train_loss for each in result.epochs] == pytest.approx([e.train_loss for e in whole.epochs], rel=1e-12)


def test_every_row_is_in_one_part_and_one_rank_has_it() -> None:
    for rows in (1, 2, 5, 13, 64):
        for parts in (1, 2, 7):
            pieces = list(parts_of(rows, parts))
            assert [row for piece in pieces for row in piece] == list(range(rows))
            assert len(pieces) == min(rows, parts)
            assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
    for size in (1, 2, 3, 8):
        shares = []
        for rank in range(size):
            one = Communicator()
            one.rank, one.size = rank, size
            shares.append(one.rows(range(3, 8)))
        assert [row for share in shares for row in share] == [3, 4, 5, 6, 7]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_rank_without_rows_adds_nothing_to_a_step() -> None:
    stage, ranks = load_stage("numpy"), Communicator()
    ranks.size = 2  # of one row the other rank has it
    network, optimizer = stage.network.Network([3, 2], dtype="float64"), stage.optimizers.SGD(0.1)
    shared, x, y = SharedStep(stage, network, optimizer, ranks, 1, True), np.ones((4, 3)), np.array([0, 1, 1, 1])
    for rows, has_some in ((4, True), (1, False)):
        loss = shared.take(rows, lambda own: (x[own.start : own.stop], y[own.start : own.stop], None))
        assert (loss > 0) == has_some
        assert any(gradient.any() for gradient in network.layer_gradients) == has_some


class Gathering(Communicator):
    """Rank 0 of several, to which the others' numbers are known."""

    def __init__(self, others: list[np.ndarray]) -> None:
        self.others, self.size = others, len(others) + 1

    def gathered(self, numbers: np.ndarray) -> np.ndarray:
        return np.array([numbers, *self.others])


def test_the_moments_of_all_ranks_are_those_of_all_rows_far_from_zero_too() -> None:
    x = np.random.default_rng(1).normal(1e6, 1.0, (30, 2))
    pieces = x[:11], x[11:12], x[12:]
    own, *others = [np.concatenate([[len(p)], p.mean(0), len(p) * p.var(0)]) for p in pieces]
    without_rows = np.concatenate([[0], [7e9, 7e9], [1.0, 1.0]])
    whole = WholeBatch(Gathering([*others, without_rows]), share=11 / 30)
    count, mean, squares = whole.moments(11, own[1:3], own[3:])
    assert count == 30
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-14)
    np.testing.assert_allclose(squares / 30, x.var(0), rtol=1e-9)


@pytest.mark.parametrize(("accumulate", "local"), [(7, False), (1, True)])
def test_a_normalisation_of_single_rows_is_refused_before_the_first_step(accumulate: int, local: bool) -> None:
    ranks = Communicator()
    ranks.size = 7 if local else 1
    with pytest.raises(ValueError, match=r"end in a batch of 2 that is cut into 7 parts, and layer \d+, a batch norm"):
        trained("stage2_numpy residual SGD float64 1", ranks, accumulate, local)
