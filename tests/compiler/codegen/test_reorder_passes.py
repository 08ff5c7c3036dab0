"""Reorder passes: each can be disabled, reports its effect, and does not change results."""

import ast
from pathlib import Path

import numpy as np
import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.codegen.compile_schedule import reorder_effects
from accel.compiler.codegen.interleave_epilogues import InterleaveEpilogues
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.codegen.reorder_passes import (
    PASS_NAMES,
    REORDER_PASSES,
    PassEffect,
    checked_pass_names,
    compare_orders,
    reorder,
)
from accel.compiler.target.emitter_registry import Emitted
from accel.core.isa import Gemm
from accel.image.program_source import Options
from accel.run.stage_listing import stage_text
from tests.compiler.convs import any_inputs, expected
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right
from tests.expect import refused

CODEGEN = Path(__file__).parents[3] / "compiler" / "codegen"


def layer(**options: object) -> accel.Workload:
    """A convolution that each pass of a machine changes."""
    return accel.conv2d(1, 40, 14, 14, 40, 3, padding=1, bias=True, shift=7, **options)  # type: ignore[arg-type]


def test_every_pass_is_listed_and_explained() -> None:
    """Each pass is one class in one file. Its docstring lists instructions before and after."""
    listed = {type(one.reorder) for one in REORDER_PASSES}
    assert listed == set(ReorderPass.__subclasses__())
    assert len(set(PASS_NAMES)) == len(REORDER_PASSES)
    for kind in listed:
        path = CODEGEN / f"{kind.__module__.rpartition('.')[2]}.py"
        assert path.stem == kind.name.replace("-", "_")
        text = ast.get_docstring(ast.parse(path.read_text()))
        assert text is not None
        assert "before" in text
        assert "after" in text
        assert kind.reason.endswith(".")
        assert kind.reason.count(". ") == 0


@pytest.mark.parametrize("config", ["vta", "vta-int8"])
@pytest.mark.parametrize("name", PASS_NAMES)
def test_each_pass_can_be_disabled(config: str, name: str) -> None:
    workload = layer(residual=True)
    program = as_it_is(workload, config, without=[name])
    inputs = any_inputs(workload, seed=1)
    program_is_right(program, inputs, expected(workload, inputs))
    effects = {one.name: one for one in reorder_effects(program.schedule(), program.config, without=[name])}
    applies = next(one for one in REORDER_PASSES if one.reorder.name == name).applies_to(program.config)
    assert (effects[name].state == "off") == applies


@pytest.mark.parametrize("config", ["tiny", "tiny-int8"])
def test_all_passes_can_be_disabled(config: str) -> None:
    workload = layer(residual=True)
    program = as_it_is(workload, config, without=PASS_NAMES)
    inputs = any_inputs(workload, seed=1)
    program_is_right(program, inputs, expected(workload, inputs))


def test_a_program_remembers_them_and_compiles_to_the_same_again(tmp_path: Path) -> None:
    names = ("interleave-epilogues", "delay-first-loads")
    program = as_it_is(layer(), "vta", without=names[::-1])
    assert program.passes_off == names
    program.save(tmp_path / "p.accel")
    loaded = accel.Program.load(tmp_path / "p.accel")
    assert loaded.passes_off == names
    again = accel.build(loaded.schedule(), loaded.config, without=loaded.passes_off)
    assert again.code == program.code
    assert accel.build(loaded.schedule(), loaded.config).code != program.code
    lines = stage_text(loaded, "passes").splitlines()
    assert lines[0].split() == ["interleave-epilogues", "off"]
    assert lines[1].strip() == InterleaveEpilogues.reason


def test_no_entry_is_saved_if_no_pass_is_disabled() -> None:
    """So programs with all passes keep their file format."""
    assert "without" not in Options(fold=True).to_data()
    options = Options(workload="gemm", without=("write-padding-once",))
    assert options.to_data() == {"workload": "gemm", "without": ["write-padding-once"]}
    assert Options.from_data(options.to_data()) == options


def test_biases_beyond_folding_are_compiled_without_the_same_passes() -> None:
    """Such biases use a second program, which is compiled when it runs."""
    workload = accel.gemm(16, 16, 16, bias=True, shift=4)
    program = as_it_is(workload, "vta", without=["interleave-epilogues"])
    bias = np.full(workload.bias.shape if workload.bias is not None else (), 2**31 - 1, np.int32)
    other = program.for_values(program.random_inputs(0) | {"bias": bias})
    assert other is not program
    assert other.passes_off == ("interleave-epilogues",)


@pytest.mark.parametrize("token_bits", [1, 2])
def test_all_are_off_if_their_tokens_do_not_fit_the_counters(token_bits: int) -> None:
    """With 8 bits the same program has waiting tokens of several pieces."""
    workload = accel.gemm(30, 30, 30, shift=3)
    assert max(accel.build(workload, "tiny").check().peak) > 3
    program = accel.build(workload, accel.machine("tiny", token_bits=token_bits))
    assert program.source is not None
    assert program.source.options.without == PASS_NAMES
    assert program.run(program.random_inputs()).mismatches == 0


def test_unknown_names_are_refused() -> None:
    message = "the reorder pass is 'prefetch-residual'; did you mean 'prefetch-residuals'?"
    with refused(ScheduleError, message):
        accel.build(accel.gemm(8, 8, 8), "tiny", without=["prefetch-residual"])
    message = "without is 'prefetch-residuals'; it must be a list of names of reorder passes"
    with refused(ScheduleError, message):
        accel.build(accel.gemm(8, 8, 8), "tiny", without="prefetch-residuals")
    assert checked_pass_names(PASS_NAMES[::-1]) == PASS_NAMES


def test_effects_are_counted() -> None:
    a, b, c, d = (Emitted(Gemm(iter_out=n)) for n in range(1, 5))
    assert compare_orders([a, b, c], [a, b, c]) == (0, 0, 0)
    assert compare_orders([a, b, c], [c, a, b]) == (1, 0, 0)
    assert compare_orders([a, b, c], [c, b, a]) == (2, 0, 0)
    assert compare_orders([a, a, b, b], [b, a, b, a]) == (2, 0, 0)
    assert compare_orders([a, b], [a, c, d]) == (0, 1, 2)


def test_effects_are_reported() -> None:
    def text(**values: int) -> str:
        return str(PassEffect(name="n", reason="r", state="ran", **values))

    assert text() == "ran: changed nothing"
    assert text(moved=1200, removed=4, added=16) == "ran: moved 1,200, replaced 4 by 16"
    assert text(waits=1) == "ran: delayed 1"
    assert str(PassEffect(name="n", reason="r", state="needs post=1")) == "needs post=1"


def test_passes_for_other_machines_do_not_run() -> None:
    config = accel.machine("vta").config
    program = EmittedProgram(emitted=[Emitted(Gemm())], config=config)
    assert list(reorder(program).emitted) == list(program.emitted)
    states = {one.name: one.state for one in reorder_effects(as_it_is(layer(), "vta").schedule(), config)}
    assert states["prefetch-residuals"] == "needs post=1"
    assert states["interleave-epilogues"] == "ran"
