"""The moving picture of the README: a kernel with a race, what the emulator says of it, the mend, and the pass.

    python scripts/moving_picture.py        draws docs/pictures/race-found.svg

The text under each command is what the command prints here and now. The picture is one SVG with CSS animation: it plays
wherever a browser shows it, and stands still, complete, for readers who want no motion.
"""

from __future__ import annotations

import html
import re
import subprocess
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

from shared.machine import processes

ROOT = Path(__file__).resolve().parents[1]

PICTURE = ROOT / "docs" / "pictures" / "race-found.svg"

FILE = "differences.py"

WRONG = """\
import numpy as np
from numba import cuda, float32


@cuda.jit
def differences(values, out):
    tile = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    tile[i] = values[i]
    if i > 0:
        out[i] = tile[i] - tile[i - 1]


values = np.arange(256, dtype=np.float32) ** 2
out = np.zeros_like(values)
differences[1, 256](values, out)
print("right:", np.array_equal(out[1:], np.diff(values)))
"""

STORE, READ = "    tile[i] = values[i]\n", "        out[i] = tile[i] - tile[i - 1]\n"

BARRIER = "    cuda.syncthreads()\n"

MENDED = WRONG.replace(STORE, STORE + BARRIER)

COLUMNS, ADVANCE, LINE, LEFT = 96, 8.43, 20, 18

BEATS = (0, 8, 26, 50, 66)
"""When the wrong kernel, its run, its check, the mend and the last check appear, as a percentage of SECONDS."""

SECONDS = 15


@dataclass(frozen=True)
class Ran:
    """A command with what it printed, in lines as wide as the picture."""

    command: str
    lines: list[str]


def ran(source: str, *options: str) -> Ran:
    """Run `groundup run` on a file with this source."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_text(source, encoding="utf-8")
        done = subprocess.run(
            processes.python("-m", "groundup", "run", *options, FILE),
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    printed = done.stdout + done.stderr.partition("groundup lens")[0]
    wrapped = [textwrap.wrap(line, COLUMNS) or [""] for line in printed.splitlines()]
    return Ran(" ".join(["groundup run", *options, FILE]), [part for parts in wrapped for part in parts])


def record() -> list[Ran]:
    """The three commands, run now: the wrong kernel plainly and with --check, and the mended one with --check."""
    return [ran(WRONG), ran(WRONG, "--check"), ran(MENDED, "--check")]


def picture(commands: list[Ran]) -> str:
    """The SVG."""
    height = [0.0]

    def text(line: str, css: str = "", left: float = LEFT) -> str:
        height[0] += LINE
        return f'<text x="{left:g}" y="{height[0]:g}" class="{css}" xml:space="preserve">{html.escape(line)}</text>'

    def code(source: str) -> list[str]:
        height[0] = LINE
        rows = []
        for number, line in enumerate(source.splitlines(), 1):
            css = "good" if f"{line}\n" == BARRIER else "keyword" if re.match(r"\s*(@|def |from|import)", line) else ""
            rows.append(text(f"{number:2}  {line}", css))
        return rows

    wrong, mended = code(WRONG), code(MENDED)
    bottom = height[0]
    fault = LINE * (2 + WRONG.splitlines(keepends=True).index(READ))
    shown = []
    height[0] = bottom + LINE
    for number, command in enumerate(commands):
        lines = [text(f"$ {command.command}", "prompt")]
        lines += [
            text(line, "bad" if number == 1 else "good" if line == "right: True" else "") for line in command.lines
        ]
        shown.append("".join(lines))
    frame = f'<rect x="{LEFT - 4}" y="{fault - 15}" width="{ADVANCE * 44:g}" height="{LINE}" class="fault"/>'
    parts = [
        f'<g class="until">{"".join(wrong)}</g><g class="mark">{frame}</g><g class="b3">{"".join(mended)}</g>',
        *(f'<g class="b{beat}">{lines}</g>' for beat, lines in zip((1, 2, 4), shown, strict=True)),
    ]
    appear = "".join(
        f"@keyframes b{n}{{0%,{at}%{{opacity:0}}{at + 0.1}%,100%{{opacity:1}}}}"
        f".b{n}{{animation:b{n} {SECONDS}s infinite}}"
        for n, at in enumerate(BEATS)
        if at
    )
    beat, mend = BEATS[2], BEATS[3]
    style = (
        "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6deeb}"
        ".ground{fill:#0f1720}.name,.prompt{fill:#9fb0c3}.keyword{fill:#8ab4f8}.bad{fill:#ff8a80}"
        ".good{fill:#7ee0a8;font-weight:bold}.fault{fill:none;stroke:#ff8a80;stroke-width:1.5}"
        f"{appear}@keyframes gone{{0%,{mend}%{{opacity:1}}{mend + 0.1}%,100%{{opacity:0}}}}"
        f"@keyframes mark{{0%,{beat}%{{opacity:0}}{beat + 0.1}%,{mend}%{{opacity:1}}{mend + 0.1}%,100%{{opacity:0}}}}"
        f".until{{animation:gone {SECONDS}s infinite}}.mark{{animation:mark {SECONDS}s infinite}}"
        "@media (prefers-reduced-motion:reduce){*{animation:none!important}.until,.mark{opacity:0}}"
    )
    width, tall = round(2 * LEFT + COLUMNS * ADVANCE), height[0] + LEFT
    title = (
        "A kernel gives the right numbers by luck; groundup run --check names the race with file and line; with a "
        "barrier it passes"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall:g}" width="{width}" height="{tall:g}" '
        f'role="img" aria-label="{title}"><title>{title}</title><style>{style}</style>'
        f'<rect width="{width}" height="{tall:g}" rx="8" class="ground"/>'
        f'<path d="M0 {bottom + 9:g}H{width}" stroke="#1d2936"/>'
        f'<text x="{width - LEFT}" y="20" text-anchor="end" class="name">{FILE}</text>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(record()), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
