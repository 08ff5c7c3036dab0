"""Compiled layers against ONNX Runtime, functionally and cycle by cycle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from tests.compiler.convs import any_inputs, convolutions, epilogues
from tests.compiler.onnx_reference import onnx_result
from tests.strategies import examples

CONFIGS = ("tiny", "vta", "gemm8x8")


def same(workload: accel.Workload, machine: accel.Machine, seed: int) -> None:
    inputs = any_inputs(workload, seed)
    want = onnx_result(workload, inputs)
    program = accel.build(workload, machine)
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


@pytest.mark.parametrize(
    ("size", "ic", "oc", "kernel", "stride"),
    [(28, 128, 256, 1, 2), (14, 256, 256, 3, 1), (7, 512, 512, 3, 1), (56, 64, 128, 3, 2)],
)
def test_layers_of_resnet(size: int, ic: int, oc: int, kernel: int, stride: int) -> None:
    workload = accel.conv2d(
        1, ic, size, size, oc, kernel, stride=stride, padding=kernel // 2, bias=True, relu=True, shift=8
    )
    same(workload, accel.machine("vta"), 0)
