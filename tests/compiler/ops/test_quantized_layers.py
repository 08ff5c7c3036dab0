"""Quantized layers: their meaning, their errors, and that programs compute them."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import AccelError, ProgramError, ScheduleError, ShapeError, TensorizeError
from accel.base.records import replace
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.quantized_expressions import QuantizedSum
from accel.compiler.operators.operator_registry import make_workload
from accel.core.isa import LoadPar, LoadRes, SetInp, SetOut, SetSum, StoreAdd, StoreReq
from tests.compiler.quantized import any_inputs, convolved, epilogues, finished, products
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right, stages_are_right
from tests.expect import refused
from tests.strategies import examples

SECOND = ("vta-int8", "gemm8x8-int8", "tiny-int8")
RESIDUAL = accel.QuantizedResidual(
    result_scale=0.0513477, scale=0.0312297, zero=3, dtype="uint8", sum_scale=0.0613371, sum_zero=-9
)


def scales(count: int, *, seed: int = 0, mean: float = -5.5) -> Any:
    """Return scales like those of networks, over an order of magnitude."""
    return np.exp(np.random.default_rng(seed).normal(mean, 0.7, count)).astype(np.float32)


# --- meaning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [0, 1, -1, 2**30, -(2**30), 2**31 - 1, -(2**31)])
def test_extreme_scales_and_biases(bias: int) -> None:
    """Scales start at 1e-11, and sums are at every half."""
    for scale in (1e-11, 2.0**-24, 2.0**-9, 0.0123, 0.5, 1.0, 1.5, 10.0):
        quantized = accel.Quantized(scale=scale, output_zero=-3)
        workload = accel.gemm(64, 3, 1, bias=True, quantized=quantized)
        a = np.arange(-32, 32, dtype=np.int8)[:, None]
        inputs = {
            "A": a,
            "B": np.array([[1, -128, 127]], dtype=np.int8),
            "bias": np.full(3, bias, dtype=np.int32),
        }
        want = finished(products(a, inputs["B"], quantized), inputs, quantized)
        np.testing.assert_array_equal(evaluate([workload.output], inputs)["C"], want)
        program_is_right(as_it_is(workload, "tiny-int8"), inputs, want)


@examples(40)
@given(st.data())
def test_any_product(data: st.DataObject) -> None:
    M, N, K = (data.draw(st.integers(1, most)) for most in (20, 40, 40))
    quantized = data.draw(epilogues(N))
    bias = data.draw(st.booleans())
    workload = accel.gemm(M, N, K, bias=bias, quantized=quantized)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    program_is_right(as_it_is(workload, data.draw(st.sampled_from(SECOND))), inputs, want)


@examples(40)
@given(st.data())
def test_any_convolution(data: st.DataObject) -> None:
    groups = data.draw(st.sampled_from([1, 1, 2, 6]))
    ic, oc = (groups * data.draw(st.integers(1, 24 // groups)) for _ in range(2))
    sizes = {"N": data.draw(st.integers(1, 2)), "IC": ic, "OC": oc, "groups": groups}
    sizes |= {side: data.draw(st.integers(3, 9)) for side in ("H", "W")}
    window = {"kernel": data.draw(st.sampled_from([1, 2, 3])), "stride": data.draw(st.integers(1, 2))}
    window["padding"] = data.draw(st.integers(0, window["kernel"] - 1))
    quantized = data.draw(epilogues(oc))
    workload = accel.conv2d(**sizes, **window, bias=data.draw(st.booleans()), quantized=quantized)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    program_is_right(as_it_is(workload, data.draw(st.sampled_from(SECOND))), inputs, want)


@examples(20)
@given(st.data())
def test_any_means(data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, most)) for most in (2, 40, 9, 9)]
    quantized = data.draw(epilogues(1, residual=False))
    workload = accel.global_avg_pool2d(*sizes, quantized=quantized)
    inputs = any_inputs(workload, 1)
    centered = inputs["data"].astype(np.int64) - quantized.input_zero
    want = finished(centered.sum(axis=(2, 3), keepdims=True), inputs, quantized)
    program_is_right(as_it_is(workload, data.draw(st.sampled_from(SECOND))), inputs, want)


def test_means_over_windows() -> None:
    quantized = accel.Quantized(scale=1.3 / 4, input_zero=5, output_zero=-2)
    workload = accel.avg_pool2d(1, 8, 6, 6, 2, quantized=quantized)
    data = any_inputs(workload, 0)["data"]
    sums = (data.astype(np.int64) - 5).reshape(1, 8, 3, 2, 3, 2).sum(axis=(3, 5))
    want = finished(sums, {}, quantized)
    program_is_right(as_it_is(workload, "vta-int8"), {"data": data}, want)
    with refused(
        ShapeError,
        "quantized windows have several sizes but one scale: count_padding makes them equal",
    ):
        accel.avg_pool2d(1, 8, 6, 6, 2, padding=1, quantized=quantized)


@pytest.mark.parametrize("name", SECOND)
def test_maxima_of_uint8(name: str) -> None:
    workload = accel.max_pool2d(1, 20, 9, 9, 3, stride=2, padding=1, dtype="uint8")
    data = any_inputs(workload, 3)["data"]
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = [padded[:, :, y:, x:][:, :, ::2, ::2][:, :, :5, :5] for y, x in np.ndindex(3, 3)]
    program_is_right(as_it_is(workload, name), {"data": data}, np.max(seen, axis=0))


@pytest.mark.parametrize("config", [{"batch": 8}, {"batch": 2, "block_in": 32, "block_out": 32}])
def test_other_blocks(config: dict[str, int]) -> None:
    """One image on a machine with a batch of eight, and with blocks of 32."""
    m = accel.machine("vta-int8", **config)
    quantized = accel.Quantized(scale=scales(40), input_zero=-7, output_zero=4, residual=RESIDUAL)
    workload = accel.conv2d(1, 20, 5, 7, 40, 3, padding=1, bias=True, quantized=quantized)
    inputs = any_inputs(workload, 2)
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    program_is_right(as_it_is(workload, m), inputs, want)


@pytest.mark.parametrize("block_in", [1, 4])
def test_blocks_of_one_channel(block_in: int) -> None:
    """The store unit uses the same parameters for each channel, or those of a channel."""
    m = accel.machine("tiny-int8", block_in=block_in, block_out=1)
    for options in ({}, {"bias": True}, {"quantized": accel.Quantized(scale=scales(5), output_zero=4)}):
        for workload in (
            accel.gemm(6, 5, 7, **options),
            accel.conv2d(1, 3, 5, 5, 5, 3, padding=1, **options),
        ):
            program = accel.build(workload, m)
            assert program.run(program.random_inputs()).mismatches == 0


@pytest.mark.parametrize("residual", [None, RESIDUAL])
def test_nests_on_the_way(residual: accel.QuantizedResidual | None) -> None:
    quantized = accel.Quantized(
        scale=scales(12), input_zero=9, input_dtype="uint8", output_zero=4, residual=residual
    )
    workload = accel.conv2d(1, 5, 4, 4, 12, 3, padding=1, bias=True, quantized=quantized)
    schedule = as_it_is(workload, "tiny-int8").schedule()
    inputs = any_inputs(workload, 2)
    stages_are_right(schedule, inputs, finished(convolved(workload, inputs, quantized), inputs, quantized))


def test_virtual_threads() -> None:
    quantized = accel.Quantized(scale=scales(64), output_zero=4, residual=RESIDUAL)
    workload = accel.gemm(32, 64, 32, bias=True, quantized=quantized)
    inputs = any_inputs(workload, 2)
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    for threads in (1, 2, 4):
        program_is_right(as_it_is(workload, "tiny-int8", vthreads=threads), inputs, want)


# --- programs ------------------------------------------------------------------------------------------


def test_instructions_of_a_program() -> None:
    """There is no ALU pass, one load of parameters, and each setting once."""
    quantized = accel.Quantized(scale=scales(64), input_zero=3, output_zero=4, residual=RESIDUAL)
    program = as_it_is(accel.gemm(64, 64, 64, bias=True, quantized=quantized), "vta-int8")
    kinds = [type(one).__name__ for one in program.instructions]
    assert "Alu" not in kinds
    assert "Store" not in kinds
    for kind in (LoadPar, SetInp, SetOut, SetSum):
        assert kinds.count(kind.__name__) == 1
    moved = [
        sum(one.x_size * one.y_size for one in program.instructions if isinstance(one, kind))
        for kind in (LoadRes, StoreAdd)
    ]
    assert moved == [64 * 4] * 2
    plain = as_it_is(accel.gemm(8, 8, 8, quantized=accel.Quantized(scale=0.01)), "vta-int8")
    assert any(isinstance(one, StoreReq) for one in plain.instructions)
    assert not any(isinstance(one, SetInp) for one in plain.instructions)


def test_a_tile_larger_than_the_queue_of_residuals() -> None:
    quantized = accel.Quantized(scale=0.01, residual=RESIDUAL)
    workload = accel.gemm(64, 16, 16, quantized=quantized)
    inputs = any_inputs(workload, 4)
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    for size in ("32", "64", "256", "4096"):
        m = accel.machine("vta-int8", res_bytes=size)
        program_is_right(as_it_is(workload, m), inputs, want)


def test_more_channels_than_parameters_fit() -> None:
    quantized = accel.Quantized(scale=scales(200))
    workload = accel.gemm(9, 200, 16, bias=True, quantized=quantized)
    inputs = any_inputs(workload, 4)
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    m = accel.machine("vta-int8", par_bytes=1024)
    program_is_right(as_it_is(workload, m), inputs, want)


def test_constants_and_files(tmp_path: Any) -> None:
    quantized = accel.Quantized(scale=scales(24), input_zero=3, output_zero=4, residual=RESIDUAL)
    workload = accel.dense(2, 30, 24, bias=True, quantized=quantized)
    inputs = any_inputs(workload, 4)
    known = {name: inputs.pop(name) for name in ("bias", "weight")}
    program = as_it_is(workload, "vta-int8", constants=known)
    program.save(tmp_path / "p.accel")
    loaded = accel.Program.load(tmp_path / "p.accel")
    assert loaded.inputs == {"data": ((2, 30), "int8"), "residual": ((2, 24), "uint8")}
    every = inputs | known
    want = finished(products(every["data"], known["weight"].T, quantized), every, quantized)
    program_is_right(loaded, inputs, want)
    assert loaded.source is not None
    assert loaded.source.options is not None
    options = loaded.source.options
    assert make_workload("dense", options.parameters) == workload


def test_expressions_as_data() -> None:
    quantized = accel.Quantized(scale=scales(24), input_zero=3, output_zero=4, residual=RESIDUAL)
    workload = accel.dense(2, 30, 24, bias=True, quantized=quantized)
    inputs = any_inputs(workload, 5)
    data = json.loads(json.dumps(expression_to_data([workload.output])))
    again = evaluate(expression_from_data(data), inputs)
    np.testing.assert_array_equal(again["out"], evaluate([workload.output], inputs)["out"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": [0.1, 0.2]}, "out has 2 scales; the channel x runs over 0..23"),
        ({"scales": [0.0]}, "the scale is 0.0; it must be a positive float32"),
        ({"scales": [[0.1]]}, "the scale is [[0.1]]; it must be a number, or one for each channel"),
        ({"zero": 256}, "zero is 256; it must be in -256..255"),
        ({"low": None}, "low is None; it must be in -256..255"),
    ],
)
def test_damaged_expressions(change: dict[str, Any], message: str) -> None:
    workload = accel.dense(2, 30, 24, quantized=accel.Quantized(scale=scales(24)))
    data = json.loads(json.dumps(expression_to_data([workload.output])))
    (entry,) = (one for one in data["tensors"] if one["name"] == "out")
    entry["body"][2][1] |= change
    with refused(ProgramError, f"the tensor expression is damaged: {message}"):
        expression_from_data(data)
    del entry["body"][2][1]["zero"]
    with pytest.raises(ProgramError, match="the tensor expression is damaged"):
        expression_from_data(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 9, "high": 8}, "high is 8; it must be in 9..127"),
        ({"low": -200}, "low is -200; it must be in -128..127"),
        ({"left": {"scale": 0.1, "zero": 0, "unsigned": 7}}, "unsigned is 7; it must be True or False"),
        ({"right": {"scale": 0.1, "zero": 0.5, "unsigned": False}}, "zero is 0.5; it must be in -128..127"),
        (
            {"addition": {"multipliers": [1, 1], "shift": 0, "offset": 0, "differences": 70000}},
            "differences is 70000; it must be in 0..65536",
        ),
    ],
)
def test_damaged_sums(change: dict[str, Any], message: str) -> None:
    quantized = accel.Quantized(scale=0.01, residual=RESIDUAL)
    assert quantized.sum is not None
    data = json.loads(json.dumps(quantized.sum.to_data()))
    assert QuantizedSum.from_data(data) == quantized.sum
    with refused(ShapeError, message):
        QuantizedSum.from_data(data | change)


def test_a_session_keeps_bytes_of_both_kinds() -> None:
    first = accel.Quantized(scale=0.01, output_zero=100, output_dtype="uint8")
    second = accel.Quantized(scale=0.01, input_zero=100, input_dtype="uint8", output_zero=-3)
    one = as_it_is(accel.gemm(8, 20, 16, quantized=first), "vta-int8")
    other = as_it_is(accel.gemm(8, 20, 20, quantized=second), "vta-int8")
    a, b = any_inputs(accel.gemm(8, 20, 16), 0), any_inputs(accel.gemm(8, 20, 20), 1)
    with accel.Session("vta-int8", backend="functional") as session:
        middle = session.run(one, {"A": a["A"], "B": a["B"]})["C"]
        assert middle.dtype == "uint8"
        last = session.run(other, {"A": middle, "B": b["B"]})["C"].numpy()
    sums = finished(products(a["A"], a["B"], first), {}, first)
    np.testing.assert_array_equal(last, finished(products(sums, b["B"], second), {}, second))


def test_random_inputs_seldom_saturate() -> None:
    quantized = accel.Quantized(scale=scales(64, mean=-5), input_zero=-100, output_zero=20)
    workload = accel.conv2d(1, 16, 8, 8, 64, 3, padding=1, bias=True, quantized=quantized)
    out = as_it_is(workload, "vta-int8").run(backend="functional").outputs["out"]
    assert np.isin(out, (-128, 127)).mean() < 0.05
    assert np.unique(out).size > 50


# --- errors --------------------------------------------------------------------------------------------


def _quantized(**values: Any) -> Any:
    return lambda: accel.Quantized(**{"scale": 0.1} | values)


def _residual(**values: Any) -> Any:
    return lambda: replace(RESIDUAL, **values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_quantized(scale=0.0), "the scale is 0.0; it must be a positive float32"),
        (_quantized(scale=[0.1, -1.0]), "the scale is -1.0 for channel 1; it must be a positive float32"),
        (_quantized(scale=1e39), "the scale is 1e+39; it must be a positive float32"),
        (_quantized(scale=1e-50), "the scale is 1e-50; it must be a positive float32"),
        (_quantized(scale=[0.1, np.nan]), "the scale is nan for channel 1; it must be a positive float32"),
        (_quantized(scale="x"), "the scale is 'x'; it must be a number, or one for each channel"),
        (_quantized(scale="0.5"), "the scale is '0.5'; it must be a number, or one for each channel"),
        (_quantized(scale=None), "the scale is None; it must be a number, or one for each channel"),
        (_quantized(scale=True), "the scale is True; it must be a number, or one for each channel"),
        (
            _quantized(scale=[[1], [1, 2]]),
            "the scale is [[1], [1, 2]]; it must be a number, or one for each channel",
        ),
        (
            _quantized(scale=np.ones((8, 1))),
            "the scale is an array of shape (8, 1); it must be a number, or one for each channel",
        ),
        (_quantized(scale=[]), "the scale is []; it must be a number, or one for each channel"),
        (_quantized(input_zero=128), "input_zero is 128; it must be in -128..127"),
        (
            _quantized(output_zero=-1, output_dtype="uint8"),
            "output_zero is -1; it must be in 0..255",
        ),
        (
            _quantized(input_dtype="int16"),
            "the type of a quantized tensor is 'int16'; it must be 'int8' or 'uint8'",
        ),
        (_quantized(clip=(3, 2)), "clip is (3, 2); it must be two ascending integers in -128..127"),
        (_quantized(residual=0.1), "the residual is 0.1; it must be a QuantizedResidual"),
        (_residual(zero=-1), "zero of the residual is -1; it must be in 0..255"),
        (_residual(sum_scale=-1), "sum_scale of the residual is -1.0; it must be a positive float32"),
        (
            _quantized(residual=replace(RESIDUAL, result_scale=1e30, sum_scale=1e-30)),
            "an operand's scale is 1e+60 times that of the sum; up to 2147483647 times can be added",
        ),
        (_residual(approximate=1), "approximate is 1; it must be True or False"),
        (_residual(order="both"), "the order is 'both'; it must be one of left, right, apart"),
        (
            _quantized(residual=replace(RESIDUAL, result_scale=0.05, scale=0.031, sum_scale=0.06)),
            "the sum with the residual differs from float32 for 186 of 65536 pairs of values, with the best "
            "integers that were found; approximate=True allows that",
        ),
        (
            lambda: accel.gemm(2, 3, 4, shift=2, quantized=accel.Quantized(scale=0.1)),
            "shift is 2 and quantized is given; put scale, clip and residual into quantized",
        ),
        (
            lambda: accel.gemm(
                2, 3, 4, relu=True, quantized=accel.Quantized(scale=0.1, output_zero=9, output_dtype="uint8")
            ),
            "relu is True and a scale is given; a clip that starts at the zero point does the same: "
            "--clip 9,255, or clip=(9, 255) of accel.Quantized",
        ),
        (
            lambda: accel.gemm(2, 3, 4, quantized=0.1),  # type: ignore[arg-type]
            "quantized is 0.1; it must be an accel.Quantized",
        ),
        (
            lambda: accel.gemm(2, 3, 4, quantized=accel.Quantized(scale=[0.1, 0.2])),
            "there are 2 scales; the layer has 3 output channels",
        ),
        (
            lambda: make_workload("gemm", {"M": 2, "N": 2, "K": 2, "input_zero": 3}),
            "input_zero also needs a scale; it must be given",
        ),
        (
            lambda: make_workload("gemm", {"M": 2, "N": 2, "K": 2, "scale": 1, "residual_scale": 3}),
            "the residual lacks result_scale; it must be given",
        ),
        (
            lambda: accel.dense(1, 70000, 4, quantized=accel.Quantized(scale=0.1, input_zero=1)),
            "out sums 70000 products of centered int8 and int8 values; int32 can hold 65535",
        ),
        (
            lambda: accel.global_avg_pool2d(1, 8, 4, 4, quantized=accel.Quantized(scale=[0.1] * 8)),
            "there are 8 scales; means of all channels have one",
        ),
        (
            lambda: accel.max_pool2d(1, 1, 2, 2, 2, dtype="int32"),
            "the type of a quantized tensor is 'int32'; it must be 'int8' or 'uint8'",
        ),
    ],
)
def test_refused_arguments(make: Any, message: str) -> None:
    with refused(ShapeError, message):
        make()


def test_an_addition_that_is_not_exact_can_be_allowed() -> None:
    residual = replace(RESIDUAL, result_scale=0.05, scale=0.031, sum_scale=0.06, approximate=True)
    quantized = accel.Quantized(scale=0.01, residual=residual)
    assert quantized.sum is not None
    differences = quantized.sum.addition.differences
    assert differences > 0
    program = as_it_is(accel.gemm(40, 40, 8, quantized=quantized), "vta-int8")
    assert program.run(backend="functional").mismatches == 0
    assert f'"differences": {differences}' in json.dumps(expression_to_data(program.outputs))


def test_machines_of_the_first_generation() -> None:
    workload = accel.gemm(4, 4, 4, quantized=accel.Quantized(scale=0.1))
    message = (
        "gemm is quantized by scales and zero points; configuration 'vta' has post=0 and only shifts sums: "
        "give shift=N instead of quantized, or take a machine with post=1, as 'vta-int8'"
    )
    with refused(ScheduleError, message):
        as_it_is(workload, "vta")
    with pytest.raises(TensorizeError, match="has post=0, and only machines with post=1"):
        as_it_is(accel.max_pool2d(1, 4, 4, 4, 2, dtype="uint8"), "vta")
    with refused(
        ScheduleError,
        "machine 'vta' has post=0, whose store unit only copies; one with post=1, as 'vta-int8', requantizes",
    ):
        _ = accel.machine("vta").post
    with pytest.raises(AccelError, match="no scope 'par_buffer'"):
        _ = accel.machine("vta").par_buffer


# --- sums --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", SECOND)
@pytest.mark.parametrize(("dtype", "zero"), [("int8", -5), ("uint8", 77), ("int8", 0)])
def test_sums_are_stored_as_int32(machine: str, dtype: str, zero: int) -> None:
    quantized = accel.Quantized(scale=1.0, input_zero=zero, input_dtype=dtype, output_dtype="int32")
    rng = np.random.default_rng(0)
    bounds = np.iinfo(dtype)
    matrix = rng.integers(bounds.min, bounds.max + 1, (13, 40)).astype(dtype)
    weights = rng.integers(-128, 128, (40, 21)).astype(np.int8)
    want = (matrix.astype(np.int32) - zero) @ weights.astype(np.int32)
    program = as_it_is(accel.gemm(13, 21, 40, quantized=quantized), machine)
    program_is_right(program, {"A": matrix, "B": weights}, want)
    workload = accel.conv2d(1, 6, 7, 5, 9, 3, padding=1, stride=2, quantized=quantized)
    picture = rng.integers(bounds.min, bounds.max + 1, (1, 6, 7, 5)).astype(dtype)
    kernel = rng.integers(-128, 128, (9, 6, 3, 3)).astype(np.int8)
    inputs = {"data": picture, "weight": kernel}
    sums = evaluate([workload.output], inputs)["out"]
    assert sums.dtype == np.int32
    assert np.abs(sums).max() > 255
    program_is_right(as_it_is(workload, machine), inputs, sums)


def test_sums_have_no_epilogue() -> None:
    message = (
        "output_dtype is 'int32', which keeps the sums: scale must be 1 and output_zero 0, without clip, "
        "table and residual"
    )
    for changed in ({"scale": 0.5}, {"output_zero": 1}, {"clip": (0, 9)}):
        with refused(ShapeError, message):
            accel.Quantized(**{"scale": 1.0, "output_dtype": "int32"} | changed)
    with refused(ShapeError, "output_dtype is 'int32', which keeps the sums; they have no bias"):
        accel.gemm(2, 3, 4, bias=True, quantized=accel.Quantized(scale=1.0, output_dtype="int32"))


@pytest.mark.parametrize("machine", SECOND)
@pytest.mark.parametrize(("kernel", "stride", "added"), [(2, 2, 0), (3, 2, 1), (4, 2, 0), (2, 3, 0)])
def test_transposed_convolutions(machine: str, kernel: int, stride: int, added: int) -> None:
    quantized = accel.Quantized(
        scale=scales(7), input_zero=131, input_dtype="uint8", output_zero=9, output_dtype="uint8"
    )
    workload = accel.conv2d_transpose(
        1, 10, 5, 4, 7, kernel, stride=stride, output_padding=added, bias=True, quantized=quantized
    )
    inputs = any_inputs(workload, 3)
    want = evaluate([workload.output], inputs)["out"]
    program_is_right(as_it_is(workload, machine), inputs, want)
    rows = (5 - 1) * stride + kernel + added
    columns = (4 - 1) * stride + kernel + added
    sums = np.zeros((1, 7, rows, columns), np.int64)
    centered = inputs["data"].astype(np.int64) - 131
    for y in range(kernel):
        for x in range(kernel):
            part = np.einsum("nchw,co->nohw", centered, inputs["weight"][:, :, y, x].astype(np.int64))
            sums[:, :, y : y + 4 * stride + 1 : stride, x : x + 3 * stride + 1 : stride] += part
    np.testing.assert_array_equal(finished(sums, inputs, quantized), want)
