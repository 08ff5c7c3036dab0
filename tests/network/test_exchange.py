"""Exchanges of rows by themselves: from any layout to any other, in about as many cycles as predicted."""

from dataclasses import replace

import numpy as np
import pytest

from accel.base.errors import ScheduleError
from accel.compiler.codegen.dependence import insert_tokens
from accel.core.config import load_config
from accel.core.isa import Finish, Instruction
from accel.image.dram import Dram
from accel.network.exchange import SOURCE, TARGET, TURNED, Exchange
from accel.network.layout import Layout, Picture
from accel.proof.shared_dram import SharedDram
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.model import simulate_timing

CONFIG = load_config("gemm8x8-int8")
EIGHT = Layout(strips=8, lines=2)
AROUND = Layout(strips=8, lines=2, above=1, below=2, fill=-7)
PLAIN = Layout(strips=1, lines=16)


def packed(values: np.ndarray, layout: Layout, size: int) -> np.ndarray:
    """A tensor (N, blocks * size, H, W) in elements (block, line, column, row, channel), as documented."""
    pictures, channels, height, width = values.shape
    found = np.zeros((channels // size, layout.height, width, size, size), dtype=np.int8)
    for number in range(pictures):
        for strip in range(layout.strips):
            for line in range(layout.height):
                pixel = strip * layout.lines + line - layout.above
                row = number * layout.strips + strip
                inside = 0 <= pixel < height
                wanted = values[number, :, pixel] if inside else np.full((channels, width), layout.fill)
                found[:, line, :, row] = wanted.reshape(-1, size, width).transpose(0, 2, 1)
    return found


def carried_out(one: Exchange, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, int]:
    """The target's elements after an exchange, and its cycles."""
    contents = {SOURCE: source.tobytes(), TARGET: target.tobytes(), **one.constants}
    sizes = {name: len(data) for name, data in contents.items()}
    sizes[TURNED] = one.room * one.config.out_element_bytes
    offsets, reached = {}, 0
    for name, nbytes in sizes.items():
        offsets[name] = reached
        reached += -(-nbytes // 4096) * 4096
    if one.in_place:
        offsets[SOURCE] = offsets[TARGET]
    body = [instruction for instruction, _ in one.instructions(offsets)]
    memory = np.zeros(reached, dtype=np.uint8)
    for name, data in contents.items():
        memory[offsets[name] : offsets[name] + len(data)] = np.frombuffer(data, dtype=np.uint8)
    shared = SharedDram(body, one.config)
    program: list[Instruction] = [
        *insert_tokens(body, one.config, memory.view("<u4"), shared).program,
        Finish(),
    ]
    dram = Dram.of(one.config)
    dram.write(0, memory.tobytes())
    run = run_functional(program, Executor(one.config, dram, Scratchpads.random(one.config, 3)))
    assert not run.faults
    cycles = simulate_timing(program, one.config, address=reached).cycles
    assert cycles is not None
    found = dram.read(offsets[TARGET], sizes[TARGET]).view(np.int8)
    return found.reshape(target.shape), cycles


def turned(elements: np.ndarray, shift: int) -> np.ndarray:
    """Elements (block, line, column, row, channel) transposed, in the order (line, column, block)."""
    return np.ascontiguousarray(elements.transpose(1, 2, 0, 4, 3) + np.int8(shift))


@pytest.mark.parametrize("shift", [0, -128])
@pytest.mark.parametrize(("blocks", "above"), [(2, 0), (11, 1)])
def test_layouts_are_turned(shift: int, blocks: int, above: int) -> None:
    values = np.random.default_rng(2).integers(-128, 128, (1, blocks * 8, 16, 5), dtype=np.int8)
    picture = Picture(pictures=1, blocks=blocks, height=16, width=5)
    source = replace(EIGHT, above=above)
    target = replace(EIGHT, turned=True, shift=shift)
    one = Exchange(config=CONFIG, picture=picture, source=source, target=target)
    wanted = turned(packed(values, EIGHT, 8), shift)
    found, cycles = carried_out(one, packed(values, source, 8), np.zeros_like(wanted))
    assert np.array_equal(found, wanted)
    assert 0.7 * cycles < one.cycles < 1.3 * cycles


@pytest.mark.parametrize(
    ("pictures", "blocks", "source", "target"),
    [
        (1, 2, AROUND, AROUND),
        (1, 8, EIGHT, PLAIN),
        (1, 2, EIGHT, replace(PLAIN, above=1)),
        (1, 2, PLAIN, AROUND),
        (1, 3, Layout(strips=4, lines=4, below=1), Layout(strips=8, lines=2, above=3, fill=9)),
        (2, 1, Layout(strips=4, lines=4), Layout(strips=2, lines=8, above=1, below=1)),
        (2, 1, Layout(strips=4, lines=4, above=1), Layout(strips=1, lines=16)),
    ],
)
def test_rows_come_where_they_are_wanted(pictures: int, blocks: int, source: Layout, target: Layout) -> None:
    values = np.random.default_rng(1).integers(-128, 128, (pictures, blocks * 8, 16, 5), dtype=np.int8)
    picture = Picture(pictures=pictures, blocks=blocks, height=16, width=5)
    one = Exchange(config=CONFIG, picture=picture, source=source, target=target, in_place=source == target)
    wanted, given = (packed(values, layout, 8) for layout in (target, source))
    start = np.zeros_like(wanted)
    if one.in_place:
        own = slice(target.above, target.above + target.lines)
        start[:, own] = wanted[:, own]
    found, cycles = carried_out(one, given, start)
    assert np.array_equal(found, wanted)
    assert 0.7 * cycles < one.cycles < 1.3 * cycles


def test_what_does_not_fit_is_refused() -> None:
    tiny = CONFIG.override({"wgt_bytes": 512, "acc_bytes": 2048})
    picture = Picture(pictures=1, blocks=1, height=16, width=5)
    with pytest.raises(ScheduleError, match="lines of a layout do not fit"):
        _ = Exchange(config=tiny, picture=picture, source=EIGHT, target=PLAIN).cycles
    few = CONFIG.override({"uop_bytes": 64})
    with pytest.raises(ScheduleError, match="what an exchange of 16 lines needs"):
        _ = Exchange(config=few, picture=picture, source=EIGHT, target=PLAIN).cycles
    with pytest.raises(ScheduleError, match="turned that has other strips"):
        _ = Exchange(config=CONFIG, picture=picture, source=PLAIN, target=replace(EIGHT, turned=True)).cycles


def test_layouts_are_joined() -> None:
    assert (EIGHT | AROUND) == (AROUND | EIGHT) == AROUND
    assert AROUND.holds(EIGHT)
    assert not EIGHT.holds(AROUND)
    assert AROUND | replace(AROUND, fill=0) is None
    assert EIGHT | PLAIN is None
    assert str(AROUND) == "8 strips, 1 above, 2 below"
    assert str(PLAIN) == "plain"
    assert EIGHT | replace(EIGHT, turned=True) is None
    assert str(replace(EIGHT, turned=True)) == "8 strips, turned"
