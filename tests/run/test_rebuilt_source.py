"""The source of a program, rebuilt from its file, and programs that have none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import AccelError, ProgramError
from accel.base.records import replace
from accel.core.isa import Load, Memory
from accel.image.program_source import Source
from accel.run.program import Program
from accel.run.stage_listing import STAGES, stage_text
from tests.expect import refused
from tests.programs import gemm_program, handmade


@pytest.fixture(params=["by hand", "stripped", "stripped of its expression"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """Programs without a record of their source, saved and loaded."""
    program = {
        "by hand": lambda: handmade(
            Load(memory=Memory.INP, y_size=1, x_size=1, x_stride=1), tensors=gemm_program().tensors
        ),
        "stripped": lambda: replace(gemm_program(), source=None),
        "stripped of its expression": lambda: replace(gemm_program(), source=Source(schedule=[])),
    }[request.param]()
    program.save(tmp_path / "bare")
    return Program.load(tmp_path / "bare")


def test_programs_without_source_run_and_can_be_checked(bare: Program) -> None:
    """It runs on arbitrary inputs, and can be checked and disassembled."""
    result = bare.run()
    assert (result.mismatches, result.to_dict()["macs"], result.utilization) == (None, None, None)
    assert result.outputs["C"].shape == (3, 9)
    assert bare.check().ok
    assert stage_text(bare, "asm").splitlines()[-1].split()[1] == "FINISH"
    assert stage_text(bare, "streams").splitlines()[-1].endswith("# FINISH")
    drawn = bare.random_inputs(seed=1)
    assert (drawn["A"].dtype, drawn["A"].shape) == (np.int8, (3, 5))
    assert len(np.unique(drawn["B"])) > 30
    np.testing.assert_array_equal(drawn["B"], bare.random_inputs(seed=1)["B"])


def test_programs_without_source_refuse_other_uses(bare: Program) -> None:
    can = "it can be run, checked, disassembled, and shown at the stages streams and asm"
    for stage in ("nest", "scheduled", "tensorized", "folded", "threads"):
        with refused(ProgramError, f"the program holds no tensor expression; {can}"):
            stage_text(bare, stage)
    with refused(ProgramError, f"the program holds no tensor expression; {can}"):
        bare.reference({})


def test_a_program_without_a_schedule_says_so() -> None:
    source = gemm_program().source
    assert source is not None
    program = replace(gemm_program(), source=Source(expression=source.expression))
    assert program.run().mismatches == 0
    assert stage_text(program, "nest").startswith("for y in range(3):")
    with pytest.raises(ProgramError, match=r"^the program holds no schedule; it can be run, checked,"):
        stage_text(program, "scheduled")


def test_stages_by_name() -> None:
    assert list(STAGES) == [
        "nest",
        "scheduled",
        "tensorized",
        "folded",
        "threads",
        "passes",
        "streams",
        "asm",
    ]
    with refused(AccelError, "the stage is 'tensorised'; did you mean 'tensorized'?"):
        stage_text(gemm_program(), "tensorised")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"M": 4}, "it has no input A of int8[3, 5], as the program has"),
        ({"N": 10}, "it has no input B of int8[5, 9], as the program has"),
        ({"bias": True}, None),
    ],
)
def test_the_expression_must_be_the_programs(options: dict[str, Any], message: str | None) -> None:
    other = accel.build(accel.gemm(**({"M": 3, "N": 9, "K": 5} | options)), "tiny")
    program = replace(gemm_program(), source=other.source)
    if message is None:
        assert program.run().mismatches  # one more input: it is random, and the program does not add it
        return
    with refused(ProgramError, f"the tensor expression is damaged: {message}"):
        program.run()


def test_a_program_that_computes_something_else_is_caught() -> None:
    program = replace(gemm_program(20, 20, 20, shift=3), source=gemm_program(20, 20, 20, shift=4).source)
    result = program.run()
    assert result.mismatches
    np.testing.assert_equal(
        result.mismatches,
        (result.outputs["C"] != program.reference(program.random_inputs())["C"]).sum(),
    )
    assert program.run(check=False).mismatches is None
