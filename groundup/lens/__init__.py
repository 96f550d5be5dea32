"""Shows what a kernel does to memory, without a GPU: `kernel.profile(grid, block, *arguments)` and `groundup lens`.

The numbers of a launch; docs/lens.md explains them:

    profiling    the entry point: traces a launch, analyses the trace, and returns a profile that can be printed
    analysis     computes a profile from the events of a trace, with requests (threads to warps), costs (sectors and
                 passes), memories and granules (array and element of each address), races, reuse and uninitialised;
                 compiled: the decorator of its loops
    profile      the numbers, without a way to show them
    static       occupancy; registers asks the compiler, shipping packs the kernel for the process registers_worker
    roofline     compares operations and traffic with a device; devices lists a few

The views of the numbers:

    terminal     the report, with the main figures from summary, and the remarks on source lines from annotations
    page         the HTML page, with page_parts and page_style
    pictures     maps of accesses and banks; timelines: the timeline; svg: the shapes and colours of both
    wording      threads, lanes, races and launches in words
    checks       yes or no, for a grader

The source of the launch:

    command      `groundup lens`
    targets      finds the launch for a name on the command line
    given        arguments made from text
"""

from cuda_emulator.hooks import register_profiler
from groundup.lens.profile import Profile
from groundup.lens.profiling import profile

__all__ = ["Profile", "profile"]

register_profiler(profile)
