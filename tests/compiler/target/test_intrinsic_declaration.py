"""Declarations of intrinsics: the arguments of a lowering rule, and its valid and
invalid results."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.compiler.target.intrinsic_declaration import AluIntrin, CopyIntrin, HardwareCall, IntrinOperand
from tests.expect import refused

w, x = te.placeholder((8, 8), name="w"), te.placeholder((8, 8), name="x")
k = te.reduce_axis((0, 8), name="k")
y = te.compute((8, 8), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), name="y")
z = te.compute((8, 8), lambda i, j: x[i, j] + w[i, j], name="z")


def rule(inputs: Sequence[IntrinOperand], outputs: Sequence[IntrinOperand]) -> tuple[HardwareCall, ...]:
    ww, xx, yy = inputs[0].access_ptr("r"), inputs[1].access_ptr("r"), outputs[0].access_ptr("w")
    whole = te.hardware_intrin("gemm8x8", ww, xx, yy)
    return whole, te.hardware_intrin("fill_zero", yy), te.hardware_intrin("fused_gemm8x8_add", ww, xx, yy)


def test_a_declaration() -> None:
    intrin = te.decl_tensor_intrin(y, rule)
    assert (intrin.name, intrin.op, intrin.inputs) == ("gemm8x8", y.op, (w, x))
    assert [intrin.form_name(form) for form in ("compute", "reset", "update")] == [
        "gemm8x8",
        "fill_zero",
        "fused_gemm8x8_add",
    ]
    assert [p.mode for p in intrin.calls("update")[0].pointers] == ["r", "r", "w"]
    assert [p.tensor for p in intrin.calls("update")[0].pointers] == [w, x, y]
    assert te.decl_tensor_intrin(y.op, rule, name="mine").name == "mine"  # type: ignore[arg-type]


def test_declarations_are_equal_if_their_content_is() -> None:
    intrin = te.decl_tensor_intrin(y, rule)
    again = te.decl_tensor_intrin(y, rule)
    assert intrin is not again
    assert (intrin, hash(intrin)) == (again, hash(again))
    scopes = {w: "wgt_buffer"}
    for other in (
        te.decl_tensor_intrin(y, rule, name="mine"),
        te.decl_tensor_intrin(y, rule, scopes=scopes),
        te.decl_tensor_intrin(y, lambda i, o: (rule(i, o)[0], rule(i, o)[1], rule(i, o)[0])),
        te.decl_tensor_intrin(z, rule, name="gemm8x8"),
        accel.machine("tiny").gemm,
        "gemm8x8",
    ):
        assert intrin != other
    assert accel.machine("vta").gemm == accel.machine("vta", read_latency=5).gemm
    assert accel.machine("vta").alu != accel.machine("tiny").alu
    assert repr(intrin) == (
        "TensorIntrin(gemm8x8: Tensor(y, (8, 8), int32) of Tensor(w, (8, 8), int8), Tensor(x, (8, 8), int8))"
    )


def test_inputs_stand_in_the_order_of_the_expression() -> None:
    assert te.decl_tensor_intrin(z, lambda inputs, outputs: te.hardware_intrin("f")).inputs == (x, w)


def test_a_form_may_be_several_calls() -> None:
    intrin = te.decl_tensor_intrin(
        z,
        lambda inputs, outputs: [
            te.hardware_intrin("copy", outputs[0].access_ptr("w"), inputs[0].access_ptr("r")),
            te.hardware_intrin("add", outputs[0].access_ptr("rw"), inputs[1].access_ptr("r")),
        ],
    )
    assert intrin.form_name("compute") == "copy+add"
    assert (intrin.reset, intrin.update) == ((), ())


@pytest.mark.parametrize(
    ("op", "lower", "message"),
    [
        (w, rule, "w is a placeholder; an intrinsic is declared by what it computes"),
        (z, lambda inputs, outputs: None, "the lowering rule of z returns no call of hardware_intrin"),
        (
            z,
            lambda inputs, outputs: ["f"],
            "a lowering rule returns 'f'; it must return calls of hardware_intrin",
        ),
        (
            y,
            lambda inputs, outputs: te.hardware_intrin("f"),
            "y is a reduction; its lowering rule must return (compute, reset, update)",
        ),
        (
            y,
            lambda inputs, outputs: (te.hardware_intrin("f"), None, te.hardware_intrin("g")),
            "y is a reduction; its lowering rule must return (compute, reset, update)",
        ),
        (
            te.compute((8, 8), lambda i, j: z[i, j] + 1),
            rule,
            "an intrinsic is one computation on placeholders; it reads another computation",
        ),
        (
            z,
            lambda inputs, outputs: te.hardware_intrin("f", inputs[0].access_ptr("x")),
            "the access mode is 'x'; it must be 'r', 'w' or 'rw'",
        ),
    ],
)
def test_invalid_declarations_are_refused(op: Any, lower: Callable[..., Any], message: str) -> None:
    with refused(TensorizeError, message):
        te.decl_tensor_intrin(op, lower)


def test_calls_take_pointers() -> None:
    with pytest.raises(
        TensorizeError, match=r"^f is given IntrinOperand\(.*\); it takes pointers made by access_ptr$"
    ):
        te.decl_tensor_intrin(z, lambda inputs, outputs: te.hardware_intrin("f", inputs[0]))  # type: ignore[arg-type]


def test_the_machines_own() -> None:
    m = accel.machine("vta")
    assert isinstance(m.dma_copy2d, CopyIntrin)
    assert isinstance(m.alu, AluIntrin)
    assert m.alu.block == (1, 16)
    assert m.gemm.op.shape == (1, 16)
    assert {tensor.name: scope for tensor, scope in m.gemm.scopes.items()} == {
        "w": "inp_buffer",
        "x": "wgt_buffer",
        "y": "acc_buffer",
    }
