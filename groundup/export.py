"""What `groundup export` does: a trained network as an ONNX file, which other programs open and compute.

export      everything: open the run, make the file, have it checked, compare its answers, write it
lines       what was written and how it was proven, as text
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from groundup import __version__
from groundup.eight_bits import calibrated_on, evenly, in_eight_bits
from groundup.run_notes import form_of
from groundup.trained import as_learned, check_fit, in_words, load_data, open_checkpoint, settings_of
from shared.data.accepted_data import Form
from shared.data.normalisation import Normalisation
from shared.machine.atomic import write_atomically
from shared.machine.regular import real
from shared.machine.results import results_folder
from shared.machine.software import extra
from shared.numbers import plural, three_digits
from shared.training.checkpoints import Checkpoint

SUFFIX = ".onnx"


class DifferentAnswers(ValueError):
    """ONNX Runtime computes other answers by the file than the network gives."""


def export(
    run: Path, out: Path, data_dir: Path | None = None, int8: bool = False, calibrate: int | None = None
) -> dict[str, Any]:
    """Write the network of a run as an ONNX file. Returns the document for --json.

    data_dir: folder of the data set, whose test images are compared; None for the one that was trained on
    int8: in eight bits; calibrate: then the number of training images that decide about the scales, None for the usual
    Raises ValueError or OSError for what is no run, no data or no place for a file, DifferentAnswers if the answers
    differ by more than rounding explains. Then there is no file, or the one that was there before.
    """
    if out.suffix != SUFFIX or out.is_dir():
        raise ValueError(f"--out: expected a file that ends in {SUFFIX}, got {out}")
    if find_spec("onnx") is None:
        raise ValueError(f"export needs onnx, which is not installed; install the extra onnx: {extra('onnx')}")
    from shared.export import eight_bit_graph, equal_answers, onnx_graph  # now that onnx is there

    checkpoint = open_checkpoint(run)
    notes = settings_of(checkpoint)
    form = form_of(notes)
    check_fit(checkpoint, str(notes["dataset"]), form)
    results_folder(out.parent)
    normalisation = Normalisation.from_notes(notes)
    numbers = checkpoint.architecture, checkpoint.parameters, checkpoint.running_statistics
    metadata = _metadata(checkpoint, form, notes)
    compares = equal_answers.runtime_is_installed()
    data: Any = load_data(checkpoint, data_dir) if compares or int8 else None
    eight = None
    if int8:
        calibrate = calibrated_on(data, calibrate)
        eight = in_eight_bits(checkpoint, as_learned(checkpoint, data), calibrate)
        metadata["eight_bits"] = f"int8, symmetric, weights per channel, calibrated on {calibrate} training images"
        model = eight_bit_graph.model_of(eight, normalisation, metadata, __version__)
    else:
        model = onnx_graph.model_of(*numbers, normalisation, metadata, __version__)
    content = model.SerializeToString()
    equal_answers.check_form(content)
    answers: Any = None
    if compares:
        count = equal_answers.how_many(checkpoint.architecture, in_eight_bits=eight is not None)
        pixels = evenly(data.test.x, count).astype(np.float32)
        learned = pixels if normalisation is None else normalisation.normalised(pixels)
        if eight:
            answers = equal_answers.compare_in_eight_bits(content, eight, pixels, learned)
        else:
            answers = equal_answers.compare_answers(content, *numbers, pixels, learned)
        if not answers.ok:
            raise DifferentAnswers(f"{out} was not written, because its answers are wrong: {answers}")
    write_atomically(out, content)
    return {
        "file": str(out),
        "bytes": len(content),
        "network": in_words(checkpoint),
        "checkpoint": str(checkpoint.path),
        "opset": onnx_graph.OPSET,
        "ir": onnx_graph.IR,
        "input": {"name": onnx_graph.INPUT, "shape": ["batch", *checkpoint.architecture.input_shape]},
        "output": {"name": onnx_graph.OUTPUT, "shape": ["batch", *checkpoint.architecture.output_shape]},
        "normalised": normalisation is not None,
        "rounded": checkpoint.dtype != "float32",
        "calibrated_on": calibrate,
        "metadata": metadata,
        "checked_by": f"onnx {equal_answers.onnx.__version__}",
        "compared": None if answers is None else _compared(answers),
    }


def _metadata(checkpoint: Checkpoint, form: Form, notes: Mapping[str, Any]) -> dict[str, str]:
    """What the file says about its network; its readers find texts only."""
    return {
        "classes": json.dumps(list(form.names), ensure_ascii=False),
        "run": real(checkpoint.path).parent.name.encode(errors="backslashreplace").decode(),  # any bytes name a folder
        "dataset": str(notes["dataset"]),
        "version": __version__,
    }


def _compared(answers: Any) -> dict[str, Any]:
    names = ("runtime", "images", "same_class", "largest", "allowed", "steps")
    return {name: getattr(answers, name) for name in names if hasattr(answers, name)}


def lines(document: Mapping[str, Any]) -> list[str]:
    """The document as lines of text."""
    ends = [f"{document[end]['name']} ({', '.join(map(str, document[end]['shape']))})" for end in ("input", "output")]
    normalised = "; the run's normalisation is part of the file" if document["normalised"] else ""
    lines = [
        f"{document['file']}: {document['network']}; {document['bytes']:,} bytes, opset {document['opset']}",
        f"{ends[0]}, float32 from 0 to 1 -> {ends[1]}{normalised}",
        f"a valid model, says {document['checked_by']}",
    ]
    if (count := document["calibrated_on"]) is not None:
        lines.append(f"in eight bits, with scales from {plural(count, 'training image')}")
    elif document["rounded"]:
        lines.append("its float64 numbers were rounded to float32")
    if (compared := document["compared"]) is None:
        lines.append(f"ONNX Runtime is not installed, so no answers were compared; it comes with {extra('onnx')}")
        return lines
    said = f"{compared['runtime']} gives {compared['same_class']} of {compared['images']} test images the class that "
    if "steps" in compared:
        said += (
            "stage 2 gives them in eight bits, with its optimisations and without; "
            f"the largest difference of a logit is {three_digits(compared['steps'])} of a step of eight bits"
        )
    else:
        said += (
            f"stage 2 gives them; the largest difference of a logit is {three_digits(compared['largest'])}, "
            f"rounding explains {three_digits(compared['allowed'])}"
        )
    return [*lines, said]
