"""What a kernel does to memory, seen without a GPU: `kernel.profile(grid, block, *arguments)` and `groundup lens`.

From a launch to numbers; docs/lens.md says what they mean:

    profiling    traces a launch and analyses it: here it starts
    analysis     from events to a profile, with requests (threads to warps), costs (sectors and passes), memories and
                 granules (which array, which element), races, reuse and uninitialised; compiled: how its loops
                 are compiled
    profile      the numbers, without a way to show them
    static       occupancy; registers asks the compiler, shipping packs the kernel for the process registers_worker
    roofline     operations and traffic against a device; devices lists a few

What is made of them:

    terminal     the report, with summary, its main figures, and annotations, its remarks beside the source
    page         the HTML page, with page_parts and page_style
    pictures     maps of accesses and banks; timelines: the timeline; svg: what they are drawn with
    wording      threads, lanes, races and launches in words
    checks       yes or no, for a grader

Where the launch comes from:

    command      `groundup lens`
    targets      what a name on the command line stands for
    launches     a launch of a script, caught on its way; given: arguments made from text
    project      this project's own kernels, each with a way to launch it
"""

from cuda_emulator.hooks import register_profiler
from groundup.lens.profile import Profile
from groundup.lens.profiling import profile

__all__ = ["Profile", "profile"]

register_profiler(profile)
