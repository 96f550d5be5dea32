"""What check mode did in this program: how many launches of each kernel, and what was looked at in each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..hooks import Detection

ORDERS = 4


@dataclass
class Checked:
    """The launches of one kernel in check mode.

    refused: launches in which a mistake was found
    whole, sampled: launches whose accesses were looked at in all blocks, or in a sample of them
    example: (blocks of the sample, all blocks) of the last sampled one; remarks: sentences, each once
    """

    launches: int = 0
    refused: int = 0
    whole: int = 0
    sampled: int = 0
    example: tuple[int, int] = (0, 0)
    remarks: dict[str, None] = field(default_factory=dict)


_checked: dict[str, Checked] = {}


def of(kernel: str) -> Checked:
    """The account of the kernels with this name."""
    return _checked.setdefault(kernel, Checked())


def remark(kernel: str, sentence: str) -> None:
    """Add a sentence about a kernel to the report."""
    of(kernel).remarks[sentence] = None


def looked(kernel: str, detection: Detection) -> None:
    """Count a launch that a detector looked at."""
    account = of(kernel)
    if not detection.blocks:
        pass
    elif detection.blocks == detection.grid_blocks and not detection.cut:
        account.whole += 1
    else:
        account.sampled += 1
        account.example = detection.blocks, detection.grid_blocks
    for sentence in (*detection.unjudged, *detection.remarks):
        remark(kernel, sentence)


def reset() -> None:
    """Forget all launches: another program begins."""
    _checked.clear()


def report() -> str:
    """The report on all launches since the start, several lines."""
    launches = sum(each.launches for each in _checked.values())
    if not launches:
        return "check: no kernel was launched"
    refused = sum(each.refused for each in _checked.values())
    accepted = f"no mistake found in {_times(launches - refused, 'launch', 'launches')}, each run in {ORDERS} orders"
    if refused == launches:
        accepted = "all of them"
    if refused:
        accepted = f"{refused:,} of {_times(launches, 'launch', 'launches')} refused; {accepted}"
    lines = [f"check: {accepted}"]
    for name, each in _checked.items():
        refusals = f", {each.refused:,} refused" if each.refused else ""
        lines.append(f"  {name}: {_times(each.launches, 'launch', 'launches')}{refusals}; {_looked_at(each)}")
        lines += [f"    {sentence}" for sentence in each.remarks]
    return "\n".join(lines)


def _looked_at(account: Checked) -> str:
    parts = []
    if account.whole:
        parts.append(f"every access of {account.whole:,}")
    if account.sampled:
        blocks, grid_blocks = account.example
        parts.append(f"the accesses of {account.sampled:,} in a sample ({blocks} of {grid_blocks:,} blocks)")
    rest = account.launches - account.whole - account.sampled
    if not parts:
        return "only the results were compared"
    said = "looked at " + " and ".join(parts)
    return said + (f"; of the other {rest:,} only the results were compared" if rest else "")


def _times(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
