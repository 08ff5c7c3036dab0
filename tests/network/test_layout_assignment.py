"""Strips between layers: the choice, the values, files and texts."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import accel
from accel.core.config import Config, load_config
from accel.graph.elementwise_operators import Add, Mul
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import Concat
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from accel.network.network_text import choices_text, network_text
from tests.network.networks import Small
from tests.thorough import also, diagonal

MACHINE = "gemm8x8-int8"
SIZES = {"uop_bytes": 4096, "inp_bytes": 8192, "wgt_bytes": 8192, "acc_bytes": 16384}
CUBE = {"batch": 4, "block_in": 4, "block_out": 4} | SIZES


def built(small: Small, *outputs: str, on: str | Config = MACHINE, keep: bool = False) -> NetworkProgram:
    return Network(graph=small.graph(*outputs)).build(on, keep=keep)


def mappings(program: NetworkProgram) -> list[str]:
    return [part.mapping for part in program.parts if part.on_machine]


def residual_blocks(dtype: str, channels: int = 16, size: int = 16) -> Small:
    """3x3 layers, residuals, a stride with a shortcut, depthwise and 1x1 layers."""
    small = Small((1, channels, size, size), dtype=dtype)
    small.conv("x", "a", 16, pad=1)
    small.conv("a", "b", 16, pad=1)
    small.conv("b", "c", 16, pad=1)
    small.add("a", "c", "d")
    small.conv("d", "e", 24, pad=1, stride=2)
    small.conv("d", "s", 24, kernel=1, stride=2)
    small.conv("e", "f", 24, pad=1)
    small.add("s", "f", "g")
    small.conv("g", "h", 24, pad=1, groups=24)
    small.conv("h", "i", 40, kernel=1)
    small.mean("i", "m")
    return small


@cache
def residual_program(dtype: str) -> NetworkProgram:
    return built(residual_blocks(dtype), "m")


@pytest.mark.parametrize("dtype", ["int8", also("uint8")])
def test_neighbouring_layers_share_strips(dtype: str) -> None:
    program = residual_program(dtype)
    (chain,) = program.chains
    named = mappings(program)
    assert sum("strips=8x1" in name for name in named) >= 6
    assert named[-1] == "turned=8x1"
    result = program.run(seed=3)
    assert result.mismatches == {}
    plain = [way.cycles for one in program.arrangements for way in one.alternatives if way.mapping == "plain"]
    assert result.cycles is not None
    assert 2 * result.cycles < sum(plain)
    assert chain.ends[-1] == len(chain.program.instructions)


def test_returned_results_are_plain_pictures() -> None:
    """Row exchanges turn strips into plain pictures."""
    program = built(residual_blocks("int8"), "m", keep=True)
    assert any("strips" in name for name in mappings(program))
    result = program.run(seed=4)
    assert result.mismatches == {}
    assert {"a", "b", "d", "e", "s", "g", "h", "i"} <= result.tensors.keys()


@pytest.mark.parametrize("kernel", [(5, 2), also((3, 1)), (1, 0)])
def test_halos_of_several_strips(kernel: tuple[int, int]) -> None:
    """Strips of one line whose windows read several strips, other block sizes, another base."""
    size, pad = kernel
    small = Small((1, 12, 4, 29), dtype="uint8")
    small.conv("x", "a", 12, kernel=1)
    small.conv("a", "b", 10, kernel=size, pad=pad)
    small.conv("b", "c", 12, kernel=size, pad=pad, groups=2)
    config = load_config(MACHINE).override(CUBE | {"mem_base": 1 << 20})
    program = built(small, "c", on=config)
    assert any("strips" in name for name in mappings(program))
    assert program.run(seed=5).mismatches == {}


@pytest.mark.parametrize("dtype", ["int8", also("uint8")])
def test_max_pools_in_strips(dtype: str) -> None:
    """Convolutions and max pools have different values of padding."""
    small = Small((1, 8, 16, 21), dtype=dtype)
    small.conv("x", "a", 16, pad=1)
    small.largest("a", "p")
    small.conv("p", "b", 16, pad=1)
    small.conv("a", "c", 16, pad=1)
    program = built(small, "b", "c")
    assert mappings(program)[1:] == ["strips=8x1"] * 3
    assert program.run(seed=2).mismatches == {}


def test_two_pictures_have_half_the_strips() -> None:
    small = Small((2, 16, 12, 12))
    small.conv("x", "a", 16, pad=1)
    small.conv("a", "b", 16, pad=1)
    program = built(small, "b")
    assert "strips=4x1" in mappings(program)[1]
    assert program.run(seed=6).mismatches == {}


@pytest.mark.parametrize("dtype", ["int8", also("uint8")])
def test_averages_of_several_pictures(dtype: str) -> None:
    small = Small((2, 16, 12, 7), dtype=dtype)
    small.conv("x", "a", 20, pad=1)
    small.mean("a", "m")
    program = built(small, "m")
    assert mappings(program)[1] == "turned=4x1"
    assert program.run(seed=6).mismatches == {}


@pytest.mark.parametrize(("kind", "picture"), diagonal(("Add", "Mul"), ((1, 7), (1, 16), (2, 8))))
def test_values_of_each_channel_lie_in_every_strip(kind: str, picture: tuple[int, int]) -> None:
    """The machine computes one vector of a picture, and the caller gives another one."""
    pictures, height = picture
    small = Small((pictures, 16, height, 9), dtype="uint8")
    vector, quantization = "v", Quantization.of(0.0391, 100)
    small.builder.input(
        Tensor(name=vector, shape=(pictures, 20, 1, 1), dtype="uint8", quantization=quantization)
    )
    small.conv("x", "a", 20, pad=1)
    small.mean("a", "m")
    small.conv("m", "f", 20, kernel=1)
    operator = Add() if kind == "Add" else Mul()
    scale = 0.613 if kind == "Add" else 1.8713
    for source, factor, output in (("a", "f", "g"), ("g_conv", vector, "h")):
        if source == "g_conv":
            small.conv("g", source, 20, kernel=1)
        quantization = Quantization.of(scale, 100)
        small.builder.emit(operator, [source, factor], output, dtype="uint8", quantization=quantization)
    small.conv("h", "y", 16, pad=1)
    config = load_config(MACHINE).override({"res_mul": 1})
    program = Network(graph=small.graph("y")).build(config)
    assert len(program.chains) == 1
    strips = height if height < 8 else 8 // pictures
    parts = {part.fused.output: part for part in program.parts}
    assert {parts[name].mapping for name in "gh"} == {f"strips={strips}x1"}
    result = program.run(seed=5)
    assert result.mismatches == {}


def test_a_full_batch_has_no_strips() -> None:
    small = Small((8, 16, 8, 8))
    small.conv("x", "a", 16, pad=1)
    small.conv("a", "b", 16, pad=1)
    program = built(small, "b")
    assert mappings(program) == ["plain", "plain"]
    assert not program.arrangements
    assert program.run(seed=6).mismatches == {}


def test_aliases_with_strips() -> None:
    small = Small((1, 8, 8, 8))
    small.conv("x", "a", 8, pad=1)
    small.conv("x", "b", 8, pad=1)
    quantization = small.builder.tensors["a"].quantization
    small.builder.emit(Concat(axis=1), ["a", "b"], "c", dtype="int8", quantization=quantization)
    small.conv("c", "d", 16, pad=1)
    small.conv("d", "e", 16, pad=1)
    program = built(small, "e", "d")
    assert program.run(seed=7).mismatches == {}


def test_layers_with_different_numbers_of_strips() -> None:
    """12 lines are six strips of two lines, 6 lines are six of one, 3 lines are three."""
    small = Small((1, 16, 24, 24))
    names = ["x", "a", "b", "c", "d"]
    for number, (source, output) in enumerate(pairwise(names)):
        small.conv(source, output, 32, pad=1, stride=1 + (number > 0))
    program = built(small, "d")
    strips = {name for name in mappings(program) if "strips" in name}
    assert len(strips) > 1
    assert program.run(seed=8).mismatches == {}


def test_alternatives_in_texts_and_files(tmp_path: Path) -> None:
    program = residual_program("int8")
    accel.save_network(program, tmp_path / "net.accel")
    loaded = accel.load_network(tmp_path / "net.accel")
    assert loaded.arrangements == program.arrangements != ()
    assert mappings(loaded) == mappings(program)
    by_name = {one.name: one for one in program.arrangements}
    taken, *others = by_name["b"].alternatives
    assert taken.mapping == "strips=8x1"
    assert min(one.cycles + one.exchange for one in others) > taken.cycles + taken.exchange
    assert f"  {taken.mapping}: {taken.cycles:,} + {taken.exchange:,} (chosen)" in choices_text(program)
    assert "strips=8x1" in network_text(program, "placed")
    assert "in 8 strips, 1 above, 1 below" in network_text(loaded, "memory")
    result = loaded.run(check=False)
    assert {layer.mapping for layer in result.layers} >= {"strips=8x1", "turned=8x1"}
    layer = next(layer for layer in result.layers if layer.name == "b")
    assert layer.alone == taken.cycles
    assert layer.to_dict()["alone"] == taken.cycles
    assert all(0 < one.busy <= one.alone for one in result.layers if one.busy is not None and one.alone)
    assert result.busy_share == sum(one.busy or 0 for one in result.layers) / result.cycles < 1


def test_machines_without_row_exchange() -> None:
    for settings in ({"batch": 2}, {"block_in": 16}, {"batch": 1}):
        small = Small((1, 16, 8, 8))
        small.conv("x", "a", 16, pad=1)
        small.conv("a", "b", 16, pad=1)
        program = built(small, "b", on=load_config(MACHINE).override(SIZES | settings))
        assert mappings(program)[1] == "plain"
        assert program.run(seed=9, backend="functional").mismatches == {}
