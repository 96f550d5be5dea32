"""What a kernel does to memory, seen without a GPU: `kernel.profile(grid, block, *arguments)` and `groundup lens`.

profiling.py    from a launch to its profile, which prints and displays itself: here it starts
analysis.py     the events of a trace, read: requests, sectors, banks, races, reuse
profile.py      the numbers that come out, without a way to show them
static.py       occupancy and registers; roofline.py: what a device could make of it (devices.py lists some)
terminal.py     the report in a terminal; page.py: as an HTML page, with the pictures of pictures.py
checks.py       the same as yes or no, for a grader
"""

from cuda_emulator.hooks import register_profiler
from groundup.lens.profile import Profile
from groundup.lens.profiling import profile

__all__ = ["Profile", "profile"]

register_profiler(profile)
