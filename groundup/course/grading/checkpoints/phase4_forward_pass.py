"""Checkpoint 4: the forward pass of 784-512-10 through the learner's kernels is right, and fast on a GPU.

"Twenty times as fast" is measured against pure Python, the first stage, image for image: the learner began there. A GPU
measures its own time. Without one, the lens estimates the time of the learner's kernels on a small GPU from what they
read, write and compute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cuda_emulator import KernelError
from cuda_emulator.inspection import device, least_time
from groundup.course.checks.check import Check, Tally
from groundup.course.grading.calling.kernel_causes import explained
from groundup.course.grading.calling.kernel_launches import Launch, Out, backend, module, random
from groundup.course.grading.calling.kernel_memory import profiled
from groundup.course.grading.checkpoints.learners_training import each_alone, tasks_of
from shared.contract import STAGES, load_stage
from shared.initialize import initialize_parameters
from shared.numbers import three_digits, two_digits

TILE = 16

FROM_GLOBAL = "a round fetches each number of a and b once, into the tiles; the inner loop reads the tiles alone"

LAYERS = (784, 512, 10)

FASTER = 20

WHERE = "groundup lens FILE.py:KERNEL says of each kernel what its time is made of"

SMALL_GPU = "T4"
"""The device of the estimate: the slowest in the lens's list."""

GAIN = 10
"""Factor by which the naive product must lengthen the estimate. With the project's kernels it is 30."""


def checkpoint() -> list[Check]:
    """A GPU measures the time by its own clock; on the emulator, the lens estimates it."""
    made = [each_alone(*tasks_of(4)), Check("agrees with NumPy", _forward_agrees)]
    if backend() == "gpu":
        return [*made, Check("20 times as fast as pure Python", _measured)]
    if backend() == "emulator":
        made.append(Check("a 16th of the reads", _reads_less))
        made.append(Check("20 times as fast as pure Python, as estimated", _estimated))
    return made


class Forward:
    """The forward pass of 784-512-10 on the device, kernel by kernel. product: a rung of the matmul ladder."""

    def __init__(self, batch: int, parameters: Sequence[np.ndarray]) -> None:
        self.cuda, self.batch = module("backend").cuda, batch
        self.weights = [self.cuda.to_device(np.ascontiguousarray(each, np.float32)) for each in parameters]
        self.order = np.random.default_rng(9).permutation(2 * batch).astype(np.int32)
        self.images = random(np.random.default_rng(8), 2 * batch, LAYERS[0])
        self.data = [self.cuda.to_device(each) for each in (self.images, self.order, np.array([batch // 2], np.int64))]
        self.x, self.hidden, self.outputs = (self.cuda.to_device(np.zeros((batch, n), np.float32)) for n in LAYERS)
        self.tiled = module("kernels.matmul_1_basic").tiled(TILE, "nn").multiply

    def run(self, product: str) -> None:
        """Launch every kernel, and do not wait for the end."""
        for kernel, grid, block, arguments in self.launches(product):
            kernel[grid, block](*arguments)

    def launches(self, product: str) -> Iterator[tuple[Any, Any, Any, tuple[Any, ...]]]:
        """The kernels in order, each with its grid, its block and its arguments."""
        gather, dense, activations = (module(f"kernels.{name}") for name in ("gather", "dense", "activations"))
        yield gather.gather_rows, (8, 8), (32, 8), (*self.data, self.x)
        for number, (given, out) in enumerate(((self.x, self.hidden), (self.hidden, self.outputs))):
            weights, bias = self.weights[2 * number : 2 * number + 2]
            rows, columns = out.shape
            across, down = (rows, columns) if product == "naive" else (columns, rows)
            kernel = self.tiled if product == "tiled" else getattr(module("kernels.matmul_1_basic"), product)
            yield kernel, (-(-across // TILE), -(-down // TILE)), (TILE, TILE), (given, weights, out)
            yield dense.add_bias, 64, 256, (out, bias)
            if out is self.hidden:
                flat = out.reshape(out.size)
                yield activations.relu, 64, 256, (flat, flat)

    def forget(self) -> None:
        """Put NaN in place of the results of the last run."""
        for array in (self.x, self.hidden, self.outputs):
            array.copy_to_device(np.full(array.shape, np.nan, np.float32))

    def batch_of_images(self) -> np.ndarray:
        """The images that the kernels gather."""
        start = self.batch // 2
        return self.images[self.order[start : start + self.batch]]


def _forward_agrees(tally: Tally) -> None:
    arrays = [np.array(each, np.float64) for each in initialize_parameters(LAYERS, "he", seed=1)]
    for bias in arrays[1::2]:  # biases of 0 would hide that they are not added
        bias[:] = np.random.default_rng(3).standard_normal(bias.size)
    forward = Forward(32, arrays)
    expected = (
        load_stage(STAGES[1])
        .network.Network.from_parameters(arrays, dtype="float64")
        .forward(forward.batch_of_images().astype(np.float64))
    )
    for product in ("naive", "coalesced", "tiled"):
        case = f"the outputs of 784-512-10 for 32 images, with the {product} product,"
        tally.trying(case)
        forward.forget()
        try:
            forward.run(product)
        except KernelError as error:
            raise explained(error) from error
        tally.equal(forward.outputs.copy_to_host(), expected, case=case, dtype="float32", terms=LAYERS[0])
    tally.note("the forward pass of 784-512-10 through your kernels agrees with NumPy, with each of the three products")


def _reads_less(tally: Tally) -> None:
    """The loads of a and b in a product of 32 x 64 and 64 x 32, counted by the lens."""
    basic = module("kernels.matmul_1_basic")
    rng = np.random.default_rng(6)
    given = random(rng, 32, 64), random(rng, 64, 32), Out((32, 32))
    launch = Launch((2, 2), (TILE, TILE))
    naive, tiled = (_loads(profiled(each, launch, *given)) for each in (basic.naive, basic.tiled(TILE, "nn").multiply))
    text = f"the tiled product reads global memory {tiled:,} times where the naive one does {naive:,} times"
    tally.holds(tiled * TILE <= naive, text, expected=f"at most {naive // TILE:,}", got=f"{tiled:,}", cause=FROM_GLOBAL)
    tally.note(text)


def _loads(profile: Any) -> int:
    """The loads of the two factors, whatever the learner's names for them are."""
    factors = [name for name, _ in profile.arguments[:2]]
    return sum(each.loads for each in profile.reuse if each.array in factors)


def _estimated(tally: Tally) -> None:
    """The lens's estimate of each launch, added up, beside stage 1's time on this machine's CPU."""
    batch = 256
    parameters = initialize_parameters(LAYERS, "he", seed=1)
    forward = Forward(batch, [np.asarray(each) for each in parameters])
    tally.trying("the lens's estimate of a forward pass of 256 images")
    naive, tiled = (
        sum(_estimate(kernel.profile(*launch, *arguments, blocks=1)) for kernel, *launch, arguments in launches) / batch
        for launches in map(forward.launches, ("naive", "tiled"))
    )
    times = _on_this_cpu(forward.batch_of_images(), parameters)["pure Python"] / tiled
    text = (
        f"by the lens's estimate, your forward pass on an NVIDIA {SMALL_GPU} is about {two_digits(times)} times as "
        "fast as pure Python's on this machine"
    )
    tally.holds(times >= FASTER, text, expected=f"at least {FASTER} times", cause=WHERE)
    gained = f"with the naive product it takes {two_digits(naive / tiled)} times as long, by the same estimate"
    tally.holds(naive >= GAIN * tiled, gained, expected=f"at least {GAIN} times", cause=WHERE)
    tally.note(f"{text}, for 784-512-10 and {batch} images; {gained}")


def _estimate(profile: Any) -> float:
    """Seconds of a launch on the small GPU. Raises what stopped the kernel."""
    if profile.fault:
        raise explained(profile.fault)
    found = least_time(profile, device(SMALL_GPU))
    assert found is not None
    return found.seconds


def _measured(tally: Tally) -> None:
    """The time on the GPU, by its own clock, beside stage 1 and stage 2 on this machine's CPU."""
    batch = 256
    parameters = initialize_parameters(LAYERS, "he", seed=1)
    forward = Forward(batch, [np.asarray(parameter) for parameter in parameters])
    from shared.bench.measuring import device_clock  # here, because it makes a kernel for the backend

    take: Any = device_clock.sampler()
    for product in ("naive", "tiled"):
        forward.run(product)  # compiles
    per_image = {
        product: statistics.median(take(lambda product=product: forward.run(product), 10) for _ in range(7)) / batch
        for product in ("naive", "tiled")
    }
    on_cpu = _on_this_cpu(forward.batch_of_images(), parameters)
    best = min(per_image.values())
    times = {name: seconds / best for name, seconds in on_cpu.items()}
    text = (
        f"your forward pass on {module('backend').BACKEND.reason} is {three_digits(times['pure Python'])} times as fast"
    )
    tally.holds(
        times["pure Python"] >= FASTER,
        f"{text} as pure Python's on this machine",
        expected=f"at least {FASTER} times",
        cause="is an array copied between host and device on the way?",
    )
    tally.note(f"{text} as pure Python's on this machine's CPU, for 784-512-10 and {batch} images")
    tally.note(
        f"it is {three_digits(times['NumPy'])} times as fast as NumPy's in float32, and with the naive product it "
        f"takes {three_digits(per_image['naive'] / best)} times as long"
    )


def _on_this_cpu(images: np.ndarray, parameters: Sequence[Any]) -> dict[str, float]:
    """Seconds of the forward pass for each image, by NumPy in float32 and by pure Python."""
    few = 2
    numpy_network = load_stage(STAGES[1]).network.Network.from_parameters(parameters, dtype="float32")
    python_network = load_stage(STAGES[0]).network.Network.from_parameters(parameters)
    return {
        "NumPy": _seconds(lambda: numpy_network.forward(images), 7) / len(images),
        "pure Python": _seconds(lambda: python_network.forward(images[:few].tolist()), 1) / few,
    }


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    """The median time of some calls. If there are several, a first one is not timed."""
    taken = []
    for _ in range(repeats + (repeats > 1)):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[repeats > 1 :])
