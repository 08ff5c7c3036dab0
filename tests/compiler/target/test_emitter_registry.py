"""Emitters by name, and a user's own intrinsics with emitters in their own file."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import ScheduleError, TensorizeError
from accel.compiler.target import emitter_registry
from accel.compiler.target.emitter_registry import (
    AccessPtr,
    Emitted,
    Target,
    find_emitter,
    operand_scopes,
    register_emitter,
)
from accel.core.config import NAMED
from accel.core.isa import Alu, AluOp, Gemm, Instruction
from tests.compiler.oracle import expected, some_inputs
from tests.expect import refused

M = accel.machine("gemm8x8")


@pytest.fixture(autouse=True)
def _own_emitters() -> Iterator[None]:
    """Remove the test's emitters when it ends."""
    before = dict(emitter_registry._REGISTERED)
    yield
    emitter_registry._REGISTERED.clear()
    emitter_registry._REGISTERED.update(before)


def test_built_in_emitters_carry_the_geometry() -> None:
    assert find_emitter("fused_gemm8x8_add", NAMED["gemm8x8"]).scopes == (
        "inp_buffer",
        "wgt_buffer",
        "acc_buffer",
    )
    assert find_emitter("gemm1x16x16", NAMED["vta"]).name == "gemm"
    with refused(
        TensorizeError,
        "no emitter is registered as 'fused_gemm8x8_add' for configuration 'vta'; "
        "did you mean 'fused_gemm1x16x16_add'?",
    ):
        find_emitter("fused_gemm8x8_add", NAMED["vta"])


def test_names_are_taken_once() -> None:
    def one(target: Target, to: AccessPtr) -> Sequence[Emitted]:
        return []

    def other(target: Target, to: AccessPtr) -> Sequence[Emitted]:
        return []

    assert register_emitter("mine", [None])(one) is one
    assert register_emitter("mine", ["acc_buffer"])(one) is one
    assert find_emitter("mine", NAMED["vta"]).scopes == ("acc_buffer",)
    with refused(TensorizeError, "an emitter named 'mine' is registered already; choose another name"):
        register_emitter("mine", [None])(other)


def declared(name: str, *, scopes: dict[str, object] | None = None, count: int = 2) -> te.TensorIntrin:
    x = te.placeholder((8, 8), "int32", name="x")
    y = te.compute((8, 8), lambda i, j: x[i, j] * 2, name="y")
    named = {"x": x, "y": y}
    return te.decl_tensor_intrin(
        y,
        lambda inputs, outputs: te.hardware_intrin(
            name, *[outputs[0].access_ptr("w"), inputs[0].access_ptr("r")][:count]
        ),
        scopes={named[key]: scope for key, scope in (scopes or {}).items()},
    )


def test_scopes_follow_from_emitters_unless_declared() -> None:
    register_emitter("twice", ["acc_buffer", None])(lambda target, to, source: [])
    scopes = {tensor.name: scope for tensor, scope in operand_scopes(declared("twice"), M.config).items()}
    assert scopes == {"y": "acc_buffer"}
    both = operand_scopes(declared("twice", scopes={"x": M.acc_buffer, "y": M.wgt_buffer}), M.config)
    assert {tensor.name: scope for tensor, scope in both.items()} == {"x": "acc_buffer", "y": "wgt_buffer"}
    with refused(TensorizeError, "twice is given 1 pointers; it takes 2"):
        operand_scopes(declared("twice", count=1), M.config)


# --- a user's own intrinsic ----------------------------------------------------------------------------


def own_file() -> te.TensorIntrin:
    """``y[i][j] = max(x[i][j], 0) * 2`` between two buffers of accumulators: zero, add, max, shift."""

    @te.register_emitter("double_relu8x8", ["acc_buffer", "acc_buffer"])
    def emit(target: te.Target, to: te.AccessPtr, source: te.AccessPtr) -> list[te.Emitted]:
        blocks = list(np.ndindex(*target.extents))
        uops = np.array(
            [
                [
                    to.base + sum(n * s for n, s in zip(block, to.strides, strict=True)),
                    source.base + sum(n * s for n, s in zip(block, source.strides, strict=True)),
                    0,
                ]
                for block in blocks
            ]
        )
        every: list[Instruction] = [
            Gemm(reset=True, uop_end=len(blocks)),
            Alu(alu_op=AluOp.ADD, uop_end=len(blocks)),
            Alu(alu_op=AluOp.MAX, use_imm=True, imm=0, uop_end=len(blocks)),
            Alu(alu_op=AluOp.SHR, use_imm=True, imm=-1, uop_end=len(blocks)),
        ]
        return [te.Emitted(instruction, uops) for instruction in every]

    x = te.placeholder((8, 8), "int32", name="x")
    y = te.compute((8, 8), lambda i, j: te.max(x[i, j], 0) * 2, name="y")
    return te.decl_tensor_intrin(
        y.op,  # type: ignore[arg-type]
        lambda inputs, outputs: te.hardware_intrin(
            "double_relu8x8", outputs[0].access_ptr("w"), inputs[0].access_ptr("r")
        ),
    )


def own_schedule(intrin: te.TensorIntrin, factor: int = 2) -> te.Schedule:
    """A schedule that doubles the positive sums of a matrix product, 20 by 13."""
    workload = accel.gemm(20, 13, 9, bias=False, shift=2)
    S = workload.sums
    C = te.compute((20, 13), lambda y, x: te.max(S[y, x], 0) * factor, name="C", dtype="int8")
    s = te.create_schedule(C)
    s[C].tile("y", "x", 8, 16)
    R = s.cache_write(C, M.acc_buffer)
    s[S].set_scope(M.acc_buffer)
    for tensor in (R, S):
        s[tensor].compute_at(s[C], "yo")
    s[R].split("xi", 8, names=("xm", "xn"))
    s[R].reorder("xm", "yi", "xn")
    s[R].tensorize("yi", intrin)
    s[S].tile("y", "x", "k", 8, 8, 8)
    s.cache_read(s.tensor("A"), M.inp_buffer)
    s.cache_read(s.tensor("B"), M.wgt_buffer)
    s[S].tensorize("yi", M.gemm)
    return s


def test_a_users_intrinsic_needs_no_change_of_the_compiler() -> None:
    s = own_schedule(own_file())
    nest = te.tensorize(s)
    assert "vdla.double_relu8x8(CL[0:min(8, 20-yo*8)][xm*8:min(xm*8+8, 13)], S[" in te.format_nest(nest)
    inputs = {name: array >> 3 for name, array in some_inputs(s.outputs, 4).items()}
    want = expected(s.outputs, inputs)["C"]
    assert len(np.unique(want)) > 30
    np.testing.assert_array_equal(te.interpret(nest, inputs)["C"], want)
    program = accel.build(s, M)
    assert program.check().ok
    np.testing.assert_array_equal(program.run(inputs).outputs["C"], want)


def test_a_program_with_a_users_intrinsic_keeps_its_reference_but_not_its_schedule() -> None:
    """The file holds only the intrinsic's name. Its declaration is the user's code."""
    program = accel.build(own_schedule(own_file()), M)
    assert program.run().mismatches == 0
    with pytest.raises(ScheduleError, match="machine 'gemm8x8' has no intrinsic 'double_relu8x8'"):
        program.schedule()


def test_a_claim_that_is_wrong_shows_in_the_run() -> None:
    """The declaration multiplies by four, but the instructions by two."""
    own_file()
    x = te.placeholder((8, 8), "int32", name="x")
    y = te.compute((8, 8), lambda i, j: te.max(x[i, j], 0) * 4, name="y")
    lie = te.decl_tensor_intrin(
        y,
        lambda inputs, outputs: te.hardware_intrin(
            "double_relu8x8", outputs[0].access_ptr("w"), inputs[0].access_ptr("r")
        ),
    )
    result = accel.build(own_schedule(lie, factor=4), M).run()
    assert result.mismatches
