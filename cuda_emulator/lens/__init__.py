"""Shows what a kernel does to memory, without a GPU: `kernel.profile(grid, block, *arguments)` and the command `lens`.

The numbers of a launch; docs/lens.md explains them:

    profiling    the entry point: traces a launch, analyses the trace, and returns a profile that can be printed
    detecting    races and uninitialised reads alone, for check mode: `cuda-emulator check`
    analysis     computes a profile from the events of a trace, with requests (threads to warps), costs (sectors and
                 passes), memories and granules (array and element of each address), races, reuse and uninitialised;
                 idioms: what looks like a race and is none; compiled: the decorator of its loops
    profile      the numbers, without a way to show them
    static       the occupancy of a launch
    roofline     compares operations, traffic and blocks with a device; devices lists a few

What to change, each finding with its remedy:

    findings     all of them, the costliest first; advice: the type of each
    error_advice faults, races and uninitialised reads; race_groups puts the races of one cause together, race_advice
                 finds their remedy
    cost_advice  what costs a GPU more than the data need, with access_advice (which thread takes which element) and
                 doubles (float64 in a float32 kernel)
    verdicts     whether one access costs more than it must
    syntax       what the source says: loops, updates, declarations

The views of the numbers:

    terminal     the report, with the main figures from summary, and the remarks on source lines from annotations
    page         the HTML page, with page_parts, page_maps (a choice of warps for each access), page_style and
                 page_script (tooltips by keyboard)
    pictures     maps of accesses and banks; elements: which thread takes which element; timelines: the timeline;
                 roofline_chart: the roofline; svg: the shapes and colours of all; examples: the requests that are drawn
    wording      threads, lanes, races and launches in words
    checks       yes or no, for a grader

The source of the launch:

    command      the command `lens`
    targets      finds the launch for a name on the command line
    arguments_from_text
                 arguments made from text
"""

from ..hooks import register_detector, register_profiler
from .detecting import detect
from .profile import Profile
from .profiling import profile

__all__ = ["Profile", "profile"]

register_profiler(profile)
register_detector(detect)
