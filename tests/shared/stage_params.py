"""The stages as parameters, stage 4 as a wide one: for tests in which its kernels take seconds to compile."""

from tests.stages import STAGE_PARAMS
from tests.wide import widened

STAGE_4_WIDE = [widened(each) if each.id == "stage4_numba_cuda" else each for each in STAGE_PARAMS]
