"""Declared operations in the epilogues of operators: results, passes, predictions and refusals."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ConfigError, ScheduleError, ShapeError, TensorizeError
from accel.base.records import replace
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.compiler.operators.operator_registry import make_workload
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.epilogue_operations import EpilogueOperation, epilogue_operations
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_space import fitting_plans
from accel.compiler.plans.gemm_model import gemm_shape
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_planner import GEMM_PLANNER
from accel.core.config import NAMED, Config
from accel.core.isa import Alu, Loops
from accel.core.timing_rules import busy_slots
from accel.run.lockstep import lockstep
from accel.run.tuning_records import record_key
from tests.compiler.convs import (
    any_inputs,
    convolutions,
    epilogue,
    epilogues,
    expected,
    layer_is_right,
    operations,
    transposed,
)
from tests.compiler.running import as_it_is, mapped_and_loaded
from tests.compiler.verdicts import program_is_right
from tests.expect import refused
from tests.lockstep.builds import built, group
from tests.own_operations import ELEMENTWISE, MACHINE, OWN
from tests.strategies import examples
from tests.thorough import also, diagonal

ALU_OPS = "+" + ",".join(one.name for one in ELEMENTWISE)
MACHINES = ("tiny", "vta", "gemm8x8", "tiny-int8", "gemm8x8-npu")
GAP, PRODUCT = OWN[:2]


# --- results -----------------------------------------------------------------------------------------


@examples(60)
@given(st.data())
def test_any_convolution_with_operations(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(MACHINES)), alu_ops=ALU_OPS)
    workload = data.draw(convolutions(machine.config, 2, operations=operations))
    build = data.draw(st.sampled_from((as_it_is, accel.build)))
    layer_is_right(build(workload, machine), workload, data.draw(st.integers(0, 99)))


@examples(30)
@given(st.data())
def test_any_transposed_convolution_with_operations(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(MACHINES)), alu_ops=ALU_OPS)
    workload = data.draw(transposed(machine.config, operations=operations))
    layer_is_right(accel.build(workload, machine), workload, data.draw(st.integers(0, 99)))


@examples(40)
@given(st.data())
def test_any_convolution_with_operations_on_machines_with_little_memory(data: st.DataObject) -> None:
    """Tiles of few accumulators share them with the operands of their channels."""
    config = Config(
        name="small",
        batch=data.draw(st.sampled_from([1, 2])),
        block_in=2,
        block_out=data.draw(st.sampled_from([2, 4])),
        uop_bytes=128,
        inp_bytes=256,
        wgt_bytes=512,
        acc_bytes=512,
    ).override({"alu_ops": ALU_OPS})
    workload = data.draw(convolutions(config, 6, operations=operations))
    if len(fitting_plans(conv_shape(workload, config), config, 1).rows):
        layer_is_right(as_it_is(workload, accel.machine(config)), workload)
        return
    message = "not even the smallest tiles of this convolution fit configuration 'small'; they need "
    with pytest.raises(ScheduleError, match=message):
        as_it_is(workload, accel.machine(config))


@examples(60)
@given(st.data())
def test_any_product_with_operations(data: st.DataObject) -> None:
    """On machines whose blocks have several rows, too. The simulator's timing runs, too."""
    name, batch = data.draw(st.sampled_from([(name, 1) for name in MACHINES] + [("tiny", 2), ("vta", 4)]))
    machine = (
        accel.machine(name, batch=batch, alu_ops=ALU_OPS)
        if batch > 1
        else accel.machine(name, alu_ops=ALU_OPS)
    )
    M, N, K = (data.draw(st.integers(1, 30)) for _ in range(3))
    workload = accel.gemm(M, N, K, operations=data.draw(operations), **data.draw(epilogues))
    inputs = any_inputs(workload, data.draw(st.integers(0, 99)))
    result = accel.build(workload, machine).run(inputs)
    assert result.mismatches == 0
    sums = inputs["A"].astype(np.int64) @ inputs["B"].astype(np.int64)
    want = epilogue(sums, inputs.get("bias"), workload.parameters, inputs.get("residual"), inputs)
    np.testing.assert_array_equal(result.outputs["C"], want)


@pytest.mark.xdist_group(group(MACHINE))
def test_every_operation_on_the_rtl() -> None:
    """One program has them all, also those with stages, whose micro-ops take several cycles."""
    machine = accel.machine(MACHINE)
    steps = [(one, operand) for one in ELEMENTWISE for operand in (77, "channel")]
    workload = accel.gemm(3, 11, 5, bias=True, operations=steps, shift=1)
    program = accel.build(workload, machine)
    assert program.check().ok
    assert program.run(seed=1).mismatches == 0
    assert lockstep(program, built(MACHINE)).difference is None


@pytest.mark.parametrize("name", ["gemm8x8", also("gemm8x8-npu")])
def test_a_residual_after_operations_that_the_gemm_core_adds(name: str) -> None:
    machine = accel.machine(name, alu_ops=ALU_OPS)
    steps = [("t_product", "channel"), ("t_gap", 3)]
    workload = accel.gemm(13, 20, 24, residual=True, bias=True, shift=2, operations=steps)
    plan = find_candidates(workload, machine.config)[0].plan
    inputs = any_inputs(workload, 4)
    sums = inputs["A"].astype(np.int64) @ inputs["B"].astype(np.int64)
    want = epilogue(sums, inputs["bias"], workload.parameters, inputs["residual"], inputs)
    for product in (True, False):
        chosen = replace(plan, residual_product=product)
        program = accel.build(GEMM_PLANNER.schedule(workload, machine, chosen), machine)
        program_is_right(program, inputs, want)


@pytest.mark.parametrize("mapping", ["strips=2x1", "blocks=2x2"])
def test_mappings_repeat_the_operands(mapping: str, tmp_path: Path) -> None:
    """With blocks of pixels that become channels, each channel stands several times."""
    steps = [("max", "channel"), ("min", 900), ("add", "channel")]
    workload = accel.conv2d(1, 3, 8, 8, 5, 3, padding=1, bias=True, shift=4, operations=steps)
    mapped_and_loaded(workload, "vta", mapping, tmp_path / "p.accel")


def test_batches_and_channels_of_every_operator() -> None:
    """The operand is laid out along the output's channels."""
    machine = accel.machine("tiny", alu_ops=ALU_OPS)
    step = {"operations": [(GAP, "channel")]}
    for workload, channels in (
        (accel.gemm(5, 12, 7, **step), 12),
        (accel.dense(3, 7, 12, **step), 12),
        (accel.conv2d(2, 6, 5, 5, 6, 3, groups=6, **step), 6),
        (accel.conv2d_transpose(2, 3, 4, 4, 5, 2, stride=2, **step), 5),
    ):
        (operand,) = workload.operands
        assert (operand.name, operand.shape, operand.dtype) == ("operand0", (channels,), "int32")
        assert accel.build(workload, machine).run(seed=2).mismatches == 0


def test_constant_operands() -> None:
    workload = accel.conv2d(1, 4, 6, 6, 9, 3, shift=5, operations=[("add", "channel"), ("max", "channel")])
    inputs = any_inputs(workload, 3)
    constants = {name: inputs.pop(name) for name in ("weight", "operand0", "operand1")}
    program = as_it_is(workload, "tiny", constants=constants)
    assert [t.name for t in program.tensors if t.role == "input"] == ["data"]
    program_is_right(program, inputs, expected(workload, inputs | constants))


# --- programs, files and keys ------------------------------------------------------------------------


def test_a_program_file_has_the_operations(tmp_path: Path) -> None:
    machine = accel.machine("tiny", alu_ops="+t_gap,t_product")
    workload = accel.gemm(9, 20, 7, bias=True, operations=[(GAP, 7), (PRODUCT, "channel")])
    program = accel.build(workload, machine)
    program.save(tmp_path / "p.accel")
    loaded = accel.Program.load(tmp_path / "p.accel")
    assert loaded == program
    inputs = any_inputs(workload, 5)
    for one in (program, loaded):
        result = one.run(inputs)
        assert result.mismatches == 0
        sums = inputs["A"].astype(np.int64) @ inputs["B"].astype(np.int64)
        want = epilogue(sums, inputs["bias"], workload.parameters, None, inputs)
        np.testing.assert_array_equal(result.outputs["C"], want)
    assert accel.build(loaded.schedule(), machine).code == program.code


def test_parameters_make_the_same_workload() -> None:
    for operator, sizes in (("gemm", {"m": 4, "n": 8, "k": 4}), ("dense", {"n": 2, "ic": 3, "oc": 4})):
        workload = make_workload(operator, sizes | {"operations": [(GAP, 7), ("mul", "channel")]})
        assert workload.parameters["operations"] == ["t_gap=7", "mul=channel"]
        assert make_workload(operator, workload.parameters) == workload
        assert make_workload(operator, sizes | {"operations": "t_gap=7, mul=channel"}) == workload
        assert make_workload(operator, sizes | {"operation": ["t_gap=7", "mul=channel"]}) == workload
        assert "operations" not in make_workload(operator, sizes).parameters


def test_operations_are_part_of_the_keys_of_tuning_records() -> None:
    config = accel.machine("tiny", alu_ops=ALU_OPS).config
    keys = {
        record_key("gemm", [accel.gemm(4, 8, 4, shift=3, operations=one).output], config).workload
        for one in (
            (),
            "t_gap=7",
            "t_gap=8",
            "t_nor=7",
            "t_gap=channel",
            "t_gap=7,t_nor=7",
            "t_nor=7,t_gap=7",
        )
    }
    assert len(keys) == 7


# --- passes and predictions --------------------------------------------------------------------------


@examples(40)
@given(epilogues, operations)
def test_passes_are_what_the_compiler_emits(options: dict[str, Any], steps: list[tuple[str, Any]]) -> None:
    machine = accel.machine("tiny", alu_ops=ALU_OPS)
    workload = accel.conv2d(1, 4, 4, 4, 8, 1, operations=steps, **options)
    program = as_it_is(workload, machine, vthreads=1)
    emitted = sum(one.uop_count for one in program.instructions if isinstance(one, Alu))
    whole = Epilogue(operations=epilogue_operations(steps), **options)
    assert emitted == 16 * len(whole.alu_operations())
    assert whole.is_empty == (emitted == 0)


STEPS: list[dict[str, Any]] = [
    {"operations": "t_gap=7"},
    {"operations": "t_product=16384", "shift": 3},
    {"operations": "t_product=channel,t_gap=channel", "shift": 3, "bias": True},
    {"operations": "mul=3,t_product=channel", "shift": 3, "residual": True, "relu": True},
]


@pytest.mark.parametrize(
    ("name", "options"), diagonal(("vta", "tiny-int8", "gemm8x8", "tiny"), STEPS), ids=str
)
def test_slots_are_exact(name: str, options: dict[str, Any]) -> None:
    """A micro-op of an operation with stages takes several slots."""
    machine = accel.machine(name, alu_ops=ALU_OPS, mul_slots=2)
    workload = accel.gemm(96, 80, 64, **options)
    for candidate in find_candidates(workload, machine.config)[::25]:
        schedule = GEMM_PLANNER.schedule(workload, machine, candidate.plan)
        program = accel.build(schedule, machine)
        executed = sum(
            busy_slots(one, machine.config) for one in program.instructions if isinstance(one, Loops)
        )
        assert candidate.prediction.compute == executed


@pytest.mark.parametrize("name", ["vta", "tiny", also("gemm8x8"), also("vta-int8")])
@pytest.mark.parametrize("options", STEPS, ids=str)
@pytest.mark.parametrize("operator", ["gemm", "conv2d"])
def test_predictions_are_close(name: str, options: dict[str, Any], operator: str) -> None:
    """Each further operand per channel is a LOAD of its own."""
    machine = accel.machine(name, alu_ops=ALU_OPS)
    scale = machine.config.block_out // 2
    workload = (
        accel.gemm(16 * scale, 16 * scale, 16 * scale, **options)
        if operator == "gemm"
        else accel.conv2d(1, 4 * scale, 12, 12, 8 * scale, 3, padding=1, **options)
    )
    best = find_candidates(workload, machine.config)[0]
    schedule = planner_of(workload).schedule(workload, machine, best.plan)
    taken = accel.build(schedule, machine).run(check=False).cycles
    assert best.prediction.cycles == pytest.approx(taken, rel=0.05)


@pytest.mark.parametrize("outer", ["rows", "columns"])
def test_loads_of_operands_at_the_start_are_predicted(outer: Literal["rows", "columns"]) -> None:
    """With rows outermost, the operands of all columns are loaded first, each after the one before."""
    machine = accel.machine("tiny", alu_ops=ALU_OPS, read_latency=1000)
    plan = GemmPlan(rows=16, columns=2, depth=2, threads=2, thread_axis="depth", outer=outer)
    found = []
    for steps in ("add=channel", "add=channel,max=channel,add=channel,max=channel"):
        workload = accel.gemm(32, 32, 64, operations=steps, shift=3)
        predicted = GEMM_PLANNER.predict(gemm_shape(workload, machine.config), machine.config, plan)
        schedule = GEMM_PLANNER.schedule(workload, machine, plan)
        found.append((predicted.cycles, accel.build(schedule, machine).run(check=False).cycles))
    more = [after - before for before, after in zip(*found, strict=True)]
    assert more[1] > 3 * 1000
    assert more[0] == pytest.approx(more[1], rel=0.1)


@pytest.mark.parametrize("outer", ["rows", "columns"])
def test_operands_share_the_accumulators_with_tiles(outer: Literal["rows", "columns"]) -> None:
    """The largest tile that fits compiles, and the next larger one does not."""
    machine = accel.machine("tiny", alu_ops=ALU_OPS, acc_bytes=1024)
    workload = accel.gemm(64, 64, 16, operations="add=channel,max=channel,mul=channel", shift=3)
    shape = gemm_shape(workload, machine.config)
    verdicts = []
    for rows in range(1, 35):
        plan = GemmPlan(rows=rows, columns=1, depth=1, threads=1, thread_axis="rows", outer=outer)
        fits = GEMM_PLANNER.fits(shape, machine.config, plan)
        try:
            accel.build(GEMM_PLANNER.schedule(workload, machine, plan), machine)
        except ScheduleError:
            verdicts.append((fits, False))
        else:
            verdicts.append((fits, True))
    assert all(fits == compiles for fits, compiles in verdicts)
    assert len(set(verdicts)) == 2


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("max", 1 << 15)], "the operand of max is 32768; it must be in -32768..32767"),
        ([("max", True)], "the operand of max is True; it must be in -32768..32767"),
        ([("max", 1.5)], "the operand of max is 1.5; it must be in -32768..32767"),
        (
            [("max", "rows")],
            "the operand of max is 'rows'; it must be a number, or 'channel' for one value per channel",
        ),
        (
            [("t_sum", 7)],
            "operation 't_sum' crosses the lanes of an element; a tensor expression has no lanes: declare an "
            "intrinsic whose emitter uses it",
        ),
        *(
            (
                wrong,
                f"operations has {shown}; it must be pairs of an operation and its operand, as ('max', 7), "
                "or text of the form NAME=N | NAME=channel",
            )
            for wrong, shown in (
                (7, "7"),
                (None, "None"),
                ("max", "'max'"),
                ("=7", "'=7'"),
                ("max=7,", "''"),
                ([7], "7"),
                ([("max",)], "('max',)"),
                ([("max", 7, 8)], "('max', 7, 8)"),
                ([(3, 7)], "(3, 7)"),
            )
        ),
    ],
)
def test_bad_operations(given: Any, message: str) -> None:
    with refused(ShapeError, message):
        accel.gemm(4, 8, 4, operations=given)


def test_an_operation_that_is_not_declared() -> None:
    with pytest.raises(ConfigError, match="operation 't_gapp' is not declared in this installation; did you"):
        accel.gemm(4, 8, 4, operations="t_gapp=7")


def test_operations_and_scales() -> None:
    message = (
        "operations and quantized are given; the store unit requantizes sums, and the ALU has the "
        "operations: give shift and clip instead of a scale"
    )
    with refused(ShapeError, message):
        accel.gemm(4, 8, 4, operations="max=7", quantized=accel.Quantized(scale=0.1))
    assert accel.gemm(4, 8, 4, operations=[], quantized=accel.Quantized(scale=0.1)).operands == ()


@pytest.mark.parametrize("name", ["tiny", "tiny-int8"])
def test_a_machine_without_the_operations(name: str) -> None:
    """Also where the schedule is given."""
    workload = accel.gemm(4, 8, 4, operations="t_gap=7,t_nor=3,t_gap=9", shift=3)
    with refused(
        TensorizeError,
        f"the program needs the ALU operations 't_gap' and 't_nor'; configuration {name!r} has "
        "alu_ops=min,max,add,shr,mul: take a machine with alu_ops=+t_gap,t_nor",
    ):
        accel.build(workload, name)
    able = accel.machine(name, alu_ops="+t_gap,t_nor")
    plan = find_candidates(workload, able.config)[0].plan
    schedule = GEMM_PLANNER.schedule(workload, able, plan)
    with refused(
        TensorizeError,
        f"the program needs the ALU operation 't_gap'; configuration {name!r} has "
        "alu_ops=min,max,add,shr,mul: take a machine with alu_ops=+t_gap",
    ):
        accel.build(schedule, name)


def test_a_store_unit_leaves_operations_to_the_alu() -> None:
    """Without them, the store unit computes the epilogue, and the ALU none of it."""
    machine = accel.machine("tiny-int8", alu_ops=ALU_OPS)
    for steps, uses_alu in (((), False), ([(GAP, 7)], True)):
        workload = accel.gemm(8, 16, 8, bias=True, shift=4, operations=steps)
        program = accel.build(workload, machine)
        assert any(isinstance(one, Alu) for one in program.instructions) == uses_alu
        assert program.run(seed=1).mismatches == 0


def test_the_form_as_text() -> None:
    steps = epilogue_operations([EpilogueOperation("max", 7), (GAP, "channel"), " min = -3 , add=channel"])
    assert list(map(str, steps)) == ["max=7", "t_gap=channel", "min=-3", "add=channel"]
    assert epilogue_operations(list(map(str, steps))) == steps
    assert [one.reads_channels for one in steps] == [False, True, False, True]
    assert NAMED["tiny"].alu_ops == ("min", "max", "add", "shr", "mul")
