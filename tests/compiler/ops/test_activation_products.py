"""Products whose second operand has a zero point, as another layer's result has, and several at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ShapeError, TensorizeError
from accel.compiler.mappings.padded_products import PADDED
from accel.core.config import NAMED, Config
from accel.core.isa import SetWgt
from tests.compiler.quantized import any_inputs, epilogues, finished, products
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right
from tests.expect import refused
from tests.strategies import examples

MACHINES = [NAMED[name] for name in ("vta-npu", "gemm8x8-npu", "tiny-npu")]


def plain(inputs: dict[str, Any], transposed: tuple[bool, bool]) -> tuple[Any, Any]:
    """Return the operands with their rows and columns in order."""
    a, b = inputs["A"], inputs["B"]
    return a.swapaxes(-1, -2) if transposed[0] else a, b.swapaxes(-1, -2) if transposed[1] else b


@examples(40)
@given(st.data())
def test_any_product_of_two_activations(data: st.DataObject) -> None:
    M, N, K = (data.draw(st.integers(1, most)) for most in (20, 40, 40))
    batch = data.draw(st.none() | st.integers(1, 5))
    quantized = data.draw(epilogues(N, residual=False, weights=True))
    transposed = data.draw(st.tuples(st.booleans(), st.booleans()))
    sides = {"transpose_a": transposed[0], "transpose_b": transposed[1]}
    bias = data.draw(st.booleans())
    workload = accel.gemm(M, N, K, batch=batch, bias=bias, quantized=quantized, **sides)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    sums = products(*plain(inputs, transposed), quantized)
    want = finished(sums.reshape(-1, N), inputs, quantized).reshape(sums.shape)
    program = as_it_is(workload, data.draw(st.sampled_from(MACHINES)))
    program_is_right(program, inputs, want)


def test_all_values_of_both_operands() -> None:
    """The largest products are 255 * 255 and 255 * -255."""
    quantized = accel.Quantized(
        scale=1 / 600, input_zero=255, input_dtype="uint8", weight_zero=-128, output_zero=-100
    )
    workload = accel.gemm(256, 256, 1, quantized=quantized)
    inputs = {
        "A": np.arange(256, dtype=np.uint8)[:, None],
        "B": np.arange(-128, 128).astype(np.int8)[None],
    }
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    program_is_right(as_it_is(workload, MACHINES[0]), inputs, want)


def program(config: Config, quantized: accel.Quantized, **sizes: Any) -> accel.Program:
    return accel.build(accel.gemm(**{"M": 16, "N": 16, "K": 32} | sizes, quantized=quantized), config)


def test_settings_of_weights() -> None:
    """Bytes of int8 without a zero point need no SET.WGT."""
    centered = accel.Quantized(scale=0.01, weight_zero=5, weight_dtype="uint8")
    settings = [one for one in program(MACHINES[0], centered).instructions if isinstance(one, SetWgt)]
    assert settings == [SetWgt(zero=5, unsigned=True)]
    plain = accel.Quantized(scale=0.01)
    assert program(MACHINES[0], plain).instructions == program(NAMED["vta-int8"], plain).instructions
    assert "weight_zero" not in plain.to_dict()
    assert accel.Quantized.from_dict(centered.to_dict()) == centered


def test_incomplete_blocks_are_padded_with_zero_points() -> None:
    """Only if both operands have one. A block that ends with a row of zeros needs no other padding."""
    both = accel.Quantized(scale=0.01, input_zero=3, weight_zero=5)
    one = accel.Quantized(scale=0.01, weight_zero=5)
    assert program(MACHINES[0], both, K=40).mapping == PADDED
    assert {program(MACHINES[0], both).mapping, program(MACHINES[0], one, K=40).mapping} == {"plain"}
    views = {tensor.name: tensor.view for tensor in program(MACHINES[0], both, K=40).tensors}
    assert [views["A"].fill, views["B"].fill, views["C"]] == [3, 5, None]  # type: ignore[union-attr]


@pytest.mark.parametrize("depth", [1, 11, 20, 24, 28, 44, 121])
def test_steps_of_sums(depth: int) -> None:
    """All steps have as many blocks, also with virtual threads along them."""
    quantized = accel.Quantized(scale=0.01, input_zero=3, weight_zero=5)
    workload = accel.gemm(1, 2, depth, quantized=quantized)
    inputs = any_inputs(workload, depth)
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    for name in ("tiny-npu", "ecp5-npu"):
        program_is_right(as_it_is(workload, name), inputs, want)


def test_sums_of_two_activations() -> None:
    quantized = accel.Quantized(scale=1.0, output_dtype="int32", input_zero=-7, weight_zero=9)
    workload = accel.gemm(5, 20, 18, batch=2, quantized=quantized)
    inputs = any_inputs(workload, 3)
    want = products(inputs["A"], inputs["B"], quantized).astype(np.int32)
    program_is_right(as_it_is(workload, MACHINES[2]), inputs, want)


def test_errors() -> None:
    centered = accel.Quantized(scale=0.01, weight_zero=5)
    with pytest.raises(TensorizeError, match=r"has wgt_zero=0, and only machines with wgt_zero=1 do that$"):
        program(NAMED["vta-int8"], centered)
    with refused(
        ShapeError,
        "weight_zero is 5 and weight_dtype 'int8'; only gemm has a second operand with a zero point",
    ):
        accel.dense(1, 16, 16, quantized=centered)
    with refused(ShapeError, "batch is 3; several products need quantized, without a residual"):
        accel.gemm(4, 4, 4, batch=3)
    with pytest.raises(ShapeError, match="int32 can hold 32767"):
        accel.gemm(4, 4, 40000, quantized=accel.Quantized(scale=0.1, input_zero=1, weight_zero=1))
