"""Images of the user's own: pictures in folders, .npz files and IDX files of any size; what does not fit is told."""

from __future__ import annotations

import io
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shared.data.datasets import FILES, TEST_FILES, TRAIN_FILES, DataError, DataNote, load_dataset, load_test, place_of
from shared.data.pictures import Wanted, read_one
from tests.shared.data.idx_files import idx_bytes, write
from tests.shared.data.own_sets import FLAGS, SHAPES, flags, shapes

RNG = np.random.default_rng(4)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return shapes(tmp_path / "shapes", train=10, test=3)


def noise(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, pixels: np.ndarray, mode: str | None = None, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path, **options)
    return path


# --- pictures


def test_pictures_in_folders_are_a_data_set(pictures: Path) -> None:
    data = load_dataset(str(pictures))
    assert (data.name, data.classes, len(data.train), len(data.test)) == ("shapes", 3, 30, 9)
    assert (data.described.shape, data.described.names) == ((1, 20, 20), SHAPES)
    assert data.train.y.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    first = np.asarray(Image.open(pictures / "train" / "bar" / "0.png")).ravel()
    np.testing.assert_array_equal(data.train.x[0], first.astype(np.float32) / 255)
    np.testing.assert_array_equal(load_test(str(pictures)).x, data.test.x)


def test_without_a_folder_test_every_fifth_is_a_test_image_by_its_name(tmp_path: Path) -> None:
    one = load_dataset(str(shapes(tmp_path / "one", train=40, test=None)))
    assert len(one.train) + len(one.test) == 120
    assert 12 <= len(one.test) <= 36
    other = load_dataset(str(shapes(tmp_path / "two", train=40, test=None)))
    np.testing.assert_array_equal(one.test.x, other.test.x)  # in another folder, too
    (tmp_path / "one" / "train" / "bar" / "0.png").rename(tmp_path / "away.png")
    assert len(load_dataset(str(tmp_path / "one")).train) + len(load_dataset(str(tmp_path / "one")).test) == 119


@pytest.mark.parametrize("ending", ["jpg", "jpeg", "bmp", "PNG", "webp"])
def test_other_kinds_of_pictures_are_read(tmp_path: Path, ending: str) -> None:
    for part, name in (("train", "a"), ("train", "b"), ("test", "a")):
        save(tmp_path / "p" / part / name / f"1.{ending}", noise(6, 4))
    assert load_dataset(str(tmp_path / "p")).train.x.shape == (2, 24)


@pytest.mark.parametrize("mode", ["RGB", "P", "L", "1", "RGBA", "LA"])
def test_pictures_are_grey_unless_colour_is_asked_for(tmp_path: Path, mode: str) -> None:
    pixels = noise(5, 7, 3)
    for part, name in (("train", "a"), ("train", "b"), ("test", "a")):
        path = save(tmp_path / "p" / part / name / "1.png", pixels, mode)
    grey = load_dataset(str(tmp_path / "p"))
    opened = Image.open(path)
    expected = np.asarray(opened.convert("RGB").convert("L") if mode == "P" else opened.convert("L"))
    np.testing.assert_array_equal(np.rint(grey.train.x[0] * 255).reshape(5, 7), expected)
    colour = load_dataset(str(tmp_path / "p"), colour=True)
    assert colour.described.shape == (3, 5, 7)
    expected = np.asarray(opened.convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(np.rint(colour.train.x[0] * 255).reshape(3, 5, 7), expected)


def test_a_photograph_stands_as_the_camera_was_held(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    for part, name in (("train", "a"), ("train", "b"), ("test", "a")):
        save(tmp_path / "p" / part / name / "1.png", noise(6, 4))
    for place in ("test/b/1.jpg", "train/a/0.jpg"):  # the last, and the first of all
        save(tmp_path / "p" / place, noise(4, 6), exif=exif)
        data = load_dataset(str(tmp_path / "p"))
        assert data.train.shape == data.test.shape == (1, 6, 4)


@pytest.mark.parametrize(("resize", "shape"), [("8", (8, 8)), ("20", (20, 20)), ("24x16", (24, 16))])
def test_pictures_of_other_sizes_are_resized(pictures: Path, resize: str, shape: tuple[int, int]) -> None:
    save(pictures / "train" / "bar" / "large.png", noise(33, 50))
    data = load_dataset(str(pictures), resize=resize)
    assert data.described.shape == (1, *shape)
    assert 0 <= data.train.x.min() <= data.train.x.max() <= 1
    opened = Image.open(pictures / "train" / "bar" / "large.png")
    expected = np.asarray(opened.resize(shape[::-1], Image.Resampling.BILINEAR))
    rows = np.rint(data.train.x * 255).astype(np.uint8)
    assert any(np.array_equal(row, expected.ravel()) for row in rows)


def another(where: str, *shape: int) -> Callable[[Path], Any]:
    """Adds a picture of this shape to a folder."""
    return lambda place: save(place / where / "z.png", noise(*shape))


def of_16_bits(place: Path) -> None:
    save(place / "train/bar/z.png", noise(20, 20).astype(np.uint16) * 257)


def no_picture(place: Path) -> None:
    (place / "train/bar/z.png").write_bytes(b"no picture")


def cut_short(place: Path) -> None:
    (place / "train/bar/z.png").write_bytes((place / "train/bar/0.png").read_bytes()[:-60])


def without_tests(place: Path) -> None:
    for path in place.glob("test/*/*"):
        path.unlink()


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("has 21 by 20 pixels, but .* has 20 by 20; .* --resize 20x20", another("train/cross", 21, 20)),
        ("without transparent places; lay it on a background first", another("train/bar", 20, 20, 4)),
        ("expected grey or RGB with 8 bits for each number, got Pillow's mode I;16", of_16_bits),
        (r"z\.png: expected a PNG picture", no_picture),
        ("the picture is damaged", cut_short),
        ("there are no training pictures of sun", lambda place: (place / "train/sun").mkdir()),
        ("the class sun has no folder in", another("test/sun", 20, 20)),
        ("there are no test pictures; found 30 to train and 0 to test", without_tests),
    ],
)
def test_pictures_that_do_not_fit_are_told(pictures: Path, sentence: str, change: Callable[[Path], Any]) -> None:
    change(pictures)
    with pytest.raises(DataError, match=sentence) as caught:
        load_dataset(str(pictures))
    assert "\n" not in str(caught.value)


def test_files_that_are_no_pictures_are_left_out_and_told(pictures: Path) -> None:
    (pictures / "train" / "bar" / "notes.txt").write_text("x")
    (pictures / "train" / "bar" / ".DS_Store").write_text("x")
    with pytest.warns(DataNote, match=r"left out 1 files that are no pictures of a known kind, such as notes\.txt"):
        assert len(load_dataset(str(pictures)).train) == 30


@pytest.mark.parametrize("folders", [[], ["train"], ["train/a"], ["cats", "dogs"]])
def test_folders_of_another_form_are_told(tmp_path: Path, folders: list[str]) -> None:
    for name in ("", *folders):
        (tmp_path / "set" / name).mkdir(parents=True)
    with pytest.raises(
        DataError, match=r"expected pictures in folders set/train/CLASS, or the four|expected 2 to 1,000 cl"
    ):
        load_dataset(str(tmp_path / "set"))


@pytest.mark.parametrize("place", ["nowhere/at/all", "./gone", "gone.npz", "~/groundup-has-no-such-folder"])
def test_a_place_that_is_not_there_is_told(place: str) -> None:
    with pytest.raises(DataError, match=r"there is no such (folder|file)"):
        load_dataset(place)


@pytest.mark.parametrize("resize", ["", "28x0", "9999"])
def test_sizes_that_are_none_are_told(pictures: Path, resize: str) -> None:
    with pytest.raises(DataError, match=r"--resize: expected a size like 28, or height x width like 24x16, got "):
        load_dataset(str(pictures), resize=resize)
    with pytest.raises(DataError, match="colour and resize are for images of your own"):
        load_dataset("mnist-subset", resize="28")


def test_more_than_the_memory_is_used_for_is_told(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.data.pictures.MOST_MEMORY", 40_000)
    with pytest.raises(DataError, match=r"30 images of 1x20x20 numbers take 48,000 bytes, more than the 40,000"):
        load_dataset(str(pictures))
    monkeypatch.setattr("shared.data.pictures.MOST_PIXELS", 399)
    with pytest.raises(DataError, match="expected at most 399 pixels, got 20 by 20"):
        load_dataset(str(pictures), resize="3")


def test_without_pillow_pictures_are_a_sentence_and_arrays_still_work(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match="pictures need Pillow, which is not installed: pip install pillow"):
        load_dataset(str(pictures))
    load_dataset(str(flags(tmp_path / "flags.npz")))


def test_a_folder_named_like_a_known_set_is_not_taken_for_it(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_dataset("shapes").name == "shapes"
    assert place_of("shapes") == str(pictures)
    pictures.rename(tmp_path / "mnist-subset")
    assert len(load_dataset("mnist-subset").train) == 6000
    assert len(load_dataset("./mnist-subset").train) == 30
    assert place_of("mnist-subset") == "mnist-subset"
    with pytest.raises(DataError, match=r"unknown data set 'photos'; .*, or name a folder or an \.npz file"):
        load_dataset("photos")


# --- .npz


def arrays(count: int = 6, **changed: Any) -> dict[str, Any]:
    usual = {
        "x_train": noise(count, 4, 6, 3),
        "y_train": np.arange(count) % 3,
        "x_test": noise(3, 4, 6, 3),
        "y_test": np.arange(3),
        "class_names": np.array(["c", "a", "b"]),
    }
    return {name: array for name, array in (usual | changed).items() if array is not None}


WITH_NAN = np.zeros((3, 4, 6, 3))
WITH_NAN[2, 3, 5, 1] = np.nan


def npz(path: Path, **changed: Any) -> str:
    np.savez(path, **arrays(**changed))
    return str(path)


def test_an_npz_file_is_a_data_set(tmp_path: Path) -> None:
    data = load_dataset(str(flags(tmp_path / "flags.npz")), colour=True)
    assert (data.name, data.described.shape, data.described.names) == ("flags", (3, 24, 16), FLAGS)
    saved = np.load(tmp_path / "flags.npz")
    images = (saved["x_test"].transpose(0, 3, 1, 2) / np.float32(255)).astype(np.float32)
    np.testing.assert_array_equal(data.test.x, images.reshape(20, -1))
    np.testing.assert_array_equal(data.test.y, saved["y_test"])
    grey = load_dataset(str(tmp_path / "flags.npz"))
    expected = np.asarray(Image.fromarray(saved["x_train"][0]).convert("L"))
    np.testing.assert_array_equal(np.rint(grey.train.x[0] * 255).reshape(24, 16), expected)


@pytest.mark.parametrize(
    ("changed", "colour", "shape"),
    [
        ({"x_train": noise(6, 3, 4, 6), "x_test": noise(3, 3, 4, 6)}, True, (3, 4, 6)),
        ({"x_train": noise(6, 4, 6), "x_test": noise(3, 4, 6)}, False, (1, 4, 6)),
        ({"x_train": noise(6, 25), "x_test": noise(3, 25)}, False, (1, 5, 5)),
        ({"x_train": RNG.random((6, 4, 6)), "x_test": RNG.random((3, 4, 6)).astype("f4")}, False, (1, 4, 6)),
        ({"x_train": RNG.random((6, 4, 6, 3)).astype(">f4"), "x_test": RNG.random((3, 4, 6, 3))}, False, (1, 4, 6)),
        ({"x_train": np.asfortranarray(noise(6, 4, 6)), "x_test": noise(3, 4, 6)}, False, (1, 4, 6)),
    ],
)
def test_images_of_many_forms_are_read(
    tmp_path: Path, changed: dict[str, Any], colour: bool, shape: tuple[int, ...]
) -> None:
    data = load_dataset(npz(tmp_path / "set.npz", **changed), colour=colour)
    assert data.described.shape == shape
    if changed["x_train"].ndim == 3 and not colour:
        given = changed["x_train"] / (255 if changed["x_train"].dtype == np.uint8 else 1)
        np.testing.assert_allclose(data.train.x, given.reshape(6, -1), rtol=1e-6)


def test_an_npz_file_is_resized_and_compressed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "set.npz", **arrays(x_test=noise(3, 9, 9, 3)))
    with pytest.raises(DataError, match="training images have 4x6 pixels, but the test images 9x9; all images"):
        load_dataset(str(tmp_path / "set.npz"))
    assert load_dataset(str(tmp_path / "set.npz"), colour=True, resize="5x3").described.shape == (3, 5, 3)
    np.savez(tmp_path / "floats.npz", **arrays(x_train=RNG.random((6, 4, 6, 3))))
    assert 0 <= load_dataset(str(tmp_path / "floats.npz"), resize="5x3").train.x.max() <= 1


@pytest.mark.parametrize("names", [None, np.array(["ant", "bee", "cow"])])
def test_labels_may_be_names(tmp_path: Path, names: np.ndarray | None) -> None:
    train, test = np.array(["cow", "ant", "bee"] * 2), np.array(["bee", "bee", "cow"])
    data = load_dataset(npz(tmp_path / "set.npz", y_train=train, y_test=test, class_names=names))
    assert data.described.names == ("ant", "bee", "cow")
    assert data.train.y.tolist() == [2, 0, 1] * 2
    assert data.test.y.tolist() == [1, 1, 2]


def test_images_may_be_bools(tmp_path: Path) -> None:
    black = np.arange(6 * 24).reshape(6, 4, 6) % 2 == 0
    data = load_dataset(npz(tmp_path / "set.npz", x_train=black, x_test=black[:3]))
    np.testing.assert_array_equal(data.train.x, black.reshape(6, 24))


@pytest.mark.parametrize(
    ("labels", "names", "absent"),
    [
        ([0, 1] * 3, ["c", "a", "b"], "b"),
        ([5, 6] * 3, None, "0, 1, 2 and others"),
    ],
)
def test_a_class_without_a_training_image_is_told(
    tmp_path: Path, labels: list[int], names: list[str] | None, absent: str
) -> None:
    file = npz(tmp_path / "set.npz", y_train=labels, y_test=labels[:3], class_names=names)
    with pytest.warns(DataNote, match=f"/set.npz: no training image is of class {absent}$"):
        assert load_dataset(file).classes == (len(names) if names else max(labels) + 1)


@pytest.mark.parametrize("colour", [False, True])
def test_paper_is_white_where_the_border_of_the_training_images_is(tmp_path: Path, colour: bool) -> None:
    images = np.full((6, 8, 8, 3), 20, np.uint8)
    images[:, 2:6, 2:6] = 230  # more light than dark is no sign: a small figure or a large one
    images[:, 1:7, 1:7] = 230
    for x, white in ((images, False), (255 - images, True), ((255 - images) / 255, True)):
        file = npz(tmp_path / "set.npz", x_train=x, x_test=x[:3])
        assert load_dataset(file, colour=colour).described.on_white is white
        assert load_dataset(file, colour=colour, resize="4").described.on_white is white
    assert not load_dataset().described.on_white


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"x_test": None}, "expected x_train, y_train, x_test, y_test and class_names, but it has no x_test"),
        ({"x_train": noise(6, 4, 6, 3).astype("i4")}, "x_train: expected uint8 from 0 to 255, or floats .* got int32"),
        ({"x_train": np.full((6, 4, 6, 3), np.nan)}, "x_train: expected finite numbers, but image 0 has nan$"),
        ({"x_test": noise(0, 4, 6, 3), "y_test": np.zeros(0, int)}, r"x_test: expected at least one image, got shape"),
        ({"y_train": np.full(6, 2**64 - 1, "u8")}, "got 3 classes and labels from 0 to 18446744073709551615$"),
        ({"x_train": noise(6, 4, 6, 4)}, "x_train: expected images .* got shape"),
        ({"y_train": np.zeros(5, int)}, "y_train: expected 6 labels, numbers or names, got int64 of shape"),
        ({"y_train": np.zeros(6)}, "y_train: expected 6 labels, numbers or names, got float64"),
        ({"y_test": np.array([-1, 0, 1])}, "expected a class for each label, got 3 classes and labels from -1 to 2"),
        ({"y_test": np.array(["a", "b", "c"])}, "labels of both parts, got numbers and names"),
        ({"class_names": np.array(["a", "b", "b"])}, "expected a different name for each class"),
        ({"class_names": np.array(["a", "\x1b[2J", "c"])}, "names in one line of characters that can be printed"),
        ({"class_names": np.array(["a"])}, "expected 2 to 1,000 classes, got 1"),
        ({"class_names": np.array(["a", "b", "c"], object)}, "class_names: .*expected numbers or texts.*object"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_told(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        load_dataset(npz(tmp_path / "set.npz", **changed))
    assert "\n" not in str(caught.value)


class Gotcha:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('code of the file was run')",)


def member(header: bytes, content: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            member(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000, 28, 28), }"),
            "in at most .* bytes",
        ),
        (member(b"__import__('os').abort()"), "its header is damaged"),
        (b"", "its header is damaged"),
        (member(b"{'descr': '<U1', 'fortran_order': False, 'shape': (3,), }", b"\xff" * 12), "its texts are damaged"),
    ],
)
def test_hostile_files_are_refused_without_running_or_filling_anything(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "set.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays().items():
            made = io.BytesIO()
            np.save(made, array)
            replaced = name == ("class_names" if b"U1" in content else "x_train")
            archive.writestr(f"{name}.npy", content if replaced else made.getvalue())
    with pytest.raises(DataError, match=sentence):
        load_dataset(str(path))


def test_pickled_arrays_are_not_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected numbers or texts"):
        load_dataset(npz(tmp_path / "set.npz", class_names=np.array([Gotcha()] * 3, object)))


@pytest.mark.parametrize("damage", [lambda content: content[:-40], lambda content: b"x" * 50, lambda content: b""])
def test_damaged_files_are_told(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = Path(npz(tmp_path / "set.npz"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"set\.npz: expected an \.npz file, but it is none, or damaged"):
        load_dataset(str(path))


# --- IDX files of any size


@pytest.mark.parametrize(("height", "width", "classes"), [(8, 8, 2), (5, 9, 3), (32, 32, 100), (28, 28, 47)])
def test_idx_files_of_any_size_and_number_of_classes(tmp_path: Path, height: int, width: int, classes: int) -> None:
    made = {}
    for names, count in ((TRAIN_FILES, 2 * classes), (TEST_FILES, classes)):
        made |= dict(zip(names, (noise(count, height, width), np.arange(count) % classes), strict=True))
    for name, array in made.items():
        write(tmp_path / "set" / f"{name}.gz", idx_bytes(array.astype(np.uint8)))
    with warnings.catch_warnings(action="error"):
        data = load_dataset(str(tmp_path / "set"))
    assert (data.classes, data.described.shape) == (classes, (1, height, width))
    assert data.described.names == tuple(map(str, range(classes)))
    np.testing.assert_array_equal(np.rint(data.train.x * 255).reshape(-1, height, width), made[FILES[0]])
    assert load_dataset(str(tmp_path / "set"), colour=True, resize="6").described.shape == (3, 6, 6)
    write(tmp_path / "set" / f"{TRAIN_FILES[1]}.gz", idx_bytes(np.zeros(2 * classes, np.uint8)))
    with pytest.warns(DataNote, match="set: no training image is of class 1"):
        load_dataset(str(tmp_path / "set"))
    write(tmp_path / "set" / f"{TEST_FILES[0]}.gz", idx_bytes(made[TEST_FILES[0]] % 2))
    with pytest.raises(DataError, match=f"{TEST_FILES[0]}.gz: uint8 of 0 and 1 may be pixels or shares; save pixels"):
        load_dataset(str(tmp_path / "set"))


def test_a_picture_that_moves_is_refused(tmp_path: Path) -> None:
    first, second = Image.fromarray(noise(5, 7, 3)), Image.fromarray(noise(5, 7, 3)[::-1])
    first.save(tmp_path / "film.png", save_all=True, append_images=[second])
    with pytest.raises(DataError, match="expected a picture that stands still, got 2 of a film"):
        read_one(tmp_path / "film.png", Wanted(False, None))
