"""The three operations, each in simulator, hardware, proof and a program."""

from typing import Any

import numpy as np
import pytest

import accel
from accel import te
from accel.assembly import assemble
from accel.core.isa import Alu
from accel.hw.formal.prove_alu import proof_of
from accel.hw.formal.smt_solver import prove
from accel.run.program import as_program
from examples.operations.absolute_difference import ABSDIFF
from examples.operations.lane_sum import LANE_SUM
from examples.operations.rounding_high_product import MULHR

EVERY = (ABSDIFF, MULHR, LANE_SUM)
INT32 = (-(2**31), 2**31 - 1)

each = pytest.mark.parametrize("operation", EVERY, ids=lambda one: one.name)


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _formula(name: str, x: list[int], y: list[int]) -> list[int]:
    """The result of a row of lanes in Python's integers."""
    if name == "lanesum":
        return [_wrapped(one + sum(y)) for one in x]
    if name == "absdiff":
        return [_wrapped(abs(a - b)) for a, b in zip(x, y, strict=True)]
    return [min(INT32[1], (a * b + 2**30) >> 31) for a, b in zip(x, y, strict=True)]


@each
def test_the_declaration_is_the_formula(operation: accel.Operation) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(*INT32, (2, 50, 4), dtype=np.int32, endpoint=True)
    x[0], y[0] = INT32[0], INT32[0]
    x[1], y[1] = INT32[0], INT32[1]
    wanted = [_formula(operation.name, *rows) for rows in zip(x.tolist(), y.tolist(), strict=True)]
    assert operation.function(x, y).tolist() == wanted


def test_simulator_and_hardware_agree_on_every_cycle() -> None:
    names = [operation.name for operation in EVERY]
    slots = "".join(
        f"""
                ALU.{name} uop_end=3 iter_in=2
                ALU.{name} uop_begin=1 uop_end=2 use_imm=1 imm=-7
                ALU.ADD uop_end=1
        """
        for name in names
    )
    program = as_program(
        assemble(
            f"""
            .config tiny alu_ops=+{",".join(names)}
            .preset uop[0] .uop 0,1,0 1,2,0 2,2,0
            .preset acc[0] .int32 1 -2 3 -4 5 -6 7 -8  100*8  -2147483648*4 2147483647*4
            {slots}
                FINISH
            """
        )
    )
    assert accel.check(program).ok
    assert accel.lockstep(program, engine="pysim").equal
    mnemonics = [one.mnemonic for one in program.instructions if isinstance(one, Alu)]
    assert mnemonics == [f"ALU.{name}" for each in names for name in (each.upper(), each.upper(), "ADD")]


@pytest.mark.parametrize(
    "operation",
    [ABSDIFF, pytest.param(MULHR, marks=pytest.mark.thorough), LANE_SUM],  # a wide product takes 8 s
    ids=lambda one: one.name,
)
def test_the_hardware_is_proven(operation: accel.Operation) -> None:
    verdict = prove(proof_of(operation))
    assert verdict.holds
    assert verdict.properties >= 1


@pytest.mark.parametrize("operation", [ABSDIFF, MULHR], ids=lambda one: one.name)
def test_a_schedule_uses_it(operation: accel.Operation) -> None:
    """An elementwise operation is a function of tensor expressions, which the machine's alu computes."""
    m = accel.machine("tiny", alu_ops=f"+{operation.name}")
    rows, columns = 4, 16
    x = te.placeholder((rows, columns), "int32", name="x")
    y = te.placeholder((columns,), "int32", name="y")

    def result(i: Any, j: Any) -> Any:
        return te.apply(operation, te.apply(operation, x[i, j], 9), y[j])

    out = te.compute((rows, columns), result, name="out", dtype="int8")
    s = te.create_schedule(out)
    local = s.cache_write(out, m.acc_buffer)
    for tensor in (x, y):
        s[s.cache_read(tensor, m.acc_buffer)].compute_at(s[out], s[out].op.axis[0])
    s[local].compute_at(s[out], s[out].op.axis[0])
    i, j = s[local].axis
    _, _, inner, _ = s[local].tile(i, j, 1, 8)
    s[local].tensorize(inner, m.alu)
    program = accel.build(s, m)
    assert f"vdla.{operation.name}(" in str(te.format_nest(te.tensorize(s)))
    rng = np.random.default_rng(1)
    inputs = {
        "x": rng.integers(*INT32, (rows, columns)).astype(np.int32),
        "y": rng.integers(-9, 9, columns).astype(np.int32),
    }
    assert program.run(inputs).mismatches == 0


@pytest.mark.parametrize("operation", [ABSDIFF, MULHR], ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["tiny", "tiny-int8"])
def test_operators_have_it_in_their_epilogue(operation: accel.Operation, name: str) -> None:
    """A layer whose sums it changes twice: with an immediate, and with a number per channel. The layer with
    a channel per group has groups of one channel."""
    m = accel.machine(name, alu_ops=f"+{operation.name}")
    steps = [("shr", -12), (operation, 20000), (operation, "channel")]
    rng = np.random.default_rng(2)
    operand = rng.integers(*INT32, 10).astype(np.int32)
    for layer in (
        accel.conv2d(2, 6, 3, 3, 10, 1, operations=steps),
        accel.conv2d(1, 10, 3, 3, 10, 1, groups=10, operations=steps),
    ):
        program = accel.build(layer, m)
        shapes = {tensor.name: tensor.shape for tensor in program.tensors}
        data, weight = (rng.integers(-128, 128, shapes[one], np.int8) for one in ("data", "weight"))
        result = program.run(data=data, weight=weight, operand0=operand)
        assert result.mismatches == 0
        factors = np.diag(weight[:, 0, 0, 0]) if layer.parameters["groups"] > 1 else weight[:, :, 0, 0]
        sums = np.einsum("ncyx,oc->noyx", data.astype(np.int64), factors) << 12
        for channel in range(10):
            row = sums[:, channel].reshape(-1).tolist()
            for y in (20000, int(operand[channel])):
                row = _formula(operation.name, row, [y] * len(row))
            got = result.outputs["out"][:, channel].reshape(-1)
            assert got.tolist() == np.array(row, np.int64).astype(np.int8).tolist()


def test_an_operation_that_crosses_lanes_has_no_place_in_an_epilogue() -> None:
    with pytest.raises(accel.ShapeError, match="'lanesum' crosses the lanes of an element"):
        accel.gemm(4, 8, 4, operations=[(LANE_SUM, 1)])


def test_an_intrinsic_uses_the_sum_over_lanes() -> None:
    """A tensor expression has no lanes, so an emitter uses the operation."""
    m = accel.machine("tiny", alu_ops="+lanesum")
    lanes = m.config.block_out
    with pytest.raises(accel.ShapeError, match="'lanesum' crosses the lanes of an element; a tensor"):
        te.apply(LANE_SUM, 1, 2)

    @te.register_emitter("add_lane_sums", scopes=("acc_buffer", "acc_buffer"))
    def add_lane_sums(target: te.Target, result: te.AccessPtr, values: te.AccessPtr) -> list[te.Emitted]:
        return te.emit_loops(Alu(alu_op=target.config.operation_codes["lanesum"]), target, result, values)

    block = te.placeholder((1, lanes), "int32", name="block")
    k = te.reduce_axis((0, lanes), name="k")
    total = te.compute((1, lanes), lambda i, j: te.sum(block[i, k], axis=k), name="total")

    def lower(inputs: Any, outputs: Any) -> Any:
        result = outputs[0].access_ptr("w")
        reset = te.hardware_intrin("fill_zero", result)
        update = te.hardware_intrin("add_lane_sums", result, inputs[0].access_ptr("r"))
        return [reset, update], reset, update

    intrinsic = te.decl_tensor_intrin(total, lower)
    x = te.placeholder((6, lanes), "int32", name="x")
    k = te.reduce_axis((0, lanes), name="k")
    sums = te.compute((6, lanes), lambda i, j: te.sum(x[i, k], axis=k), name="sums")
    out = te.compute((6, lanes), lambda i, j: sums[i, j] >> 4, name="out", dtype="int8")
    s = te.create_schedule(out)
    s[sums].set_scope(m.acc_buffer)
    local = s.cache_write(out, m.acc_buffer)
    s.cache_read(x, m.acc_buffer)
    i, _ = s[sums].axis
    _, inner = s[sums].split(i, 1)
    s[sums].tensorize(inner, intrinsic)
    i, j = s[local].axis
    _, _, inner, _ = s[local].tile(i, j, 1, lanes)
    s[local].tensorize(inner, m.alu)
    program = accel.build(s, m)
    result = program.run(x=np.arange(6 * lanes, dtype=np.int32).reshape(6, lanes))
    assert result.mismatches == 0
    assert accel.lockstep(program, engine="pysim").equal
