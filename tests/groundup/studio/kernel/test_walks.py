"""A walk through a kernel of the project gives what the compiled kernel gives; the walks of the book are small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cuda_emulator import options
from cuda_emulator.inspection import Block, Launched, walk_block
from groundup.studio.kernel import embedded
from groundup.studio.kernel.choices import PROJECT, Choice
from groundup.studio.kernel.walks import WALKS
from shared.contract import load_part
from tests.wide import wide, widened

pytestmark = pytest.mark.skipif(
    load_part("stage4_numba_cuda", "backend").BACKEND.name != "emulator", reason="only the emulator walks"
)
SHORT = {"coalesced"}
MOST_BYTES = 300_000
"""Of a walk in the book."""


def arrays(values: Any) -> Iterator[np.ndarray[Any, Any]]:
    for each in values:
        if isinstance(each, tuple):
            yield from arrays(each)
        elif isinstance(each, np.ndarray):
            yield each


def smaller(choice: Choice) -> tuple[int, int, int]:
    """A size with fewer blocks, and with edges that do not fill them."""
    m, n, k = (min(extent, most) for extent, most in zip(choice.size, (21, 40, 19), strict=True))
    return m, n, k


@pytest.mark.parametrize(
    "choice",
    [choice if choice.name in SHORT else widened(pytest.param(choice, id=choice.name)) for choice in PROJECT],
    ids=lambda choice: choice.name,
)
def test_the_kernels_that_the_page_offers_give_what_they_give_when_they_are_launched(choice: Choice) -> None:
    from groundup.kernels.launching import project_launch

    launch = project_launch(choice.name, smaller(choice))
    launched = Launched(launch.kernel, launch.grid, launch.block, launch.arguments, launch.sharedmem)
    walked, run = launched.fresh(), launched.fresh()
    for number in range(launched.blocks):
        shape = launched.grid, launched.block, number, launched.dynamic_bytes
        walk = walk_block(Block(launch.kernel.source, launch.kernel.parameters, *shape), walked, watched=range(0))
        assert (walk.fault, walk.cut) == ("", False)
    with options(threads=1):
        launch.kernel[launched.grid, launched.block, 0, launched.dynamic_bytes](*run)
    for one, other in zip(arrays(walked), arrays(run), strict=True):
        scale = max(1.0, float(np.nanmax(np.abs(other.astype(np.float64)), initial=0)))
        # A device may fuse a multiplication and an addition, and so does the compiled kernel; a walk rounds twice.
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6 * scale if other.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", [name if name in ("guard", "bias_gradient") else widened(name) for name in WALKS])
def test_a_walk_of_the_book_is_whole_and_small(name: str) -> None:
    data = embedded.data({"walk": name})
    assert len(json.dumps(data, allow_nan=False, separators=(",", ":"))) < MOST_BYTES
    walk = data["walk"]
    assert (walk["fault"], walk["cut"]) == ("", False)
    assert any(step.get("w") for step in walk["steps"])
    assert all(source["file"].startswith("stage4_numba_cuda/kernels/") for source in walk["sources"])
    if WALKS[name].barrier is not None:
        assert data["race"]["found"]
        assert data["race"]["wrong"] != data["race"]["right"]


def test_without_a_name_it_is_the_tiled_product_and_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(embedded, "book_walk", lambda name: asked.append(name) or {})
    embedded.data({})
    embedded.data({"walk": None})
    assert asked == ["tiles", "tiles"]
    with pytest.raises(ValueError, match=r"walk: expected one of guard, .*, got 'nothing'"):
        embedded.data({"walk": "nothing"})


@pytest.mark.parametrize(
    "name", ["tiled_16", "tiled_16:tn", "coalesced", "dense.multiply", "dense.add_bias", "softmax_warp_backward"]
)
def test_no_two_arrays_of_a_kernel_hold_the_same_numbers_and_each_run_has_the_same(name: str) -> None:
    from groundup.kernels.launching import project_launch

    def numbers() -> list[np.ndarray[Any, Any]]:
        found = list(arrays(Launched(*_parts(project_launch(name, (16, 16, 16)))).fresh()))
        return [each.ravel()[:8] for each in found if each.any()]

    def _parts(launch: Any) -> Any:
        return launch.kernel, launch.grid, launch.block, launch.arguments, launch.sharedmem

    first = numbers()
    assert len({each.tobytes() for each in first}) == len(first) >= 2
    assert all(np.array_equal(one, other) for one, other in zip(first, numbers(), strict=True))


@wide
def test_no_text_of_a_walk_through_a_kernel_of_the_project_is_of_the_rewritten_source() -> None:
    from groundup.kernels.launching import project_launch

    for choice in PROJECT:
        launch = project_launch(choice.name, choice.size)
        launched = Launched(launch.kernel, launch.grid, launch.block, launch.arguments, launch.sharedmem)
        shape = launched.grid, launched.block, 0, launched.dynamic_bytes
        walk = walk_block(
            Block(launch.kernel.source, launch.kernel.parameters, *shape), launched.fresh(), watched=range(0)
        )
        assert [mark.text for mark in walk.marks if "__" in mark.text] == [], choice.name
