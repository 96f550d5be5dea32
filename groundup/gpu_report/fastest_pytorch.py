"""The part of the GPU report about PyTorch at its fastest, which is asked for by name (--only fastest_pytorch).

The steps of `steps` with data on the GPU, and those of `networks` at one batch, once more beside three ways of PyTorch:
a CUDA graph as in those parts, the same with the fused optimizer, and with forward and backward compiled by
torch.compile besides. Of convolutional networks each in either layout. Compiling takes a minute or two the first time;
what PyTorch has compiled is kept on its disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from groundup.gpu_report.networks import STEP_BATCHES, beside_pytorch
from shared.architectures import NAMED
from shared.bench.kinds.steps import Case, model_cases, step_rows
from shared.bench.measuring import gpu
from shared.bench.on_gpu import gpu_plan
from shared.bench.on_gpu.gpu_plan import NO_GPU, Found, GpuPlan, LeftOut, attempted
from shared.bench.on_gpu.resident_steps import resident_rows
from shared.bench.peers.pytorch_device import FASTEST_DENSE_WAYS, FASTEST_MODEL_WAYS
from shared.contract import STAGES, Stage, load_stage


def fastest_pytorch(plan: GpuPlan) -> Iterator[Found | LeftOut]:
    """A row for each network, batch and contender."""
    stage = load_stage(STAGES[3])
    if not gpu.on_gpu(stage) or gpu.cuda_torch() is None:
        yield LeftOut("PyTorch", NO_GPU if not gpu.on_gpu(stage) else "it is not installed, or sees no GPU")
        return
    dense = [Case(sizes, batch, "float32") for sizes in gpu_plan.NETWORKS for batch in gpu_plan.BATCHES]
    models = list(NAMED)
    if plan.quick:
        dense, models = dense[:1], models[:1]
    left = len(dense) + len(models)
    for case in dense:
        yield from attempted(case.name, partial(_dense, stage, case, plan, left))
        left -= 1
    for model in models:
        yield from attempted(model, partial(_model, stage, model, plan, left))
        left -= 1


def _dense(stage: Stage, case: Case, plan: GpuPlan, left: int) -> Iterator[Found | LeftOut]:
    effort = replace(plan.effort(left, 11), minimum_sample=0.02)
    rows = resident_rows([stage], cases=[case], effort=effort, ways=FASTEST_DENSE_WAYS)
    yield from gpu_plan.beside_pytorch(list(rows))


def _model(stage: Stage, model: str, plan: GpuPlan, left: int) -> Iterator[Found | LeftOut]:
    cases = model_cases(model, STEP_BATCHES[:1])
    rows = step_rows([stage], cases=cases, effort=plan.effort(left, 11), ways=FASTEST_MODEL_WAYS)
    yield from beside_pytorch(list(rows), model)


PARTS = {"fastest_pytorch": fastest_pytorch}
