"""How running code reports a fault and is asked to stop, also by another thread and from a disk cache."""

import threading
import time

import numpy as np
import pytest
from numba import njit

from cuda_emulator.helpers import status as codes
from cuda_emulator.helpers.status import Stopped, address_of, fail, go_on, new_status
from cuda_emulator.poison import POISONS


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


def test_a_fresh_status_says_that_nothing_went_wrong():
    status = new_status()
    assert status.dtype == np.int64
    assert status.shape == (codes.LENGTH,)
    assert status[codes.POISON] == status[codes.ABSENT] == POISONS[0]
    assert not np.delete(status, [codes.POISON, codes.ABSENT]).any()


def test_a_fault_is_recorded_with_its_place_and_ends_the_run():
    status = new_status()
    assert fail_where_odd(np.array([2, 4]), status) == 2
    assert status[codes.POISON] == status[codes.ABSENT] == POISONS[0]
    assert not np.delete(status, [codes.POISON, codes.ABSENT]).any()
    with pytest.raises(Stopped):
        fail_where_odd(np.array([2, 4, 7, 9]), status)
    told = {codes.CODE: codes.RAISED, codes.SITE: 3, codes.BLOCK: 70_000, codes.THREAD: 2}
    told |= {codes.DETAIL: 7, codes.DETAIL + 1: -1, codes.DETAIL + 2: 2**40}
    assert {place: int(status[place]) for place in told} == told
    assert status[codes.STOP] == 0


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
