"""The elements of buffers, and that a buffer has only one layout."""

import pytest

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.compiler.nest.element_packing import block_shape, buffer_elements
from accel.compiler.target.machine import machine
from tests.compiler import gemms
from tests.expect import refused

M, VTA = machine("gemm8x8"), machine("vta")


def elements(s: te.Schedule) -> dict[str, tuple[tuple[int | None, int], ...]]:
    return {buffer.name: element for buffer, element in buffer_elements(te.tensorize(s)).items()}


@pytest.mark.parametrize(("transpose_a", "transpose_b"), gemms.TRANSPOSITIONS)
def test_the_order_of_indices_becomes_that_inside_the_element(transpose_a: bool, transpose_b: bool) -> None:
    """inp elements are rows by depth and wgt elements columns by depth, in every layout of the tensors."""
    found = elements(gemms.tensorized(gemms.gemm(32, 32, 32, transpose_a, transpose_b), VTA))
    assert found == {
        "AL": ((1, 1), (0, 16)) if transpose_a else ((0, 1), (1, 16)),
        "BL": ((0, 16), (1, 16)) if transpose_b else ((1, 16), (0, 16)),
        "CL": ((0, 1), (1, 16)),
        "C": ((0, 1), (1, 16)),
    }


def test_operands_that_repeat() -> None:
    workload = accel.gemm(32, 32, 32, bias=True)
    program = accel.build(workload, VTA)
    bias = next(tensor for tensor in program.tensors if tensor.name == "bias")
    assert bias.layout.packed == (2, 1, 16)
    program = accel.build(workload, M)
    bias = next(tensor for tensor in program.tensors if tensor.name == "bias")
    assert bias.layout.packed == (4, 8, 8)
    assert bias.layout.repeats


def test_widths() -> None:
    assert block_shape(((1, 8), (None, 4), (0, 2)), 3) == (2, 8, 1)


def test_two_uses_that_disagree() -> None:
    """S is summed by rows and columns, and the ALU reads it transposed."""
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    S = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="S")
    Q = te.placeholder((16, 16), "int32", name="Q")
    C = te.compute((16, 16), lambda y, x: Q[y, x] + S[x, y], name="C", dtype="int8")
    s = te.create_schedule(C)
    R = s.cache_write(C, M.acc_buffer)
    s.cache_read(A, M.inp_buffer)
    s.cache_read(B, M.wgt_buffer)
    s[s.cache_read(Q, M.acc_buffer)].compute_at(s[C], "y")
    s[R].compute_at(s[C], "y")
    s[S].set_scope(M.acc_buffer)
    s[S].compute_at(s[C], "y")
    s[S].tile(*s[S].axis, k, 8, 8, 8)
    s[S].tensorize("yi", M.gemm)
    s[R].tile(*s[R].axis, 8, 8)
    s[R].tensorize("yi", M.alu)
    with pytest.raises(
        TensorizeError,
        match=r"^S\[.* is used by add with elements \[dim 1: 8, dim 0: 8\], and by "
        r"\w+ with elements \[dim 0: 8, dim 1: 8\]; one buffer has one layout: cache the tensor twice$",
    ):
        elements(s)


def test_an_intrinsic_of_another_size_than_the_machines_elements() -> None:
    x = te.placeholder((4, 8), "int32", name="x")
    y = te.compute((4, 8), lambda i, j: x[i, j] * 2, name="y")
    half = te.decl_tensor_intrin(
        y,
        lambda inputs, outputs: te.hardware_intrin("fill_zero", outputs[0].access_ptr("w")),
        scopes={x: M.acc_buffer},
    )
    A = te.placeholder((8, 8), "int32", name="A")
    C = te.compute((8, 8), lambda y, x: A[y, x] * 2, name="C", dtype="int8")
    s = te.create_schedule(C)
    s[C].tile("y", "x", 4, 8)
    CL = s.cache_write(C, M.acc_buffer)
    s.cache_read(A, M.acc_buffer)
    s[CL].tensorize("yi", half)
    with refused(
        TensorizeError,
        "AL has elements of (4, 8); those of acc_buffer are (8, 8) in configuration 'gemm8x8'",
    ):
        elements(s)


def test_a_buffer_that_nothing_computes_with() -> None:
    A = te.placeholder((8, 8), "int32", name="A")
    C = te.compute((8, 8), lambda y, x: A[y, x], name="C", dtype="int8")
    s = te.create_schedule(C)
    s.cache_read(A, M.acc_buffer)
    with refused(TensorizeError, "AL is only copied; no intrinsic determines its elements"):
        elements(s)
