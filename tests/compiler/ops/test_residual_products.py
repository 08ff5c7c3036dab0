"""Products with residuals, and residuals with one value for each channel: values, errors and predictions."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.quantized_products import QuantizedProduct
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.operators.operator_registry import make_workload
from accel.compiler.ops.quantized_layers import ResidualOperation
from accel.core.isa import LoadRes, StoreAdd, StoreMul, StoreReq
from tests.compiler.quantized import any_inputs, convolved, epilogues, finished, products
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right
from tests.expect import refused
from tests.strategies import examples

MACHINES = [
    accel.machine(name, res_mul=1, tab_bytes=512)
    for name in ("vta-int8", "gemm8x8-int8", "tiny-int8", "ecp5-int8")
]
FACTOR: dict[str, Any] = {
    "result_scale": 0.0513477,
    "scale": 1 / 255,
    "zero": -128,
    "sum_scale": 0.0471913,
    "sum_zero": -9,
    "operation": "multiply",
}


@examples(40)
@given(st.data())
def test_any_product_with_a_residual(data: st.DataObject) -> None:
    M, N, K = (data.draw(st.integers(1, most)) for most in (20, 40, 40))
    quantized = data.draw(epilogues(N, operations=("multiply",), table=data.draw(st.booleans())))
    workload = accel.gemm(M, N, K, bias=data.draw(st.booleans()), quantized=quantized)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    program_is_right(as_it_is(workload, data.draw(st.sampled_from(MACHINES))), inputs, want)


@examples(60)
@given(st.data())
def test_any_convolution_with_a_residual(data: st.DataObject) -> None:
    """Sums and products, of two pictures, or of a picture and a value for each channel."""
    groups = data.draw(st.sampled_from([1, 1, 2, 6]))
    ic, oc = (groups * data.draw(st.integers(1, 24 // groups)) for _ in range(2))
    sizes = {"N": data.draw(st.integers(1, 2)), "IC": ic, "OC": oc, "groups": groups}
    sizes |= {side: data.draw(st.integers(1, 9)) for side in ("H", "W")}
    window = {"kernel": 1, "stride": data.draw(st.integers(1, 2))}
    quantized = data.draw(epilogues(oc, operations=("add", "multiply"), per_channel=True))
    workload = accel.conv2d(**sizes, **window, bias=data.draw(st.booleans()), quantized=quantized)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    np.testing.assert_array_equal(evaluate([workload.output], inputs)["out"], want)
    machine = data.draw(st.sampled_from(MACHINES))
    for mapping in ("plain", "auto"):
        program_is_right(accel.build(workload, machine, mapping=mapping), inputs, want)


@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_a_store_holds_the_residual_of_its_channels(operation: ResidualOperation) -> None:
    """Each STORE takes one element, and one LOAD reads the elements of all blocks of channels."""
    residual = accel.QuantizedResidual(
        **FACTOR | {"operation": operation}, per_channel=True, approximate=True
    )
    quantized = accel.Quantized(scale=0.01, residual=residual)
    workload = accel.conv2d(1, 16, 10, 10, 64, 1, quantized=quantized)
    program = as_it_is(workload, MACHINES[0])
    loads = [one for one in program.instructions if isinstance(one, LoadRes)]
    stores = [one for one in program.instructions if isinstance(one, StoreReq)]
    kind = StoreMul if operation == "multiply" else StoreAdd
    assert all(type(one) is kind and one.hold for one in stores)
    assert sum(one.x_size * one.y_size for one in loads) == len(stores)
    assert len(loads) < len(stores)
    inputs = any_inputs(workload, 3)
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    program_is_right(program, inputs, want)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_predictions(operation: ResidualOperation, per_channel: bool) -> None:
    """The predicted cycles are within 3 % of the simulated ones."""
    residual = accel.QuantizedResidual(
        **FACTOR | {"operation": operation}, per_channel=per_channel, approximate=True
    )
    workload = accel.conv2d(1, 64, 28, 28, 128, 1, quantized=accel.Quantized(scale=0.01, residual=residual))
    for machine in (MACHINES[0], MACHINES[3]):
        choice = choose_mapping(workload, machine.config, mapping="plain")
        measured = as_it_is(workload, machine).run(seed=1).cycles
        predicted = choice.candidates[0].prediction.cycles
        assert abs(predicted - measured) < 0.03 * measured, (machine, predicted, measured)


def test_machines_without_res_mul_are_refused() -> None:
    for residual, what in (
        (accel.QuantizedResidual(**FACTOR), "conv2d multiplies by a residual"),
        (
            accel.QuantizedResidual(**FACTOR | {"operation": "add"}, per_channel=True, approximate=True),
            "conv2d adds a value per channel",
        ),
    ):
        workload = accel.conv2d(1, 16, 4, 4, 16, 1, quantized=accel.Quantized(scale=0.01, residual=residual))
        message = f"{what}; configuration 'vta-int8' has res_mul=0: take a machine with res_mul=1"
        with refused(ScheduleError, message):
            accel.build(workload, "vta-int8")


def test_bad_residuals_are_refused() -> None:
    with refused(ShapeError, "residual_operation is 'divide'; it must be one of add, multiply"):
        accel.QuantizedResidual(**FACTOR | {"operation": "divide"})
    with refused(ShapeError, "residual_per_channel is 2; it must be True or False"):
        accel.QuantizedResidual(**FACTOR, per_channel=2)  # type: ignore[arg-type]
    held = accel.Quantized(scale=0.01, residual=accel.QuantizedResidual(**FACTOR, per_channel=True))
    with refused(
        ShapeError, "residual_per_channel is True; gemm returns a matrix, and only pictures can have it"
    ):
        accel.gemm(16, 16, 16, quantized=held)
    inexact = FACTOR | {"result_scale": 0.1, "scale": 0.05, "zero": 3, "sum_scale": 0.02, "sum_zero": 7}
    message = (
        "the product with the residual differs from float32 for {n} of 65536 pairs of values, with the "
        "best integers that were found; approximate=True allows that"
    )
    known = accel.Quantized(scale=0.01, residual=accel.QuantizedResidual(**inexact, approximate=True))
    assert known.differences
    with refused(ShapeError, message.format(n=known.differences)):
        accel.Quantized(scale=0.01, residual=accel.QuantizedResidual(**inexact))


def test_program_files_and_parameters_hold_products() -> None:
    residual = accel.QuantizedResidual(**FACTOR, per_channel=True)
    quantized = accel.Quantized(scale=0.01, residual=residual)
    workload = accel.conv2d(1, 16, 4, 4, 16, 1, quantized=quantized)
    data = json.loads(json.dumps(expression_to_data([workload.output])))
    (output,) = expression_from_data(data)
    inputs = any_inputs(workload, 1)
    found, want = (evaluate([one], inputs)["out"] for one in (output, workload.output))
    np.testing.assert_array_equal(found, want)
    assert quantized.product is not None
    data = json.loads(json.dumps(quantized.product.to_data()))
    assert QuantizedProduct.from_data(data) == quantized.product
    assert accel.Quantized.from_dict(quantized.to_dict()) == quantized
    assert make_workload("conv2d", json.loads(json.dumps(workload.parameters))) == workload


def test_additions_keep_their_parameters() -> None:
    """Program files of machines without products are the same as before."""
    residual = accel.QuantizedResidual(**FACTOR | {"operation": "add"}, approximate=True)
    parameters = accel.Quantized(scale=0.01, residual=residual).to_dict()
    assert not {"residual_operation", "residual_per_channel"} & set(parameters)
