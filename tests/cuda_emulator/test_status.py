"""How running code reports a fault and is asked to stop, also by another thread and from a disk cache."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba import njit

from cuda_emulator.helpers import status as codes
from cuda_emulator.helpers.status import Stopped, address_of, fail, go_on, new_status
from cuda_emulator.poison import POISONS
from tests.wide import wide


@njit(nogil=True)
def count_until(limit, status):
    """Counts in status[DETAIL], and asks before each step."""
    address = address_of(status)
    while go_on(address) and status[codes.DETAIL] < limit:
        status[codes.DETAIL] += 1
    return status[codes.DETAIL]


@njit(nogil=True)
def spin(status, running):
    """Does nothing that changes the answer: only go_on can end it."""
    running[0] = 1
    address = address_of(status)
    while go_on(address):
        pass


@njit
def fail_where_odd(values, status):
    """Fails at the first odd value; says how many there are where none is odd."""
    for index in range(len(values)):
        if values[index] % 2:
            fail(status, codes.RAISED, 3, 70_000, index, values[index], -1, 2**40)
    return len(values)


@njit
def fail_by_address(values, status):
    return fail_where_odd(values, address_of(status))


def test_a_fresh_status_says_that_nothing_went_wrong():
    status = new_status()
    assert status.dtype == np.int64
    assert status.shape == (codes.LENGTH,)
    assert status[codes.POISON] == status[codes.ABSENT] == POISONS[0]
    assert not np.delete(status, [codes.POISON, codes.ABSENT]).any()


def test_every_code_and_every_place_is_a_number_of_its_own():
    faults = [codes.OUT_OF_BOUNDS, codes.NEGATIVE_INDEX, codes.DIVERGENT_BARRIER]
    faults += [codes.WARP_MEMBERS, codes.NOT_A_MEMBER, codes.RAISED, codes.OTHER_MASK]
    assert len({0, *faults}) == len(faults) + 1  # 0 says that nothing went wrong
    places = [codes.STOP, codes.CODE, codes.SITE, codes.BLOCK, codes.THREAD]
    places += [codes.DETAIL, codes.DETAIL + 1, codes.DETAIL + 2]
    places += [codes.EXITED_SITE, codes.EXITED_COUNT, codes.EXITED_BLOCK, codes.DIVERGED_SITE]
    assert len(set(places)) == len(places)
    assert max(places) < codes.LENGTH


@pytest.mark.parametrize("run", [fail_where_odd, fail_by_address])
def test_a_fault_is_recorded_with_its_place_and_ends_the_run(run):
    status = new_status()
    assert run(np.array([2, 4]), status) == 2
    assert status[codes.POISON] == status[codes.ABSENT] == POISONS[0]
    assert not np.delete(status, [codes.POISON, codes.ABSENT]).any()
    with pytest.raises(Stopped):
        run(np.array([2, 4, 7, 9]), status)
    told = {codes.CODE: codes.RAISED, codes.SITE: 3, codes.BLOCK: 70_000, codes.THREAD: 2}
    told |= {codes.DETAIL: 7, codes.DETAIL + 1: -1, codes.DETAIL + 2: 2**40}
    assert {place: int(status[place]) for place in told} == told
    assert status[codes.STOP] == 0


def test_a_run_that_nobody_stops_goes_on_to_its_end():
    assert count_until(1000, new_status()) == 1000


def test_a_run_that_is_to_stop_does_not_start():
    status = new_status()
    status[codes.STOP] = 1
    with pytest.raises(Stopped):
        count_until(1000, status)
    assert status[codes.DETAIL] == 0


def test_a_loop_that_changes_nothing_is_stopped_from_outside():
    status, running, seen = new_status(), np.zeros(1, np.int64), []

    def work():
        try:
            spin(status, running)
        except Stopped as stopped:
            seen.append(stopped)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while not running[0] and worker.is_alive():
        time.sleep(0.001)  # until it is compiled and turning
    assert worker.is_alive()
    status[codes.STOP] = 1
    worker.join(timeout=300)
    assert not worker.is_alive()
    assert len(seen) == 1


CACHED = '''
import numpy as np
from numba import njit
from cuda_emulator.helpers import *


@njit(cache=True, nogil=True, error_model="numpy")
def run(array, values, result, status):
    """One of everything."""
    shuffle_down(result, values, 0xFFFFFFFF, 1, None, None, values.size, address_of(status), 0, 0)
    for thread in range(values.size):
        atomic_add(array, 0, result[thread])
        atomic_nanmax(array, 1, cbrt(result[thread]))
    return block_count(values, None, values.size) + popc(values.size) + fma(2, 3, 4)


array, values, status = np.zeros(2), np.arange(64), new_status()
answer = run(array, values, np.zeros(64, np.int64), status)
hits = sum(run.stats.cache_hits.values())
print(answer, array[0], array[1] ** 3, hits)
'''


@wide
def test_a_kernel_that_uses_the_helpers_works_from_the_disk_cache_of_another_process(tmp_path):
    script = tmp_path / "cached.py"
    script.write_text(CACHED)
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=os.pathsep.join(sys.path))

    def answer():
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=1200, check=True
        )
        return [float(word) for word in done.stdout.split()]

    # The last lane of each warp keeps its own value: 31, instead of 32, and 63.
    total = sum(range(1, 32)) + 31 + sum(range(33, 64)) + 63
    first, second = answer(), answer()
    assert first == pytest.approx([63 + 1 + 10, total, 63, 0])
    assert second == pytest.approx([63 + 1 + 10, total, 63, 1])
