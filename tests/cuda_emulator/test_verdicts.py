"""What check mode says of launches that are nearly right."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, options
from cuda_emulator.runtime import check_report
from cuda_emulator.runtime.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit
def periodic(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    out[i] = x[i] - x[i - 1]


@cuda.jit
def thrown_away(x, out):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    before = x[i - 1]
    out[i] = before if i > 0 else 0.0


@pytest.fixture(autouse=True)
def _nothing_was_checked() -> None:
    check_report.reset()


def test_a_negative_index_that_matters_is_refused_unless_wrapping_is_meant() -> None:
    x, out = np.arange(8.0), np.zeros(8)
    with options(check=True), pytest.raises(KernelError, match=r"x\[-1\] counts from the end of x"):
        periodic[1, 8](x, out)
    with options(check=True, wrap=True):
        periodic[1, 8](x, out)
    assert out.tolist() == [-7, 1, 1, 1, 1, 1, 1, 1]


def test_a_negative_index_whose_value_changes_nothing_is_a_remark() -> None:
    x, out = np.arange(8.0), np.zeros(8)
    with options(check=True):
        thrown_away[1, 8](x, out)
    assert out.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    lines = check_report.report().splitlines()
    assert lines[0] == "check: no mistake found in 1 launch, each run in 4 orders"
    assert lines[1] == "  thrown_away: 1 launch; looked at every access of 1"
    assert lines[2].endswith("thread (0, 0, 0); what it reads there changes no result")


def test_the_report_counts_launches_that_were_refused() -> None:
    x, out = np.arange(8.0), np.zeros(8)
    with options(check=True):
        thrown_away[1, 8](x, out)
        for _ in range(2):
            with pytest.raises(KernelError, match="counts from the end"):
                periodic[1, 8](x, out)
    lines = check_report.report().splitlines()
    assert lines[0] == "check: 2 of 3 launches refused; no mistake found in 1 launch, each run in 4 orders"
    assert lines[-1].startswith("  periodic: 2 launches, 2 refused;")


def test_a_race_inside_of_random_names_the_users_call() -> None:
    @cuda.jit
    def shared_states(states, out):  # type: ignore[no-untyped-def]
        out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.threadIdx.x)

    states = create_xoroshiro128p_states(64, seed=1)
    said = r"test_verdicts\.py:\d+: race on the random state \d+ .*both draw from it in line \d+ \(`xoroshiro128p_uni"
    with options(check=True), pytest.raises(KernelError, match=said) as raised:
        shared_states[2, 32](states, cuda.device_array(64, np.float32))
    assert "Give each thread a state of its own" in str(raised.value)
