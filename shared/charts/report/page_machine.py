"""The page's list of facts about the machine and its software: the environment of the results, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.bench.records.document import Results
from shared.charts.drawing.words import capital, size_of
from shared.markup import Html, tag

TITLES = {
    "cpu": "processor",
    "cores": "usable cores",
    "os": "operating system",
    "blas": "BLAS",
    "numpy": "NumPy",
    "gpus": "GPUs",
    "pytorch": "PyTorch",
    "stage3_c": "stage 3, C",
    "stage4_numba_cuda": "stage 4, CUDA",
    "load_average": "load average before the start",
    "groundup": "groundup",
    "pinned": "pinned to the cores",
    "turbo": "may exceed its base frequency",
    "hypervisor": "virtual machine",
    "governor": "frequency governor",
}
"""Fact -> its name on the page, where the key of the environment is too short to be understood."""


def machine(results: Results) -> Html:
    """Every known fact of the environment, in its order."""
    told = [(name, fact(name, value)) for name, value in results.environment.items()]
    terms = [
        each
        for name, text in told
        if text
        for each in (tag("dt", capital(TITLES.get(name, name.replace("_", " ")))), tag("dd", text))
    ]
    return tag("dl", *terms, class_="facts")


def fact(name: str, value: object) -> str:
    """A fact in words; "" if it is not known or does not exist on this machine."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "memory" and isinstance(value, int):
        return size_of(value)
    if name == "caches" and isinstance(value, list):
        return "; ".join(_cache(each) for each in value)
    if isinstance(value, Mapping):
        # Environment variables keep their underscores.
        inner = ((key if key.isupper() else key.replace("_", " "), fact(key, each)) for key, each in value.items())
        separator = " " if name == "libraries" else ": "
        return ("; " if separator == ": " else ", ").join(f"{key}{separator}{text}" for key, text in inner if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {"flags": " ", "gpus": "; "}.get(name, ", ").join(filter(None, (fact(name, each) for each in value)))
    return "" if value is None else str(value)


def _cache(cache: Mapping[str, Any]) -> str:
    kind = "" if cache["type"] == "unified" else f" {cache['type']}"
    shared = cache.get("shared_by") or 1
    return f"L{cache['level']}{kind} {size_of(cache['bytes'])}" + (f" for {shared} cores" if shared > 1 else "")
