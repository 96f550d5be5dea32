"""Streams, events, the device and its context, cuda.reduce. In step mode, where nothing has to be compiled."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from cuda_emulator import KernelError, cuda, options


@pytest.fixture(autouse=True)
def _step_mode() -> Iterator[None]:
    with options(step=True):
        yield


def test_events_measure_milliseconds() -> None:
    first, second = cuda.event(), cuda.event()
    first.record()
    second.record(stream=cuda.stream())
    second.synchronize()
    assert second.query()
    assert 0 <= cuda.event_elapsed_time(first, second) < 60_000
    assert first.elapsed_time(second) == -second.elapsed_time(first)
    with pytest.raises(ValueError, match=r"the second event has not been recorded: call its record\(\) first"):
        first.elapsed_time(cuda.event())
    with pytest.raises(ValueError, match="the first event was made with timing=False"):
        cuda.event(timing=False).elapsed_time(first)
    with pytest.raises(TypeError, match=r"expected an event of cuda\.event"):
        first.elapsed_time(3)


def test_streams_are_always_done() -> None:
    stream = cuda.stream()
    with stream.auto_synchronize() as inside:
        assert inside is stream
    called = []
    stream.add_callback(lambda *arguments: called.append(arguments), "mine")
    assert called == [(stream, 0, "mine")]
    cuda.default_stream().synchronize()
    cuda.legacy_default_stream().synchronize()
    cuda.per_thread_default_stream().synchronize()
    cuda.synchronize()

    async def wait() -> object:
        return await stream.async_done()

    assert asyncio.run(wait()) is stream
    with pytest.raises(KernelError, match="external_stream"):
        cuda.external_stream(1)


def test_the_device_knows_the_limits_of_launches() -> None:
    device = cuda.get_current_device()
    assert cuda.is_available()
    assert device.name == "groundup emulator"
    assert (device.MAX_THREADS_PER_BLOCK, device.WARP_SIZE, device.MAX_GRID_DIM_Y) == (1024, 32, 65535)
    assert device.MULTIPROCESSOR_COUNT >= 1
    assert device.compute_capability == (7, 5)
    with pytest.raises(AttributeError, match="has no 'CLOCK_RATE'"):
        _ = device.CLOCK_RATE
    assert list(cuda.gpus) == [device]
    with cuda.gpus[0] as chosen:
        assert chosen is cuda.select_device(0)
    with pytest.raises(IndexError, match="one device, number 0; asked for number 1"):
        cuda.gpus[1]
    with pytest.raises(ValueError, match="one device"):
        cuda.select_device(1)


def test_the_context_is_there_for_scripts_that_ask() -> None:
    context = cuda.current_context()
    free, total = context.get_memory_info()
    assert 0 < free <= total
    context.synchronize()
    context.push()
    context.pop()
    context.reset()
    cuda.close()
    with cuda.defer_cleanup(), cuda.profiling(), context.defer_cleanup():
        pass
    assert cuda.is_supported_version()
    assert cuda.cuda_error() is None


def test_detect_prints_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert cuda.detect()
    assert "groundup emulator" in capsys.readouterr().out


@pytest.mark.parametrize("size", [0, 1, 5, 128, 1000])
def test_reduce_folds_an_array_of_any_size(size: int) -> None:
    add = cuda.reduce(lambda a, b: a + b)
    values = np.arange(size)
    total = add(values)
    assert total == values.sum()
    assert total.dtype == np.int64


def test_reduce_takes_size_init_and_a_place_for_the_result() -> None:
    @cuda.reduce
    def largest(a, b):  # type: ignore[no-untyped-def]
        return max(a, b)

    values = cuda.to_device(np.array([3, 9, 4, 20], np.float32))
    assert largest(values, size=3, init=-1) == 9
    assert largest(values, init=50) == 50
    assert largest(cuda.device_array(0, np.float32), init=-7) == -7
    result = cuda.to_device(np.zeros(2, np.float32))
    assert largest(values, res=result, stream=cuda.stream()) is None
    assert result.copy_to_host().tolist() == [20, 0]
    with pytest.raises(TypeError, match="expected an array of 1 dimension, got 2"):
        largest(np.zeros((2, 2)))


def test_reduce_reads_a_lambdas_captured_values() -> None:
    factor = 3
    assert cuda.reduce(lambda a, b: a + b if factor == 3 else a)(np.ones(40)) == 40
    with pytest.raises(KernelError, match="the source of this lambda cannot be read: write the operation with def"):
        [cuda.reduce(f)(np.ones(3)) for f in (lambda a, b: a, lambda a, b: b)]
