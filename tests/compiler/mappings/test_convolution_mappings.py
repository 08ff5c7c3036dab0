"""Mappings of convolutions give the same results, in numpy and on machines."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.random_inputs import random_inputs
from accel.compiler.mappings import mapping_choice
from accel.compiler.mappings.convolution_mappings import find_window_mapping, window_mappings
from accel.compiler.mappings.mapping import PLAIN, workload_tensors
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.image.tensor_view import View
from tests.compiler.running import mapped_and_loaded

_SIZES = ("N", "IC", "H", "W", "OC", "kernel")
LAYERS: dict[str, dict[str, Any]] = {
    name: dict(zip(_SIZES, sizes, strict=True)) | others
    for name, sizes, others in (
        ("first", (1, 3, 11, 14, 8, 5), {"stride": 2, "padding": 2, "bias": True, "shift": 7}),
        ("dilated", (2, 5, 9, 8, 7, (3, 2)), {"dilation": (2, 3), "padding": (1, 0, 2, 1)}),
        ("grouped", (1, 6, 7, 9, 4, 3), {"padding": 1, "groups": 2, "residual": True, "shift": 6}),
        ("depthwise", (3, 5, 10, 7, 5, 3), {"stride": (2, 1), "padding": 1, "groups": 5, "bias": True}),
        ("pointwise", (1, 9, 6, 5, 10, 1), {"stride": 2, "relu": True}),
    )
}
NAMES = (
    *("plain", "columns", "rows", "windows", "pixels", "strips=2x1", "strips=1x3", "strips=2x2"),
    *("blocks=2x2", "blocks=1x3", "windows+blocks=2x2", "columns+strips=3x1", "rows+blocks=2x3+strips=1x2"),
)


def quantized(layer: dict[str, Any]) -> dict[str, Any]:
    """Return the layer with zero points and a scale for each channel."""
    kept = {key: layer[key] for key in layer if key not in ("shift", "relu", "residual")}
    scales = [0.01 * (1 + n) for n in range(layer["OC"])]
    return kept | {"quantized": accel.Quantized(scale=scales, input_zero=-7, output_zero=3)}


def drawn(workload: accel.Workload, seed: int) -> dict[str, Any]:
    """Return random inputs as a program draws them."""
    return random_inputs(expression_from_data(expression_to_data([workload.output])), seed)


def cases() -> Iterator[Any]:
    for name, layer in LAYERS.items():
        for kind, given in (("shifted", layer), ("quantized", quantized(layer))):
            workload = accel.conv2d(**given)
            for mapping in NAMES:
                try:
                    find_window_mapping(workload, mapping)
                except ScheduleError:
                    continue
                yield pytest.param(workload, mapping, id=f"{name}-{kind}-{mapping}")


@pytest.mark.parametrize(("workload", "name"), list(cases()))
def test_results_in_numpy(workload: accel.Workload, name: str) -> None:
    """Pack the inputs, evaluate the mapping's operator, and unpack its result."""
    mapping = find_window_mapping(workload, name)
    assert mapping.name == name or not mapping.views
    inputs = drawn(workload, 3)
    shapes = {one.name: one.shape for one in workload_tensors(mapping.workload)}
    arranged = {
        key: mapping.views[key].gather(value, shapes[key]) if key in mapping.views else value
        for key, value in inputs.items()
    }
    found = evaluate([mapping.workload.output], arranged)["out"]
    if "out" in mapping.views:
        assert mapping.views["out"].is_one_to_one
        found = mapping.views["out"].scatter(found)
    expected = evaluate([workload.output], inputs)["out"]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    for key in ("data", "weight"):
        if key in mapping.views:
            view, value = mapping.views[key], inputs[key]
            back = view.scatter(view.gather(value, shapes[key]))
            seen = view.scatter(np.ones(shapes[key], dtype=np.bool_))
            np.testing.assert_array_equal(back[seen], value[seen])
            assert key == "data" or seen.all()


def test_names_of_mappings_are_unique() -> None:
    for layer in LAYERS.values():
        workload = accel.conv2d(**layer)
        for config in ("vta", "gemm8x8", "tiny"):
            found = list(window_mappings(workload, accel.machine(config).config))
            names = [one.name for one in found]
            assert len(set(names)) == len(names)
            for one in found:
                assert find_window_mapping(workload, one.name).views == one.views


@pytest.mark.parametrize(
    ("layer", "name", "config"),
    [
        ("first", "windows", "vta-int8"),
        ("first", "columns+strips=2x1", "tiny"),
        ("pointwise", "pixels", "gemm8x8-int8"),
        ("depthwise", "blocks=2x2", "tiny-int8"),
        ("grouped", "strips=2x2", "gemm8x8"),
        ("first", "windows+strips=3x2", "gemm8x8"),
    ],
)
def test_results_on_a_machine(layer: str, name: str, config: str, tmp_path: Any) -> None:
    given = LAYERS[layer]
    if config.endswith("int8"):
        given = quantized(given)
    workload = accel.conv2d(**given)
    program = mapped_and_loaded(workload, config, name, tmp_path / "p.accel")
    again = accel.build(workload, config, steps=program.schedule().steps, mapping=name)
    assert again.code == program.code


def test_constants_and_large_biases() -> None:
    """A bias that exceeds the folded program needs another program, with the same mapping."""
    workload = accel.conv2d(**LAYERS["first"])
    inputs = drawn(workload, 1)
    program = accel.build(workload, "vta", mapping="blocks=1x2", constants={"weight": inputs.pop("weight")})
    for bias in (inputs["bias"], np.full(8, -(2**31), dtype=np.int32)):
        assert program.run(inputs | {"bias": bias}).mismatches == 0


def test_auto_chooses_mappings_that_save_enough() -> None:
    """A first layer moves its windows into channels. The plain mapping wins if others save little."""
    first = accel.conv2d(1, 3, 20, 20, 16, 7, stride=2, padding=3, shift=8)
    assert accel.build(first, "vta").mapping in ("columns", "rows", "windows")
    assert accel.build(first, "vta", mapping=PLAIN).mapping == PLAIN
    assert accel.build(accel.conv2d(1, 16, 8, 8, 16, 3, padding=1, shift=8), "vta").mapping == PLAIN
    batch = accel.conv2d(1, 64, 14, 14, 64, 1, shift=8)
    assert accel.build(batch, "gemm8x8").mapping == "pixels"
    assert "out" not in [t.name for t in accel.build(batch, "gemm8x8", keep_results=True).tensors if t.view]


def test_a_smaller_input_needs_less_saving() -> None:
    """A 1x1 convolution with stride 2 skips values: the host packs a quarter of them."""
    config = accel.machine("vta", block_in=32, block_out=32, bus_bits=128).config
    found = choose_mapping(accel.conv2d(1, 256, 14, 14, 512, 1, stride=2, shift=8), config)
    assert [one.name for one in found.compared] == ["windows", PLAIN]
    taken, usual = (one.predicted_cycles for one in found.compared)
    assert taken is not None
    assert usual is not None
    assert 0.9 < taken / usual < 0.95


@pytest.mark.parametrize("machine", ["vta", "gemm8x8", "ecp5-int8"])
def test_a_bound_of_the_plain_mapping_changes_no_choice(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, layers = accel.machine(machine).config, [accel.conv2d(**one) for one in LAYERS.values()]
    layers.append(accel.conv2d(1, 3, 40, 40, 24, 5, stride=2, shift=6))
    choices = [choose_mapping(one, config) for one in layers]
    monkeypatch.setattr(mapping_choice, "_saves_surely", lambda *_, **__: False)
    without = [choose_mapping(one, config) for one in layers]
    assert [one.mapping.name for one in choices] == [one.mapping.name for one in without]
    assert [one.candidates for one in choices] == [one.candidates for one in without]
    plain = [next(way for way in one.compared if way.name == PLAIN) for one in choices]
    assert any(way.predicted_cycles is None for way in plain)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("im2col", "joins columns"),
        ("strips=0x1", "joins columns"),
        ("strips=1x99", "strips would be empty"),
        ("blocks=2x2", "a dilation"),
        ("", "joins columns"),
    ],
)
def test_impossible_mappings(name: str, why: str) -> None:
    workload = accel.conv2d(**LAYERS["dilated"])
    with pytest.raises(ScheduleError, match=why):
        accel.build(workload, "vta", mapping=name)


def test_other_operators_are_plain() -> None:
    with pytest.raises(ScheduleError, match="plain one only"):
        accel.build(accel.gemm(16, 16, 16), "vta", mapping="windows")


def test_sessions_reuse_packed_results() -> None:
    """The result of a pixel mapping is the next one's input. A different layout is packed again."""
    layer = accel.conv2d(1, 16, 4, 4, 16, 1, shift=6)
    by_pixels, plain = (accel.build(layer, "gemm8x8", mapping=name) for name in ("pixels", PLAIN))
    weight = drawn(layer, 4)["weight"]
    data = drawn(layer, 5)["data"]
    with accel.Session("gemm8x8") as session:
        first = session.run(by_pixels, {"data": data, "weight": weight})
        before = session.packing.kept
        second = session.run(by_pixels, {"data": first["out"], "weight": weight})
        assert session.packing.kept > before
        third = session.run(plain, {"data": first["out"], "weight": weight})
        np.testing.assert_array_equal(second["out"].numpy(), third["out"].numpy())


def test_a_view_with_overlaps_is_not_one_to_one() -> None:
    view = View(shape=(3,), before=(0,), sizes=(2, 2), coefficients=((1, 1),))
    assert not view.is_one_to_one
    assert replace(view, coefficients=((2, 1),)).is_one_to_one
