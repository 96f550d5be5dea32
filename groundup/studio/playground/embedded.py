"""What an exported page carries: the settings with which it opens. It trains in the browser (static/local.js)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundup.studio.playground.settings import Settings


def data(options: Mapping[str, Any]) -> dict[str, Any]:
    """{"settings": …}: those of Settings, with which the page opens.

    options: any settings by name, such as {"data": "spirals", "layers": [8, 8]}
    Raises ValueError or TypeError for a wrong one, and for the sets that such a page cannot have.
    """
    names = Settings().to_json()
    settings = Settings.from_json({name: value for name, value in options.items() if name in names})
    if settings.data == "digits":
        raise ValueError("data: an exported page has no images; choose one of xor, clouds, circles, spirals")
    return {"settings": settings.to_json()}
