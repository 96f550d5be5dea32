"""Arrays on the emulated device are copies, and do what numba-cuda's do: no more and no less."""

import numpy as np
import pytest

from cuda_emulator import cuda, options


def test_a_device_array_is_a_copy_of_its_own() -> None:
    host = np.arange(6.0)
    device = cuda.to_device(host)
    host[0] = 100
    assert device.copy_to_host().tolist() == [0, 1, 2, 3, 4, 5]
    device[1] = 50
    assert host[1] == 1


def test_copy_to_host_returns_a_new_array_or_fills_the_given_one() -> None:
    device = cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    first, second = device.copy_to_host(), device.copy_to_host()
    assert first is not second
    assert not np.shares_memory(first, second)
    target = np.zeros((2, 3), np.float32)
    assert device.copy_to_host(target, stream=cuda.stream()) is target
    assert target.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("host", "error", "message"),
    [
        (np.zeros((2, 3)), TypeError, "expected an array of dtype float32, got float64"),
        (np.zeros((3, 2), np.float32), ValueError, r"expected an array of shape \(2, 3\), got \(3, 2\)"),
        (np.zeros((2, 3), np.float32, order="F"), ValueError, "another layout in memory"),
    ],
)
def test_a_copy_between_unlike_arrays_is_refused(host: np.ndarray, error: type[Exception], message: str) -> None:
    device = cuda.to_device(np.zeros((2, 3), np.float32))
    with pytest.raises(error, match=f"copy_to_host: .*{message}"):
        device.copy_to_host(host)


def test_copy_to_device_takes_host_and_device_arrays() -> None:
    device = cuda.device_array((2, 3), np.float32)
    device.copy_to_device(np.ones((2, 3), np.float32))
    device.copy_to_device(np.asfortranarray(np.full((2, 3), 2, np.float32)))  # numba-cuda rearranges host arrays
    assert device.copy_to_host().tolist() == [[2, 2, 2], [2, 2, 2]]
    device.copy_to_device(cuda.to_device(np.full((2, 3), 3, np.float32)))
    assert device[1, 2] == 3
    with pytest.raises(TypeError, match="copy_to_device: expected an array of dtype float32, got int64"):
        device.copy_to_device(np.ones((2, 3), np.int64))


def test_to_device_refuses_gaps_and_python_objects_and_returns_device_arrays() -> None:
    device = cuda.to_device([1, 2, 3])
    assert cuda.to_device(device) is device
    target = cuda.device_array(3, np.int64)
    assert cuda.to_device(np.array([7, 8, 9]), to=target) is target
    assert target.copy_to_host().tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match=r"gaps .* numpy\.ascontiguousarray"):
        cuda.to_device(np.arange(10)[::2])
    with pytest.raises(TypeError, match=r"to_device: expected numbers, got a dict: .* dtype like float32"):
        cuda.to_device({"a": 1})
    with pytest.raises(TypeError, match="got an array of dtype object"):
        cuda.to_device(np.array([None, 1]))


def test_fresh_memory_holds_nonsense_unless_checks_are_off() -> None:
    assert np.isnan(cuda.device_array(3).copy_to_host()).all()
    assert cuda.device_array((2, 2), np.int32)[0, 0] == -842150451
    assert np.isnan(cuda.device_array_like(np.zeros(3, np.float32)).copy_to_host()).all()
    with options(bounds=False):
        assert cuda.device_array(3).shape == (3,)


def test_an_array_knows_its_shape() -> None:
    device = cuda.to_device(np.zeros((4, 5), np.int16))
    assert (device.shape, device.dtype, device.size, device.ndim, device.nbytes) == ((4, 5), np.int16, 20, 2, 40)
    assert (device.strides, len(device), device.alloc_size) == ((10, 2), 4, 40)
    assert device.is_c_contiguous()
    assert not device.is_f_contiguous()
    assert device.flags["C_CONTIGUOUS"]
    assert bool(device)
    assert repr(device) == "<DeviceNDArray of shape (4, 5) and dtype int16; copy_to_host() shows its values>"


def test_order_and_strides_of_fresh_arrays() -> None:
    assert cuda.device_array((3, 4), np.float32, order="F").is_f_contiguous()
    assert cuda.device_array((3, 4), np.float32, strides=(32, 4)).strides == (32, 4)
    assert cuda.device_array_like(np.zeros((3, 4), order="F")).is_f_contiguous()
    assert cuda.device_array_like(cuda.device_array((3, 4))).shape == (3, 4)
    with pytest.raises(ValueError, match=r"order: expected 'C' .* got 'K'"):
        cuda.device_array(3, order="K")
    with pytest.raises(TypeError, match=r"shape: expected an int or a tuple of ints .* got 2\.5"):
        cuda.device_array(2.5)
    with pytest.raises(ValueError, match="strides: expected 2, one for each dimension, got 1"):
        cuda.device_array((3, 4), strides=(4,))


def test_slices_are_views_and_elements_are_numpy_scalars() -> None:
    device = cuda.to_device(np.arange(12).reshape(3, 4))
    row = device[1]
    row[0] = 100
    assert device[1, 0] == 100
    assert isinstance(device[2, 3], np.int64)
    assert device[..., -1].copy_to_host().tolist() == [3, 7, 11]
    assert device[0:2, 1:3].shape == (2, 2)
    assert [part.shape for part in device] == [(4,), (4,), (4,)]
    with pytest.raises(IndexError):
        device[3]
    with pytest.raises(TypeError, match=r"indexed by ints and slices, got \[0, 1\], a list: copy_to_host\(\) first"):
        device[[0, 1]]
    with pytest.raises(TypeError, match="indexed by ints and slices"):
        device[np.array([True, False, True])]


def test_assignment_takes_scalars_and_arrays_of_host_and_device() -> None:
    device = cuda.to_device(np.zeros((2, 3)))
    device[0] = 1
    device[1] = np.array([1, 2, 3])
    device[:, 0] = cuda.to_device(np.array([8.0, 9.0]))
    assert device.copy_to_host().tolist() == [[8, 1, 1], [9, 2, 3]]
    with pytest.raises(ValueError, match="cannot put an array of 2 dimensions into a part that has 1"):
        device[0] = np.zeros((1, 3))
    with pytest.raises(ValueError, match="could not broadcast"):
        device[0] = np.zeros(2)


def test_reshape_ravel_view_and_squeeze_share_memory() -> None:
    device = cuda.to_device(np.arange(6, dtype=np.float32))
    table = device.reshape(2, 3)
    table[1, 2] = 50
    assert device[5] == 50
    assert device.reshape((3, -1)).shape == (3, 2)
    assert table.ravel().shape == (6,)
    assert device.view(np.int32).dtype == np.int32
    assert table.reshape(1, 6).squeeze().shape == (6,)
    with pytest.raises(NotImplementedError, match="would need a copy"):
        table[:, 1:].ravel()
    with pytest.raises(NotImplementedError, match="would need a copy"):
        table[:, 1:].reshape(4)
    with pytest.raises(ValueError, match="reshape"):
        table.reshape(4)


def test_a_transposed_array_is_a_copy_as_on_a_device() -> None:
    device = cuda.to_device(np.arange(6).reshape(2, 3))
    turned = device.T
    assert turned.copy_to_host().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert turned.is_c_contiguous()
    turned[0, 0] = 100
    assert device[0, 0] == 0
    assert device.transpose((0, 1)) is device
    with pytest.raises(NotImplementedError, match="only 2-dimensional device arrays can be transposed, this one has 1"):
        cuda.to_device(np.arange(3)).transpose()
    assert not hasattr(cuda.to_device(np.arange(3)), "T")
    with pytest.raises(AttributeError, match="a device array has no 'T': only a 2-dimensional one has it"):
        _ = cuda.to_device(np.arange(3)).T


def test_split_gives_views_of_one_size_and_a_shorter_last_one() -> None:
    device = cuda.to_device(np.arange(7))
    parts = list(device.split(3))
    assert [part.size for part in parts] == [3, 3, 1]
    parts[2][0] = 70
    assert device[6] == 70
    with pytest.raises(ValueError, match="1-dimensional"):
        list(device.reshape(7, 1).split(2))


def test_numpy_gets_a_copy() -> None:
    device = cuda.to_device(np.arange(3))
    copy = np.asarray(device)
    copy[0] = 100
    assert device[0] == 0
    assert np.asarray(device, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        device.__array__(copy=False)


def test_an_array_with_negative_strides_cannot_be_copied_to_the_host() -> None:
    with pytest.raises(NotImplementedError, match="with negative strides"):
        cuda.to_device(np.arange(3))[::-1].copy_to_host()


def test_records_keep_their_fields() -> None:
    kind = np.dtype([("position", np.float32, (2,)), ("mass", np.float64)])
    device = cuda.to_device(np.zeros(3, kind))
    record = device[1]
    record["mass"] = 2.5
    record["position"][0] = 1
    assert device.copy_to_host()[1]["mass"] == 2.5
    assert device.copy_to_host()[1]["position"].tolist() == [1, 0]
    alone = cuda.to_device(np.zeros(3, kind)[0])
    alone["mass"] = 4
    assert alone.copy_to_host()["mass"] == 4


def test_mapped_and_managed_memory_is_one_for_host_and_device() -> None:
    for array in (cuda.mapped_array(3), cuda.managed_array(3), cuda.mapped_array_like(np.zeros(3))):
        array[:] = 5
        assert array.copy_to_host().tolist() == [5, 5, 5]
        array.copy_to_device(np.arange(3.0))
        assert array.tolist() == [0, 1, 2]
    host = np.zeros(3)
    with cuda.mapped(host) as device:
        device[0] = 9
    assert host[0] == 9


def test_pinned_memory_is_plain_host_memory() -> None:
    assert type(cuda.pinned_array((2, 3), np.float32)) is np.ndarray
    assert cuda.pinned_array_like(np.zeros((2, 3), order="F")).flags.f_contiguous
    with cuda.pinned(np.zeros(3), np.zeros(4)):
        pass
    with pytest.raises(TypeError, match="pinned: expected NumPy arrays, got a list"), cuda.pinned([1, 2]):
        pass


def test_arrays_of_a_real_gpu_are_not_taken() -> None:
    device = cuda.to_device(np.zeros(3))
    assert cuda.is_cuda_array(device)
    assert not cuda.is_cuda_array(np.zeros(3))
    assert cuda.as_cuda_array(device) is device
    with pytest.raises(TypeError, match="expected an array of the emulated device, got a ndarray"):
        cuda.as_cuda_array(np.zeros(3))
