"""Convolutions and dense layers: results on every machine, with default and with own schedules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.ops.conv2d import conv2d
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_space import fitting_plans
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.core.isa import Load, Memory
from accel.te import Schedule
from tests.compiler.convs import any_inputs, convolutions, epilogues, expected, layer_is_right
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import stages_are_right
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

CONFIGS = ("vta", "gemm8x8", "tiny")


@examples(80)
@given(st.data())
def test_any_convolution_on_any_machine(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(convolutions(machine.config))
    build = data.draw(st.sampled_from((as_it_is, accel.build)))
    layer_is_right(build(workload, machine), workload, data.draw(st.integers(0, 99)))


@examples(40)
@given(st.data())
def test_any_convolution_on_machines_with_little_memory(data: st.DataObject) -> None:
    """Scratchpads of a few dozen elements force small tiles, single kernel rows and repeated loads of the
    bias."""
    config = Config(
        name="small",
        batch=data.draw(st.sampled_from([1, 2])),
        block_in=2,
        block_out=data.draw(st.sampled_from([2, 4])),
        uop_bytes=128,
        inp_bytes=256,
        wgt_bytes=512,
        acc_bytes=512,
    )
    workload = data.draw(convolutions(config, 6))
    if len(fitting_plans(conv_shape(workload, config), config, 1).rows):
        layer_is_right(as_it_is(workload, accel.machine(config)), workload)
        return
    message = "not even the smallest tiles of this convolution fit configuration 'small'; they need "
    with pytest.raises(ScheduleError, match=message):
        as_it_is(workload, accel.machine(config))


@examples(40)
@given(st.data())
def test_any_dense_layer(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    config = machine.config
    sizes = [data.draw(st.integers(1, 3 * n)) for n in (config.batch, config.block_in, config.block_out)]
    workload = accel.dense(*sizes, **data.draw(epilogues))
    layer_is_right(as_it_is(workload, machine), workload)


@pytest.mark.parametrize(("threads", "name"), diagonal([1, 2, 3, 4], CONFIGS))
def test_threads(name: str, threads: int) -> None:
    workload = conv2d(1, 20, 10, 7, 40, 3, padding=1, stride=(1, 2), bias=True, relu=True, shift=6)
    program = as_it_is(workload, name, vthreads=threads)
    layer_is_right(program, workload)
    (split,) = [s for s in program.schedule().steps if s["op"] == "bind"] or [{"axis": None}]
    assert (threads > 1) == (split["axis"] is not None)


def test_a_bias_too_large_to_fold() -> None:
    """The compiler then keeps reset and bias separate."""
    workload = conv2d(1, 16, 5, 5, 16, 3, padding=1, bias=True, shift=8)
    inputs = any_inputs(workload, 0) | {"bias": np.full(16, -(1 << 31), dtype=np.int32)}
    inputs["data"][:] = 1
    inputs["weight"][:] = 1
    program = as_it_is(workload, "vta")
    assert program.folded
    np.testing.assert_array_equal(
        program.run(inputs, backend="functional").outputs["out"], expected(workload, inputs)
    )


def test_constant_weights() -> None:
    workload = conv2d(1, 20, 6, 6, 12, 3, padding=1, bias=True, relu=True, shift=7)
    inputs = any_inputs(workload, 3)
    constants = {name: inputs.pop(name) for name in ("weight", "bias")}
    program = as_it_is(workload, "vta", constants=constants)
    assert [t.name for t in program.tensors if t.role == "input"] == ["data"]
    want = expected(workload, inputs | constants)
    np.testing.assert_array_equal(program.run(inputs, backend="functional").outputs["out"], want)


# --- own schedules -----------------------------------------------------------------------------------


def padded_on_the_fly(workload: accel.Workload, machine: Machine, rows: int) -> Schedule:
    """Return a schedule whose window is a stage in inp_buffer, so that LOADs write its zeros."""
    config = machine.config
    s = te.create_schedule(workload.output)
    output, sums = s[workload.output], s[workload.sums]
    sums.set_scope(machine.acc_buffer)
    done = s[s.cache_write(workload.output, machine.acc_buffer)]
    n, o, y, x = output.axis
    yo, yi = output.split(y, rows)
    output.reorder(yo, n, o, yi, x)
    s[s.cache_read(s.tensor("bias"), machine.acc_buffer)].compute_root()
    for stage in (sums, done):
        stage.compute_at(output, yo)
    s["window"].set_scope(machine.inp_buffer)
    weights = s[s.cache_read(s.tensor("weight"), machine.wgt_buffer)]
    n, o, y, x = sums.axis
    c, dy, dx = sums.reduce_axis
    no, oo, co, ni, oi, ci = sums.tile(n, o, c, config.batch, config.block_out, config.block_in)
    sums.reorder(co, no, oo, y, x, dy, dx, ni, oi, ci)
    sums.tensorize(ni, machine.gemm)
    s["window"].compute_at(sums, co)
    weights.compute_at(sums, co)
    n, o, y, x = done.axis
    no, oo, ni, oi = done.tile(n, o, config.batch, config.block_out)
    done.reorder(no, oo, y, x, ni, oi)
    done.tensorize(ni, machine.alu)
    return s


@examples(30)
@given(st.data())
def test_padding_on_the_fly(data: st.DataObject) -> None:
    padding = [data.draw(st.integers(0, 20)) for _ in range(4)]
    padding[data.draw(st.integers(0, 3))] += 1
    workload = conv2d(
        data.draw(st.integers(1, 2)),
        data.draw(st.integers(1, 10)),
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 10)),
        (data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))),
        stride=data.draw(st.integers(1, 2)),
        padding=padding,
        bias=True,
        shift=3,
    )
    machine = accel.machine("tiny", inp_bytes=16 << 10, acc_bytes=64 << 10)
    s = padded_on_the_fly(workload, machine, data.draw(st.integers(1, 20)))
    inputs = any_inputs(workload, 0, 1000)
    want = expected(workload, inputs)
    np.testing.assert_array_equal(te.interpret(te.tensorize(s), inputs)["out"], want)
    program = as_it_is(s, machine)
    np.testing.assert_array_equal(program.run(inputs, backend="functional").outputs["out"], want)


def test_padding_on_the_fly_is_one_load() -> None:
    workload = conv2d(1, 4, 6, 5, 8, 3, padding=(1, 2, 3, 4), bias=True, shift=3)
    program = as_it_is(padded_on_the_fly(workload, accel.machine("tiny", inp_bytes="2KiB"), 8), "tiny")
    (load,) = [i for i in program.instructions if isinstance(i, Load) and i.memory == Memory.INP]
    assert (load.y_size, load.x_size, load.x_stride) == (6, 5, 5)
    assert (load.y_pad_0, load.x_pad_0, load.y_pad_1, load.x_pad_1) == (1, 2, 3, 4)


@examples(20)
@given(st.data())
def test_every_stage_of_the_compiler_computes_the_same(data: st.DataObject) -> None:
    machine = accel.machine("tiny")
    workload = data.draw(convolutions(machine.config, 1))
    schedule = as_it_is(workload, machine).schedule()
    inputs = any_inputs(workload, 0, 1000)
    want = expected(workload, inputs)
    stages_are_right(schedule, inputs, want)


def test_a_convolution_of_nothing_but_padding() -> None:
    workload, machine = conv2d(1, 4, 1, 1, 8, 1, stride=2, padding=(1, 0, 0, 0), bias=True), "tiny"
    program = as_it_is(workload, machine)
    layer_is_right(program, workload)
    inputs = any_inputs(workload, 0)
    stages_are_right(program.schedule(), inputs, expected(workload, inputs))
    assert not any(isinstance(i, Load) and i.memory is Memory.INP for i in program.instructions)


# --- the workload --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "channels"), diagonal([(1, 1), (1, 2), (2, 1)], [(1, 1), (2, 1), (3, 2)]), ids=str
)
def test_groups_where_a_block_has_one_channel(blocks: tuple[int, int], channels: tuple[int, int]) -> None:
    """Loops of a block that run once share an index with others: ``data[o+c]``."""
    machine = accel.machine("tiny", block_in=blocks[0], block_out=blocks[1])
    inputs, outputs = (2 * count for count in channels)
    for kernel, padding in ((1, 0), (3, 1)):
        workload = conv2d(1, inputs, 5, 5, outputs, kernel, padding=padding, groups=2, bias=True, shift=3)
        layer_is_right(as_it_is(workload, machine), workload)


def test_as_data_and_back() -> None:
    output = conv2d(1, 2, 5, 6, 3, 3, padding=(1, 0, 2, 1), stride=2, bias=True, shift=4).output
    data = expression_to_data([output])
    assert expression_to_data(expression_from_data(data)) == data


def test_unread_rows_are_skipped() -> None:
    """This holds for 1x1 kernels with a stride, unless they read padding."""
    window, _ = conv2d(1, 1, 9, 9, 1, 1, stride=2).factors
    assert window.tensor.shape == (1, 1, 5, 9)
    window, _ = conv2d(1, 1, 9, 9, 1, 1, stride=2, padding=1).factors
    assert window.tensor.shape == (1, 1, 11, 11)
    window, _ = conv2d(1, 1, 9, 9, 1, (1, 3), stride=2, padding=(0, 0, 0, 2)).factors
    assert window.tensor.shape == (1, 1, 9, 11)
    plain, _ = conv2d(1, 1, 9, 9, 1, 3).factors
    assert plain.tensor.name == "data"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"N": 0}, "N is 0; it must be a positive integer"),
        ({"OC": True}, "OC is True; it must be a positive integer"),
        ({"kernel": (3, 0)}, "kernel is (3, 0); it must be a positive integer or two of them"),
        ({"kernel": (3, 3, 3)}, "kernel is (3, 3, 3); it must be a positive integer or two of them"),
        ({"stride": 0}, "stride is 0; it must be a positive integer or two of them"),
        ({"dilation": 0}, "dilation is 0; it must be a positive integer or two of them"),
        ({"dilation": (4, 1)}, "the kernel is 9 high; the input with its padding is 7"),
        ({"padding": -1}, "padding is -1; it must be 1, 2 or 4 integers, none negative"),
        ({"padding": (1, 2, 3)}, "padding is (1, 2, 3); it must be 1, 2 or 4 integers, none negative"),
        ({"kernel": (8, 1)}, "the kernel is 8 high; the input with its padding is 7"),
        ({"kernel": (1, 8)}, "the kernel is 8 wide; the input with its padding is 7"),
        ({"shift": 32}, "shift is 32; it must be in 0..31"),
        ({"clip": (3, 2)}, "clip is (3, 2); it must be two ascending integers in -128..127"),
        ({"clip": (0, 128)}, "clip is (0, 128); it must be two ascending integers in -128..127"),
        (
            {"IC": 20000},
            "out sums 180000 products of int8 values; int32 can hold 131071",
        ),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"N": 1, "IC": 4, "H": 5, "W": 5, "OC": 4, "kernel": 3, "padding": 1}
    with refused(ShapeError, message):
        conv2d(**({"bias": True} | arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("height", "stride", "dilation"), [(4, 1, 2), (1, 2, 1)])
def test_strides_of_single_iterations_fit_the_fields_of_small_scratchpads(
    height: int, stride: int, dilation: int
) -> None:
    """``inp`` holds two elements, and the factors of its addresses have one bit."""
    sizes = {"batch": 4, "block_in": 2, "block_out": 2}
    pads = {"uop_bytes": 16, "inp_bytes": 16, "wgt_bytes": 16, "acc_bytes": 64}
    workload = accel.conv2d(1, 8, height, 2, 4, 2, padding=1, stride=stride, dilation=dilation)
    program = accel.build(workload, accel.machine("tiny-int8", **sizes, **pads))
    assert program.run(program.random_inputs()).mismatches == 0
