"""What threads do together, and where they wait: barriers of a block, and the instructions of a warp.

shfl, vote, match, ldmatrix and mma are done by a warp when the last of the lanes that take part has come. activemask
names lanes that happen to be at the same place: all of those, or only some, by lot.
"""

from __future__ import annotations

from tests.stage4_numba_cuda.machine.operands import Instruction, Known, Translation
from tests.stage4_numba_cuda.machine.ptx import PtxError

FORMS = {
    "m16n8k8.row.col.f32.tf32.tf32.f32": "tf32",
    "m16n8k16.row.col.f32.bf16.bf16.f32": "bf16",
    "m16n8k8.row.col.f32.f16.f16.f32": "f16",
}


def _bar(t: Translation, i: Instruction) -> str:
    if i.modifiers == ("sync",):
        if len(i.operands) > 1 or i.operands[0] != "0":
            raise PtxError("only a barrier of the whole block is known")
        return t.stop("MEETS_BLOCK", i.line, "t->vote = 0; ")
    if i.modifiers[0] == "red":
        if i.operands[1] != "0" or len(i.operands) > 3:
            raise PtxError("only a barrier of the whole block is known")
        given = t.value(i.operands[2].lstrip("!"), "pred")
        given = f"!{given}" if i.operands[2].startswith("!") else f"!!{given}"
        wait = t.stop("MEETS_BLOCK", i.line, f"t->vote = {given}; ")
        found = {"or": "b->votes > 0", "and": "b->votes == b->voters", "popc": "b->votes"}[i.modifiers[1]]
        return f"{wait} {t.set(i.operands[0], found, i.kind)}"
    return t.meeting("", i.line, t.value(i.operands[0], "u32"))  # bar.warp.sync


def _shfl(t: Translation, i: Instruction) -> str:
    mode = i.modifiers[1]
    target, _, valid = i.operands[0].partition("|")
    source, by, clamp = (t.value(operand, "u32") for operand in i.operands[1:4])
    keep = t.set(valid, "inside", "pred") if valid else ""
    body = (
        f"u32 before[32]; if (members != ~0u) fill_with_unknown(before); EACH before[lane] = {source}; "
        f"EACH {{ u32 clamp = {clamp}, by = {by}, inside, from = source_of_{mode}(lane, by, clamp, &inside); "
        f"{t.set(target, 'before[from]', 'b32')} {keep} }}"
    )
    return t.meeting(body, i.line, t.value(i.operands[4], "u32"))


def _vote(t: Translation, i: Instruction) -> str:
    given = f"{'!' if i.operands[1].startswith('!') else '!!'}{t.register(i.operands[1].lstrip('!'))}"
    body = f"u32 votes = 0; EACH votes |= (u32){given} << lane; "
    found = {
        "any": "votes != 0",
        "all": "votes == members",
        "uni": "votes == 0 || votes == members",
        "ballot": "votes",
    }[i.modifiers[1]]
    members = t.value(i.operands[2], "u32")
    return t.meeting(f"{body} EACH {t.set(i.operands[0], found, i.kind)}", i.line, members)


def _match(t: Translation, i: Instruction) -> str:
    """any: the lanes that have the value of this one; all: every lane that takes part if all have one value, else 0."""
    target, _, flag = i.operands[0].partition("|")
    given, members = t.value(i.operands[1], i.kind), t.value(i.operands[2], "u32")
    found = "found == members ? found : 0" if i.modifiers[0] == "all" else "found"
    sets = t.set(target, found, "b32") + (t.set(flag, "found == members", "pred") if flag else "")
    body = f"u64 values[32]; EACH values[lane] = {given}; EACH {{ u32 found = like(values, members, lane); {sets} }}"
    return t.meeting(body, i.line, members)


def _activemask(t: Translation, i: Instruction) -> str:
    return t.meeting(f"EACH {t.set(i.operands[0], 'members', 'b32')}", i.line, "0")


def _ldmatrix(t: Translation, i: Instruction) -> str:
    targets = t.elements(i.operands[0])
    if len(targets) != 4:
        raise PtxError("a vector of another length")
    # Threads 8i to 8i + 7 have the addresses of the rows of matrix i; thread 4r + c gets word c of row r of each.
    sets = " ".join(
        t.set(name, f"READ(u32, rows[{8 * n} + lane / 4], lane % 4)", "b32") for n, name in enumerate(targets)
    )
    row = t.memory("shared", i.operands[1], 16, i.line)
    return t.meeting(f"const u8 *rows[32]; EACH rows[lane] = {row}; EACH {{ {sets} }}", i.line)


def _mma(t: Translation, i: Instruction) -> str:
    form = ".".join(i.modifiers[2:])
    d, a, b, c = (t.elements(operand) for operand in i.operands)
    take = [f"left[lane][{n}] = {t.value(name, 'b32')};" for n, name in enumerate(a)]
    take += [f"right[lane][{n}] = {t.value(name, 'b32')};" for n, name in enumerate(b)]
    take += [f"sum[lane][{n}] = {t.value(name, 'f32')};" for n, name in enumerate(c)]
    give = " ".join(t.set(name, f"sum[lane][{n}]", "f32") for n, name in enumerate(d))
    body = f"u32 left[32][4], right[32][2]; float sum[32][4]; EACH {{ {' '.join(take)} }}"
    return t.meeting(f"{body} multiply_{FORMS[form]}(left, right, sum); EACH {{ {give} }}", i.line)


def _nanosleep(t: Translation, i: Instruction) -> str:
    return t.stop("YIELDS", i.line)  # "the sleep duration is approximated, but guaranteed to be in [0, 2 t]"


def _membar(t: Translation, i: Instruction) -> str:
    return ";"  # memory is seen by all in the order of the writes here


WAITING = {
    "bar": Known(_bar, "sync|red.(and|or).pred|red.popc.u32|warp.sync"),
    "barrier": Known(_bar, "sync"),
    "shfl": Known(_shfl, "sync.(up|down|bfly|idx).b32"),
    "vote": Known(_vote, "sync.(any|all|uni).pred|sync.ballot.b32"),
    "match": Known(_match, "(any|all).sync.b(32|64)"),
    "activemask": Known(_activemask, "b32"),
    "ldmatrix": Known(_ldmatrix, "sync.aligned.m8n8.x4.shared.b16"),
    "mma": Known(_mma, f"sync.aligned.({'|'.join(FORMS)})"),
    "nanosleep": Known(_nanosleep, "u32"),
    "membar": Known(_membar, "cta|gl|sys"),
    "fence": Known(_membar, "((sc|acq_rel).)?(cta|cluster|gpu|sys)"),
}
