"""Epilogues: their number of passes over the accumulators."""

import numpy as np
import pytest
from hypothesis import given

import accel
from accel import te
from accel.base.errors import ScheduleError, ShapeError
from accel.base.records import replace
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.plans.gemm_planner import GEMM_PLANNER
from accel.compiler.schedule.schedule_steps import apply_steps
from accel.core.isa import Alu, Gemm, Load, Loops, Memory
from tests.compiler.convs import epilogues
from tests.compiler.running import as_it_is
from tests.expect import refused
from tests.strategies import examples


@examples(60)
@given(epilogues)
def test_passes_are_what_the_compiler_emits(options: dict[str, object]) -> None:
    """This layer has one tile. Clearing the accumulators once for all tiles is not a pass."""
    program = as_it_is(accel.conv2d(1, 16, 4, 4, 16, 1, **options), "vta", vthreads=1)  # type: ignore[arg-type]
    passes = sum(
        i.uop_count
        for i in program.instructions
        if isinstance(i, Loops) and (isinstance(i, Alu) or (isinstance(i, Gemm) and i.reset))
    )
    epilogue = Epilogue(**options)  # type: ignore[arg-type]
    cleared = 16 if epilogue.folds(16) else 0
    assert passes - cleared <= 16 * epilogue.passes(16)
    merged = options["shift"] is None and options["clip"] in ((-128, 127), None) and not options["relu"]
    assert merged or passes - cleared >= 16 * (epilogue.passes(16) - 1)


@pytest.mark.parametrize("options", [{}, {"relu": True}, {"bias": True}, {"bias": True, "clip": (-3, 90)}])
@pytest.mark.parametrize("m", [8, 13])
def test_a_residual_that_the_gemm_core_adds(options: dict[str, object], m: int) -> None:
    """The last blocks of channels and rows are partly filled. The number of passes is that of the ALU's
    addition."""
    workload = accel.gemm(m, 20, 24, residual=True, shift=5, **options)  # type: ignore[arg-type]
    machine = accel.machine("gemm8x8")
    plan = find_candidates(workload, machine.config)[0].plan
    found = []
    for product in (True, False):
        chosen = replace(plan, residual_product=product)
        program = accel.build(GEMM_PLANNER.schedule(workload, machine, chosen), machine)
        result = program.run(seed=3)
        assert result.mismatches == 0
        loads = [one for one in program.instructions if isinstance(one, Load)]
        assert any(one.memory == Memory.ACC_8BIT for one in loads) is not product
        slots = sum(one.uop_count for one in program.instructions if isinstance(one, Loops))
        found.append((result.outputs["C"], slots))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_tensors_that_are_no_residual() -> None:
    workload = accel.gemm(8, 16, 8, residual=True, shift=5, bias=True)
    m = accel.machine("gemm8x8")
    s = te.create_schedule(workload.output)
    sums = s["C"]
    value = "int8(min(max((S[y][x] + bias[x] >> 5) + residual[y][x], -128), 127))"
    with refused(ScheduleError, f"C is {value}; it does not add bias to requantized sums"):
        sums.add_product("bias", sums.axis[1], 8)
    with refused(ScheduleError, "the identity matrix for C has 0 rows; it has at least 1"):
        sums.add_product("residual", sums.axis[1], 0)
    sums.add_product("residual", sums.axis[1], 8)
    again = value.replace("x], -", "x] * identity[x%8][x%8], -")
    with refused(ScheduleError, f"C is {again}; it does not add residual to requantized sums"):
        sums.add_product("residual", sums.axis[1], 8)
    other = te.create_schedule(workload.output)
    apply_steps(other, s.steps, m.intrinsic, m.scope)
    assert other.steps == s.steps


def test_of_the_networks_layers() -> None:
    assert Epilogue(bias=True, shift=8, relu=True).passes(576) == 4
    assert Epilogue(bias=True, shift=8, clip=(0, 127)).passes(4608) == 4
    assert Epilogue(bias=True, residual=True, shift=8, relu=True).passes(576) == 5
    assert Epilogue(residual=True).passes(576) == 4
    assert Epilogue(shift=8).passes(576) == 4
    assert Epilogue(bias=True).passes(576) == 2
    assert Epilogue().passes(576) == 1
    assert Epilogue().is_empty


@pytest.mark.parametrize("shift", [-1, 32, True, 1.0])
def test_bad_shifts(shift: object) -> None:
    with refused(ShapeError, f"shift is {shift!r}; it must be in 0..31"):
        Epilogue(shift=shift)  # type: ignore[arg-type]


@pytest.mark.parametrize("clip", [(1, 0), (-129, 0), (0, 128), (0,), (0, 1, 2), (False, 3)])
def test_bad_bounds(clip: tuple[int, ...]) -> None:
    with refused(ShapeError, f"clip is {clip}; it must be two ascending integers in -128..127"):
        Epilogue(clip=clip)  # type: ignore[arg-type]
