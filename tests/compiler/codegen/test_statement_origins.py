"""Provenance of instructions: statement, stage, schedule step and tensors."""

from collections import Counter

import pytest

import accel
from accel.core.isa import Alu, Finish, Gemm, Load, Memory, Store
from accel.image.provenance import Provenance, Statement
from accel.run.stage_listing import stage_text
from tests.compiler import gemms
from tests.compiler.running import as_it_is
from tests.thorough import diagonal

KINDS = {
    "load": Load,
    "store": Store,
    "intrinsic": Gemm,
    "alu": Alu,
    "clear": Gemm,
    "micro-ops": Load,
    "tokens": Gemm,
    "finish": Finish,
}
WORKLOADS = {
    "gemm": accel.gemm(40, 24, 20, bias=True, relu=True, shift=5, residual=True),
    "sums": accel.gemm(9, 17, 33),
    "conv2d": accel.conv2d(1, 16, 9, 9, 16, 3, padding=1, bias=True, shift=4),
    "depthwise": accel.conv2d(1, 8, 7, 7, 8, 3, padding=1, groups=8, shift=4),
    "pool": accel.max_pool2d(1, 8, 9, 9, 3, stride=2),
    "mean": accel.avg_pool2d(1, 8, 8, 8, 2),
}


def provenance(program: accel.Program) -> Provenance:
    assert program.provenance is not None
    return program.provenance


def statements(program: accel.Program) -> dict[tuple[str, str], Statement]:
    """Statements by kind and stage; the first one of several."""
    found: dict[tuple[str, str], Statement] = {}
    for one in provenance(program).statements:
        found.setdefault((one.kind, one.stage), one)
    return found


@pytest.mark.parametrize(("name", "config"), diagonal(WORKLOADS, ["tiny", "gemm8x8"]))
def test_every_instruction_has_a_provenance(name: str, config: str) -> None:
    program = as_it_is(WORKLOADS[name], config)
    stages = {stage.name for stage in program.schedule().stages}
    tensors = {t.name for t in program.tensors} | stages
    printed = stage_text(program, "threads")
    assert program.references is not None
    for index, one in enumerate(program.instructions):
        statement = provenance(program)[index]
        zeroed = isinstance(one, Gemm) and one.reset and statement.kind == "alu"
        assert type(one) is KINDS[statement.kind] or zeroed
        if statement.kind in ("micro-ops", "tokens", "finish"):
            assert (statement.stage, statement.step, statement.text) == ("", None, "")
            continue
        assert statement.text in printed
        assert statement.stage in stages
        assert statement.step is not None
        step = program.schedule().steps[statement.step]
        assert statement.stage in (step.get("stage"), step.get("name"), step.get("tensor"))
        assert {statement.tensor, *statement.reads} <= tensors
        part = program.references.part(index)
        if statement.kind in ("load", "store") and part is not None:
            assert part.name.startswith(statement.tensor)
        else:
            assert part is None or statement.kind in ("load", "store")


def test_the_statements_of_a_product() -> None:
    found = statements(as_it_is(WORKLOADS["gemm"], "tiny"))
    steps = as_it_is(WORKLOADS["gemm"], "tiny").schedule().steps
    multiply = found["intrinsic", "S"]
    assert (multiply.tensor, multiply.reads) == ("C", ("A", "B"))
    assert multiply.step is not None
    assert (steps[multiply.step]["op"], steps[multiply.step]["stage"]) == ("tensorize", "S")
    assert multiply.text.startswith("vdla.fused_gemm1x4x8_add(S[")
    assert {"yo", "ym", "xm"} <= {*multiply.loops}
    load = found["load", "AL"]
    assert (load.tensor, load.reads) == ("A", ())
    assert load.step is not None
    assert steps[load.step] | {"op": "cache_read", "name": "AL"} == steps[load.step]
    store = found["store", "C"]
    assert store.step is not None
    assert (store.tensor, steps[store.step]["op"]) == ("C", "cache_write")
    assert found["clear", "S"].tensor == "C"
    program = as_it_is(WORKLOADS["gemm"], "tiny")
    alu = [one for one in provenance(program).statements if one.kind == "alu"]
    assert Counter(one.reads for one in alu) == {(): 3, ("bias",): 1, ("residual",): 1}
    assert {(one.stage, one.tensor) for one in alu} == {("CL", "C")}


def test_a_carrier_has_a_provenance() -> None:
    """An instruction between the STORE of the first product and the LOAD of its result
    carries tokens."""
    m = accel.machine("gemm8x8")
    program = as_it_is(gemms.two_stages(m, 8, 12, 40, 24, early=True), m)
    kinds = Counter(provenance(program)[n].kind for n in range(len(program.instructions)))
    assert kinds["tokens"] == 1
    assert program.references is not None
    local = {part.name for part in program.references.parts} - {t.name for t in program.tensors}
    (between,) = local - {"micro_ops", "code"}
    moved = [one for one in provenance(program).statements if one.tensor == between]
    assert {one.kind for one in moved} >= {"load", "store"}


def test_maxima_read_the_loaded_data() -> None:
    """Maxima are computed in place, so the buffer is both written and read."""
    program = as_it_is(WORKLOADS["pool"], "tiny")
    found = [one for one in provenance(program).statements if one.kind == "alu"]
    assert found
    assert {(one.tensor, one.reads) for one in found} == {
        ("dataL", ("data",)),
        ("out", ()),
        ("out", ("data",)),
    }


def test_weights_that_the_host_widens_keep_their_name() -> None:
    load = statements(as_it_is(WORKLOADS["depthwise"], "tiny"))["load", "weight_wideL"]
    assert (load.tensor, load.reads) == ("weight", ())


def test_micro_ops_that_are_loaded_again() -> None:
    small = accel.machine("tiny").config.override({"uop_bytes": 16})
    program = as_it_is(accel.gemm(64, 64, 64, bias=True, shift=3), small)
    uops = [isinstance(one, Load) and one.memory == Memory.UOP for one in program.instructions]
    loads = [n for n, one in enumerate(uops) if one]
    assert len(loads) > 1
    assert {provenance(program)[n].kind for n in loads} == {"micro-ops"}
    assert provenance(program)[len(program.instructions) - 1] == Statement(kind="finish")
