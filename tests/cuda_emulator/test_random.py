"""cuda.random: known answers of numba-cuda's own generator, on the host and in the functions that kernels call.

The constants were computed with numba-cuda 0.30.4's random.py, its functions compiled for the CPU. Integers and
uniform numbers must agree to the last bit; normal ones go through log, sqrt and cos, which may differ by an ulp or two.
"""

import hashlib
import types

import numpy as np
import pytest
from numba import njit

from cuda_emulator.compiler.functions import DeviceFunction
from cuda_emulator.runtime import random

# (n, seed, subsequence_start): the states that numba-cuda makes.
STATES = {
    (5, 1, 0): [
        (10451216379200822465, 10451216379200822465),
        (8341117667364343960, 7824662623250379246),
        (809817624983272012, 15258973161149853818),
        (4287641842676342503, 12987378992932203451),
        (1720621703753190264, 9457973938255393670),
    ],
    (3, 2**64 - 1, 7): [
        (16191616892424602863, 7719847693194122358),
        (10695884284798476704, 13534142676864872995),
        (13612292125682393312, 13129200640101610382),
    ],
    (4, 0, 1): [
        (1319903108697972401, 8129430270689023908),
        (7315320818537064884, 444172029857212634),
        (16787595811110298606, 4696097575807306081),
        (17579686245363550164, 9466423873265256138),
    ],
    (2, -3, 0): [(17824971123127853533, 17824971123127853533), (10578320328983978712, 17516308551158654906)],
}

# The first three numbers drawn from the last state of those with seed 1, and of those with seed 0.
DRAWS = {
    (5, 1, 0): {
        "next": [11178595642008583934, 7509969333022544946, 11654260257185888035],
        "uniform_float32": ["0x1.3644b4p-1", "0x1.a0e316p-2", "0x1.437880p-1"],
        "uniform_float64": ["0x1.3644b304f34d7p-1", "0x1.a0e31546838b4p-2", "0x1.43787fe9fb08ep-1"],
        "normal_float32": ["-0x1.aba218p-1", "0x1.dd1270p-1", "0x1.2d9bbep-3"],
        "normal_float64": ["-0x1.aba2174768ce2p-1", "0x1.dd126c03a4164p-1", "0x1.2d9bc2efe847dp-3"],
    },
    (4, 0, 1): {
        "next": [8599366044919254686, 10381974964935666912, 13842284220974631658],
        "uniform_float32": ["0x1.dd5c58p-2", "0x1.20285ep-1", "0x1.803358p-1"],
        "uniform_float64": ["0x1.dd5c576d03df2p-2", "0x1.20285e72f7fa5p-1", "0x1.803358519e601p-1"],
        "normal_float32": ["-0x1.23f8a8p+0", "0x1.828886p-1", "-0x1.b880dep+0"],
        "normal_float64": ["-0x1.23f8ab6350c93p+0", "0x1.82888602684cdp-1", "-0x1.b880dcfffcfbcp+0"],
    },
}
#: sha256 of the 1,000 states of seed 42 that start at subsequence 3.
THOUSAND_STATES = "8bcc11104d85b40972cf8119baf205395f8422ceae76b19aacf67369308f8dc5"


def compiled_functions():
    """Every device function of the module as an njit function, by name; they call each other."""
    namespace = dict(vars(random))
    for name, value in vars(random).items():
        if isinstance(value, DeviceFunction):
            namespace[name] = njit(types.FunctionType(value.py_func.__code__, namespace, name))
    return namespace


COMPILED = compiled_functions()


@pytest.mark.parametrize("arguments", STATES, ids=str)
def test_states_are_those_of_numba_cuda(arguments):
    states = random.create_xoroshiro128p_states(*arguments).copy_to_host()
    assert states.dtype == random.xoroshiro128p_dtype
    assert states.tolist() == STATES[arguments]


def test_a_thousand_states_are_those_of_numba_cuda():
    states = random.create_xoroshiro128p_states(1000, 42, subsequence_start=3).copy_to_host()
    assert hashlib.sha256(states.tobytes()).hexdigest() == THOUSAND_STATES


def test_init_fills_an_array_that_is_there_already():
    states = random.create_xoroshiro128p_states(4, seed=9)
    random.init_xoroshiro128p_states(states, seed=0, subsequence_start=1)
    assert states.copy_to_host().tolist() == STATES[4, 0, 1]


def test_a_far_subsequence_start_costs_no_more_than_its_digits():
    far = random.create_xoroshiro128p_states(1, 5, subsequence_start=10**15).copy_to_host()
    next_one = random.create_xoroshiro128p_states(2, 5, subsequence_start=10**15 - 1).copy_to_host()
    assert far[0] == next_one[1]


@pytest.mark.parametrize("name", DRAWS[5, 1, 0])
@pytest.mark.parametrize("arguments", DRAWS, ids=str)
def test_numbers_are_those_of_numba_cuda(arguments, name):
    states = np.array(STATES[arguments], random.xoroshiro128p_dtype)
    draw = COMPILED[f"xoroshiro128p_{name}"]
    drawn = [draw(states, len(states) - 1) for _ in range(3)]
    expected = [value if name == "next" else float.fromhex(value) for value in DRAWS[arguments][name]]
    if name.startswith("normal"):
        dtype = np.dtype(name.removeprefix("normal_")).type
        np.testing.assert_array_max_ulp(np.array(drawn, dtype), np.array(expected, dtype), maxulp=4)
    else:
        assert drawn == expected


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_float32_and_float64(kind, dtype):
    draw = COMPILED[f"xoroshiro128p_{kind}_{dtype}"]
    draw(np.array(STATES[2, -3, 0], random.xoroshiro128p_dtype), 0)
    assert str(draw.nopython_signatures[0].return_type) == dtype


def test_a_state_set_in_a_kernel_and_jumped_is_what_the_host_makes():
    states = np.zeros(2, random.xoroshiro128p_dtype)
    for index in range(2):
        COMPILED["init_xoroshiro128p_state"](states, index, np.uint64(1))
    COMPILED["xoroshiro128p_jump"](states, 1)
    assert states.tolist() == STATES[5, 1, 0][:2]


@pytest.mark.parametrize(("x", "expected"), [(0, 0.0), (2**64 - 1, 1 - 2.0**-53), (2**11 - 1, 0.0), (2**63, 0.5)])
def test_the_upper_53_bits_become_a_number_below_one(x, expected):
    assert COMPILED["uint64_to_unit_float64"](np.uint64(x)) == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((-1, 1), "n and subsequence_start cannot be negative; they are -1 and 0"),
        ((1, 1, -2), "n and subsequence_start cannot be negative; they are 1 and -2"),
        ((1, 2**64), f"the seed must fit into 64 bits; it is {2**64}"),
    ],
)
def test_impossible_arguments_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        random.create_xoroshiro128p_states(*arguments)


def test_the_host_cannot_draw():
    with pytest.raises(ValueError, match="xoroshiro128p_next is a device function: a kernel can call it"):
        random.xoroshiro128p_next(np.zeros(1, random.xoroshiro128p_dtype), 0)
