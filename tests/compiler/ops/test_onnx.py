"""Compiled layers compared with ONNX Runtime, on the functional and on the cycle-exact simulator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from tests.compiler.convs import any_inputs, convolutions, epilogues, transposed
from tests.compiler.onnx_reference import onnx_maxima, onnx_means, onnx_result, onnx_transposed
from tests.compiler.pools import pools, some_data
from tests.compiler.running import as_it_is
from tests.strategies import examples

CONFIGS = ("tiny", "vta", "gemm8x8")


def same(workload: accel.Workload, machine: accel.Machine, seed: int) -> None:
    inputs = any_inputs(workload, seed)
    want = onnx_result(workload, inputs)
    program = as_it_is(workload, machine)
    for backend in ("functional", "sim"):
        np.testing.assert_array_equal(program.run(inputs, backend=backend).outputs["out"], want)


@examples(100)
@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    same(data.draw(convolutions(machine.config)), machine, data.draw(st.integers(0, 99)))


@examples(40)
@given(st.data())
def test_dense(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    config = machine.config
    sizes = [data.draw(st.integers(1, 3 * n)) for n in (config.batch, config.block_in, config.block_out)]
    same(accel.dense(*sizes, **data.draw(epilogues)), machine, data.draw(st.integers(0, 99)))


@examples(40)
@given(st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(transposed(machine.config))
    inputs = any_inputs(workload, data.draw(st.integers(0, 99)))
    want = onnx_transposed(workload, inputs)
    for backend in ("functional", "sim"):
        found = as_it_is(workload, machine).run(inputs, backend=backend).outputs["out"]
        np.testing.assert_array_equal(found, want)


@examples(50)
@given(st.data())
def test_pooling(data: st.DataObject) -> None:
    """Maxima are equal, means within 1. ONNX Runtime needs padding smaller than the kernel, and has no means
    with dilation."""
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    kind = data.draw(st.sampled_from(["max", "average"]))
    workload = data.draw(pools(machine.config, kind).filter(lambda made: _is_known(made, kind)))
    values = some_data(workload, data.draw(st.integers(0, 99)))
    for backend in ("functional", "sim"):
        found = as_it_is(workload, machine).run({"data": values}, backend=backend).outputs["out"]
        if kind == "max":
            np.testing.assert_array_equal(found, onnx_maxima(workload, values))
        else:
            assert np.abs(found - onnx_means(workload, values)).max() < 1.0001


def _is_known(workload: accel.Workload, kind: str) -> bool:
    sizes = workload.parameters
    around = zip(sizes["padding"], sizes["kernel"] * 2, strict=True)
    return all(pad < kernel for pad, kernel in around) and (kind == "max" or sizes["dilation"] == [1, 1])


@pytest.mark.parametrize(
    ("size", "ic", "oc", "kernel", "stride"),
    [(28, 128, 256, 1, 2), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (56, 64, 128, 3, 2)],
)
def test_layers_of_resnet(size: int, ic: int, oc: int, kernel: int, stride: int) -> None:
    workload = accel.conv2d(
        1, ic, size, size, oc, kernel, stride=stride, padding=kernel // 2, bias=True, relu=True, shift=8
    )
    same(workload, accel.machine("vta"), 0)
