"""Transposed convolutions: results on every machine, without slots for the inserted zeros."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_space import fitting_plans
from accel.core.config import Config
from accel.core.isa import Alu, Gemm, Loops
from tests.compiler.convs import any_inputs, expected, layer_is_right, transposed
from tests.compiler.verdicts import stages_are_right
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

CONFIGS = ("vta", "gemm8x8", "tiny")


def right(workload: accel.Workload, machine: accel.Machine, seed: int, threads: int | None = None) -> None:
    """Compare with numpy, in any order of execution."""
    layer_is_right(accel.build(workload, machine, vthreads=threads), workload, seed)


@examples(40)
@given(st.data())
def test_any_transposed_convolution_on_any_machine(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    right(data.draw(transposed(machine.config)), machine, data.draw(st.integers(0, 99)))


@examples(25)
@given(st.data())
def test_any_transposed_convolution_on_a_machine_with_little_memory(data: st.DataObject) -> None:
    config = Config(
        name="small",
        batch=1,
        block_in=2,
        block_out=4,
        uop_bytes=256,
        inp_bytes=128,
        wgt_bytes=512,
        acc_bytes=512,
    )
    workload = data.draw(transposed(config, 3))
    if len(fitting_plans(conv_shape(workload, config), config, 1).rows):
        right(workload, accel.machine(config), data.draw(st.integers(0, 99)))
        return
    message = "not even the smallest tiles of this convolution fit configuration 'small'; they need "
    with pytest.raises(ScheduleError, match=message):
        accel.build(workload, accel.machine(config))


@pytest.mark.parametrize(("threads", "name"), diagonal([1, 2, 3], CONFIGS))
def test_threads(name: str, threads: int) -> None:
    workload = accel.conv2d_transpose(1, 20, 5, 7, 40, 4, padding=1, stride=2, bias=True, relu=True, shift=6)
    right(workload, accel.machine(name), 0, threads)


@examples(20)
@given(st.data())
def test_every_stage_of_the_compiler_computes_the_same(data: st.DataObject) -> None:
    machine = accel.machine("tiny")
    workload = data.draw(transposed(machine.config, 1))
    schedule = accel.build(workload, machine).schedule()
    inputs = any_inputs(workload, 0, 1000)
    want = expected(workload, inputs)
    stages_are_right(schedule, inputs, want)


@pytest.mark.parametrize(
    ("size", "channels", "kernel", "padding", "added", "products"),
    [
        (28, (64, 64), 4, 1, 0, (4 * 28 - 2) ** 2),
        (14, (128, 64), 3, 1, 1, (3 * 14 - 1) ** 2),
        (14, (128, 64), 2, 0, 0, (2 * 14) ** 2),
    ],
)
def test_zeros_between_elements_are_not_multiplied(
    size: int, channels: tuple[int, int], kernel: int, padding: int, added: int, products: int
) -> None:
    """Each input element meets each kernel element once, except in the part that padding cuts off."""
    workload = accel.conv2d_transpose(
        1,
        channels[0],
        size,
        size,
        channels[1],
        kernel,
        stride=2,
        padding=padding,
        output_padding=added,
        bias=True,
        relu=True,
        shift=8,
    )
    config = accel.machine("vta").config
    program = accel.build(workload, config)
    loops = [i for i in program.instructions if isinstance(i, Loops)]
    blocks = channels[0] * channels[1] // 256
    assert sum(i.uop_count for i in loops if isinstance(i, Gemm) and not i.reset) == blocks * products
    assert sum(i.uop_count for i in loops if isinstance(i, Alu)) == 4 * channels[1] // 16 * (2 * size) ** 2
    result = program.run()
    assert result.mismatches == 0
    assert result.cycles is not None
    slots = conv_shape(workload, config).slots
    assert slots < result.cycles < 1.06 * slots
    best = find_candidates(workload, config)[0].prediction
    assert best.cycles == pytest.approx(result.cycles, rel=0.01)
    figures = result.to_dict()
    assert figures["macs"] - figures["padding_macs"] == blocks * 256 * products


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"OC": 0}, "OC is 0; it must be a positive integer"),
        ({"stride": (2, 0)}, "stride is (2, 0); it must be a positive integer or two of them"),
        ({"output_padding": -1}, "output_padding is -1; it must be an integer from 0 on or two of them"),
        ({"output_padding": (0, 2)}, "output_padding is [0, 2]; it must be below the stride, [2, 2]"),
        ({"padding": 6}, "padding is [6, 6, 6, 6]; it leaves an output of -1 x -1"),
        ({"shift": 32}, "shift is 32; it must be in 0..31"),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"N": 1, "IC": 4, "H": 5, "W": 5, "OC": 4, "kernel": 3, "stride": 2}
    with refused(ShapeError, message):
        accel.conv2d_transpose(**(arguments | changes))  # type: ignore[arg-type]


def test_joined_boxes_have_no_more_micro_ops_than_the_memory() -> None:
    """Products of all boxes of a picture with padding would have 9 micro-ops."""
    sizes = {"uop_bytes": 32, "inp_bytes": 128, "wgt_bytes": 256, "acc_bytes": 64}
    m = accel.machine("tiny-int8", block_in=2, block_out=2, **sizes)
    workload = accel.conv2d_transpose(1, 6, 4, 5, 38, 5, padding=1, quantized=accel.Quantized(scale=0.03))
    program = accel.build(workload, m)
    assert program.run(program.random_inputs()).mismatches == 0
