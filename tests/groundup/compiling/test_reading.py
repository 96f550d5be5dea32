"""What `groundup check --compile` reads: the compiler's log, the machine code, and how many blocks fit on a device."""

from __future__ import annotations

import pytest

from cuda_emulator.inspection import LIMITS, occupancy
from groundup.compiling.log import Usage, float64_lines, read_log
from groundup.compiling.sass import HotLoop, hot_loop
from groundup.kernels.entries import Capability

# The log


LOG = """INFO: NVVM70 LTOIR Container created (9728 bytes)
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN4sums13total_by_treeB2v3' for 'sm_80'
ptxas info    : Function properties for _ZN4sums13total_by_treeB2v3
ptxas         .     16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 16 bytes cumulative stack size, 32768 bytes smem, 568 bytes cmem[0]
ptxas info    : Compile time = 16.383 ms
"""


def test_log_gives_registers_stack_spills_and_shared_memory() -> None:
    assert read_log(LOG) == Usage(registers=128, stack=16, spills=44, shared=32768)


def test_log_counts_the_functions_that_were_not_inlined() -> None:
    called = """ptxas info    : Function properties for helper
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
"""
    assert read_log(LOG + called).spills == 52


@pytest.mark.parametrize(("log", "count"), [("", 0), (LOG + LOG, 2)])
def test_log_of_no_kernel_or_of_two_is_an_error(log: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"tells of {count} kernels, expected one"):
        read_log(log)


def test_float64_is_found_in_ptx_and_not_in_its_comments_or_in_64_bit_integers() -> None:
    ptx = """
        .reg .b64 %rd<4>;           // no .f64 here
        cvt.f64.f32     %fd1, %f1;
        ld.global.b64   %rd1, [%rd2];
        fma.rn.f32      %f2, %f1, %f1, %f1;
    """
    assert float64_lines(ptx) == ["cvt.f64.f32     %fd1, %f1;"]


# The machine code

SASS = """
.text.product:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R2, SR_TID.X ;
.L_x_0:
        /*0020*/                   LDG.E.CONSTANT R3, [R4.64] ;
        /*0030*/                   STS [R5], R3 ;
.L_x_1:
        /*0040*/                   LDS.128 R8, [R6] ;
        /*0050*/                   LDS R7, [R6+0x100] ;
        /*0060*/                   FFMA R12, R7, R8, R12 ;
        /*0070*/                   FFMA R13, R7.reuse, R9, R13 ;
        /*0080*/              @!P1 FFMA R14, R7, R10, R14 ;
        /*0090*/               @P0 BRA `(.L_x_1) ;
        /*00a0*/             @!UP0 BRA `(.L_x_0) ;
.L_x_2:
        /*00b0*/                   FFMA R15, R7, R11, R15 ;
        /*00c0*/              @!P0 BRA.U `(.L_x_2) ;
        /*00d0*/              @!P0 BRA `(.L_x_4) ;
        /*00e0*/                   FFMA R15, R7, R11, R15 ;
.L_x_4:
        /*00f0*/                   EXIT ;
.L_x_3:
        /*0100*/                   BRA `(.L_x_3);
"""


def test_hot_loop_is_the_innermost_with_the_most_multiplications() -> None:
    loop = hot_loop(SASS)
    assert loop == HotLoop(instructions=6, multiply_adds=3, wide_loads=1)
    assert loop.share == 0.5


def test_hot_loop_of_code_that_multiplies_nowhere_in_a_loop_is_none() -> None:
    assert hot_loop(SASS.replace("FFMA", "IADD3")) is None
    assert hot_loop("") is None


def test_tensor_cores_count_as_multiplications_and_ldmatrix_as_a_wide_load() -> None:
    sass = SASS.replace("FFMA", "HMMA.16816.F32.BF16").replace("LDS.128", "LDSM.16.M88.4")
    assert hot_loop(sass) == HotLoop(instructions=6, multiply_adds=3, wide_loads=1)


# Occupancy


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks", "limit"),
    [
        # Textbook: 64 registers a thread are 65,536 for four blocks of 256.
        ((8, 0), 256, 64, 0, 4, "registers"),
        ((9, 0), 1024, 32, 0, 2, "threads"),
        ((9, 0), 32, 16, 0, 32, "blocks"),
        ((12, 0), 32, 16, 0, 24, "blocks"),
        # 130 registers become 136, and 15 warps of them would fit where two blocks have 16.
        ((9, 0), 256, 130, 32768, 1, "registers"),
        ((7, 5), 256, 32, 16640, 3, "shared"),
        # The kilobyte that the system takes: 8,192 + 1,024 bytes eleven times in 100 KB, but 1,536 threads are seven.
        ((8, 6), 200, 72, 8192, 4, "registers"),
        ((9, 0), 96, 16, 49152, 4, "shared"),
        # Registers for a block's every warp are judged by the quarter that has most of them.
        ((10, 0), 96, 255, 0, 2, "registers"),
        ((9, 0), 1024, 65, 0, 0, "registers"),
        ((8, 0), 32, 256, 0, 0, "registers"),
    ],
)
def test_occupancy_is_what_cuda_occupancy_h_computes(
    capability: Capability, threads: int, registers: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy(capability, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.share == blocks * -(-threads // 32) * 32 / LIMITS[capability].threads


def test_occupancy_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match=r"no limits for compute capability \(3, 5\); known are 7.5, 8.0"):
        occupancy((3, 5), 256, 32, 0)
    with pytest.raises(ValueError, match="expected 1 to 1024 threads a block, got 2048"):
        occupancy((8, 0), 2048, 32, 0)
