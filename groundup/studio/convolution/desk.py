"""The answers to the page, as JSON values; arrays are as `packed` makes them. Any thread may ask."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path
from typing import Any

from groundup.run_architecture import NetworkForm, as_svg
from groundup.studio.convolution import embedded, networks
from groundup.studio.convolution.field import receptive_field
from groundup.studio.convolution.passes import LayeredPasses, Passed
from groundup.studio.convolution.pixel import pixel
from groundup.studio.convolution.same_sum import StageSums
from groundup.studio.digits.pixels import drawing
from groundup.studio.digits.reasons import packed

MOST = 6
"""Networks, and drawings that went through one, that are kept."""


class Desk:
    """runs: the folder of the runs that can be chosen."""

    def __init__(self, runs: Path) -> None:
        self.runs, self.stages = runs, StageSums()
        self._network = lru_cache(MOST)(lambda name, version: LayeredPasses(networks.load(runs, name)))
        self._pass = lru_cache(MOST)(LayeredPasses.passed)

    def networks(self) -> list[dict[str, str]]:
        """The networks to choose from."""
        return networks.listed(self.runs)

    def drawn(self, name: str) -> dict[str, str]:
        """The architecture of a network as `as_svg` has it."""
        return as_svg(NetworkForm.of(self.network(name).trained.checkpoint))

    def digits(self) -> list[str]:
        """What `embedded.digits` returns, in base64."""
        return [base64.b64encode(each).decode() for each in embedded.digits()]

    def network(self, name: Any) -> LayeredPasses:
        """The network of this name; the stages begin to be prepared for it. Raises as `networks.load` does."""
        network = self._network(*networks.version(self.runs, name))
        self.stages.prepare(network.trained.checkpoint.dtype)
        return network

    def described(self, name: str) -> dict[str, Any]:
        """What `embedded.described` says about the network of this name."""
        return embedded.described(self.network(name))

    def maps(self, body: dict[str, Any]) -> dict[str, Any]:
        """{"class", "scores", "shares", "x", "outputs": {number: output of the layer}, "evidence": Grad-CAM}."""
        _, passed = self._passed(body)
        return {
            "class": passed.chosen,
            "scores": passed.scores.tolist(),
            "shares": passed.shares.tolist(),
            "x": packed(passed.x),
            "outputs": {number: packed(array) for number, array in passed.outputs.items()},
            "evidence": packed(passed.evidence),
        }

    def clicked(self, body: dict[str, Any]) -> dict[str, Any]:
        """The number that a request names by "layer", "channel", "row" and "column": what `Pixel.as_json` and
        `StageSums.sums` say, and "field": of each pixel of the drawing whether the number depends on it.

        Raises ValueError for a number that there is not.
        """
        network, passed = self._passed(body)
        found = pixel(network, passed, *(body.get(name) for name in ("layer", "channel", "row", "column")))
        field = receptive_field(network.architecture, body["layer"], body["row"], body["column"])
        sums = self.stages.sums(found, network.trained.checkpoint.dtype)
        return {**found.as_json(), "field": packed(field), **sums}

    def _passed(self, body: dict[str, Any]) -> tuple[LayeredPasses, Passed]:
        """The network that a request names, and its drawing's pass. Raises ValueError for what is none."""
        network = self.network(body.get("network", ""))
        pixels = drawing(body.get("pixels"), network.trained.form)
        return network, self._pass(network, pixels.tobytes(), body.get("class"))
