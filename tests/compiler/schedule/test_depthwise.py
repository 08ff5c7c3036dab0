"""Depthwise convolutions by depthwise MACs: one kernel row per slot, on machines that have them."""

from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.merged_groups import taps_at_once
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target, find_emitter
from accel.core.config import NAMED, Config
from accel.core.isa import Loops, Mac, SetAcc
from accel.run.program import Program
from accel.sim.functional.scratchpads import Scratchpads
from tests.compiler.quantized import any_inputs, convolved, finished
from tests.compiler.running import run
from tests.expect import refused

TINY = NAMED["tiny-int8"]


def depthwise(channels: int, size: tuple[int, int], kernel: Any, **options: Any) -> accel.Workload:
    return accel.conv2d(1, channels, *size, channels, kernel, groups=channels, **options)


def slots(program: Program, *, depthwise: bool) -> int:
    loops = [one for one in program.instructions if isinstance(one, Loops)]
    return sum(one.uop_count for one in loops if (isinstance(one, Mac) and one.depthwise) is depthwise)


@pytest.mark.parametrize(
    ("channels", "size", "kernel", "options"),
    [
        (8, (7, 6), 3, {"padding": 1}),
        (9, (5, 8), 3, {"stride": 2, "padding": (0, 1, 2, 0)}),
        (4, (6, 6), (1, 4), {"stride": (1, 3), "padding": 2}),
        (5, (6, 7), (4, 2), {"dilation": (2, 1), "padding": 1}),
        (4, (20, 20), 3, {"padding": 1, "residual": True}),
    ],
    ids=str,
)
def test_a_row_of_the_kernel_takes_a_slot(
    channels: int, size: tuple[int, int], kernel: Any, options: dict[str, Any]
) -> None:
    workload = depthwise(channels, size, kernel, bias=True, shift=4, **options)
    program = accel.build(workload, "tiny-int8")
    assert program.run(seed=3).mismatches == 0
    shape = conv_shape(workload, program.config)
    outputs = -(-channels // 4) * shape.rows * shape.columns
    assert shape.gemm_slots == slots(program, depthwise=True) == outputs * shape.kernel[0]
    assert [one.taps for one in program.instructions if isinstance(one, SetAcc)] == [
        workload.parameters["kernel"][1]
    ]


@pytest.mark.parametrize("machine", ["tiny-int8", "ecp5-int8"])
def test_zero_points_pad_the_input(machine: str) -> None:
    quantized = accel.Quantized(input_dtype="uint8", input_zero=131, scale=0.003, output_zero=7)
    workload = depthwise(12, (9, 9), 3, padding=1, bias=True, quantized=quantized)
    program = accel.build(workload, machine)
    inputs = any_inputs(workload, 5)
    expected = finished(convolved(workload, inputs, quantized), inputs, quantized)
    np.testing.assert_array_equal(program.run(inputs).outputs["out"], expected)
    assert slots(program, depthwise=True)


@pytest.mark.parametrize(
    ("machine", "workload"),
    [
        ("tiny", depthwise(8, (6, 6), 3, shift=4)),
        ("tiny-int8", depthwise(8, (6, 6), (3, 1), shift=4)),
        ("tiny-int8", depthwise(8, (7, 7), 5, shift=4)),
        ("tiny-int8", depthwise(8, (8, 8), 3, dilation=2, shift=4)),
        ("tiny-int8", accel.conv2d(1, 8, 6, 6, 8, 3, groups=4, shift=4)),
        ("tiny-int8", accel.conv2d(1, 4, 6, 6, 8, 3, groups=4, shift=4)),
    ],
)
def test_other_convolutions_are_products_of_whole_blocks(machine: str, workload: accel.Workload) -> None:
    program = accel.build(workload, machine)
    assert taps_at_once(workload, program.config) == 0
    assert slots(program, depthwise=True) == 0
    assert program.run(seed=1).mismatches == 0


@pytest.mark.parametrize("form", ["compute", "update"])
@pytest.mark.parametrize("taps", [1, 3, 4])
def test_the_intrinsic_is_what_its_instructions_compute(form: str, taps: int) -> None:
    """After the last tap the expression has zeros, and the machine arbitrary values."""
    intrin = accel.machine(TINY).depthwise
    pads = Scratchpads.random(TINY, taps)
    step = 1
    before = pads.acc[5].copy()
    elements = np.zeros((4, 1, 4), dtype=np.int16)
    elements[:taps] = pads.inp[7 : 7 + taps * step : step]
    sums = evaluate([intrin.op.tensor], {"w": elements, "x": pads.wgt[2]})[intrin.op.name]
    pointers = {
        "w": AccessPtr("inp_buffer", 7, (), taps, step),
        "x": AccessPtr("wgt_buffer", 2, ()),
        "y": AccessPtr("acc_buffer", 5, ()),
    }
    (call,) = intrin.calls(form)
    emit = find_emitter(call.name, TINY).emit
    emitted = emit(Target(config=TINY, extents=()), *(pointers[p.tensor.name] for p in call.pointers))
    run([Emitted(SetAcc(taps=taps, step=step)), *emitted], TINY, pads)
    np.testing.assert_array_equal(pads.acc[5], sums + (before if form == "update" else 0))


def test_machines_without_depthwise_macs() -> None:
    wide = Config(name="wide", block_out=32, post=1)
    for config in (NAMED["vta"], wide):
        with refused(
            ScheduleError,
            f"machine {config.name!r} has no depthwise MACs; one with post=1 and equal block_in and "
            "block_out, as 'vta-int8', has",
        ):
            _ = accel.machine(config).depthwise


def test_a_layer_of_mobilenet_takes_a_third_of_the_slots() -> None:
    workload = depthwise(256, (28, 28), 3, padding=1, bias=True, relu=True, shift=6)
    shape = conv_shape(workload, NAMED["vta-int8"])
    assert shape.slots == 16 * 28 * 28 * 3
    result = accel.build(workload, "vta-int8").run(backend="sim")
    assert result.mismatches == 0
    assert result.cycles is not None
    assert shape.slots < result.cycles < 1.2 * shape.slots
