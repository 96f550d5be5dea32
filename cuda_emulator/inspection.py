"""What a grader, a studio or a test may ask of the inside of the emulator: nobody else's file imports anything else.

`cuda_emulator` itself names what a program needs. The names here are for tools that look into kernels; they may change
from one version to the next. The emulator's own files import each other, and never this one.
"""

from . import hooks
from .compiler import cache, machine_code, private_folder
from .compiler.analysis.infer import variable_types
from .compiler.analysis.regions import CollectiveCall, Region, Regions
from .compiler.analysis.uniformity import Uniformity
from .compiler.analysis.webs import split_webs
from .compiler.compile import DeviceFunctions, compile_kernel, generate
from .compiler.functions import DeviceFunction
from .compiler.reading.names import constant, cuda_path, look_up
from .compiler.reading.normalise import normalise
from .compiler.reading.source import FunctionSource
from .compiler.trees import Collective, copied
from .compiler.unit import Unit
from .compiler.writing.thread_code import Sites, Variant
from .hooks import Registers, RegistersUnknown, register
from .intrinsics import BARRIERS, SHUFFLES, Intrinsic
from .launches import Launch, catch
from .lens import analysis, checks, detecting, page
from .lens import command as lens_command
from .lens.analysis import analyse
from .lens.annotations import annotate
from .lens.command import blocks_to_trace, extent, show, sizes
from .lens.costs import count_passes, count_sectors
from .lens.detecting import detect
from .lens.devices import DEFAULT as DEFAULT_DEVICE
from .lens.devices import DEVICES, device
from .lens.findings import findings, headline, on_lines
from .lens.memories import KINDS, find_places
from .lens.pictures import access_map, bank_map
from .lens.profile import Access as ProfileAccess
from .lens.profile import Profile
from .lens.profiling import profile, profile_of_trace
from .lens.roofline import estimate as least_time
from .lens.svg import standalone
from .lens.targets import Wanted, launch_of
from .lens.verdicts import global_verdict, shared_verdict
from .occupancy import LIMITS, Capability, Occupancy, occupancy
from .poison import poison_value
from .runtime import check_report, devicearray, dispatcher, limits, stream_record, streams, tracing
from .runtime.dispatcher import Configured, Kernel
from .runtime.limits import MOST_SHARED_BYTES, SHARED_BYTES
from .runtime.tracing import trace_launch
from .scripts import ScriptFailed, program_from, require_script, run, run_script, separated, with_lines_as_notes
from .settings import WORDS, settings_for
from .stepping import step, step_numbers, step_rewrite
from .stepping.step_namespace import Thread
from .stepping.step_rewrite import device_source, running_thread
from .stepping.step_warps import WARP, members
from .trace import Trace
from .walking.history import Touch
from .walking.interleaving import NoRace, Race, find_race
from .walking.record import Access, ArrayInfo, Step, Walk
from .walking.walk import Block, walk_block
from .walking.walked_launch import Launched

__all__ = [
    "BARRIERS",
    "DEFAULT_DEVICE",
    "DEVICES",
    "KINDS",
    "LIMITS",
    "MOST_SHARED_BYTES",
    "SHARED_BYTES",
    "SHUFFLES",
    "WARP",
    "WORDS",
    "Access",
    "ArrayInfo",
    "Block",
    "Capability",
    "Collective",
    "CollectiveCall",
    "Configured",
    "DeviceFunction",
    "DeviceFunctions",
    "FunctionSource",
    "Intrinsic",
    "Kernel",
    "Launch",
    "Launched",
    "NoRace",
    "Occupancy",
    "Profile",
    "ProfileAccess",
    "Race",
    "Region",
    "Regions",
    "Registers",
    "RegistersUnknown",
    "ScriptFailed",
    "Sites",
    "Step",
    "Thread",
    "Touch",
    "Trace",
    "Uniformity",
    "Unit",
    "Variant",
    "Walk",
    "Wanted",
    "access_map",
    "analyse",
    "analysis",
    "annotate",
    "bank_map",
    "blocks_to_trace",
    "cache",
    "catch",
    "check_report",
    "checks",
    "compile_kernel",
    "constant",
    "copied",
    "count_passes",
    "count_sectors",
    "cuda_path",
    "detect",
    "detecting",
    "device",
    "device_source",
    "devicearray",
    "dispatcher",
    "extent",
    "find_places",
    "find_race",
    "findings",
    "generate",
    "global_verdict",
    "headline",
    "hooks",
    "launch_of",
    "least_time",
    "lens_command",
    "limits",
    "look_up",
    "machine_code",
    "members",
    "normalise",
    "occupancy",
    "on_lines",
    "page",
    "poison_value",
    "private_folder",
    "profile",
    "profile_of_trace",
    "program_from",
    "register",
    "require_script",
    "run",
    "run_script",
    "running_thread",
    "separated",
    "settings_for",
    "shared_verdict",
    "show",
    "sizes",
    "split_webs",
    "standalone",
    "step",
    "step_numbers",
    "step_rewrite",
    "stream_record",
    "streams",
    "trace_launch",
    "tracing",
    "variable_types",
    "walk_block",
    "with_lines_as_notes",
]
