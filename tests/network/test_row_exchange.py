"""Row exchanges between layouts: results and predicted cycles."""

import numpy as np
import pytest

from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.codegen.token_insertion import insert_tokens
from accel.core.config import load_config
from accel.core.isa import Finish, Instruction
from accel.image.dram import Dram
from accel.network.row_exchange import SOURCE, TARGET, TRANSPOSED, RowExchange
from accel.network.strip_layout import PictureSize, StripLayout
from accel.proof.shared_dram import SharedDram
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.timing_model import simulate_timing

CONFIG = load_config("gemm8x8-int8")
EIGHT = StripLayout(strips=8, lines=2)
FOUR = StripLayout(strips=4, lines=4)
AROUND = StripLayout(strips=8, lines=2, halo_above=1, halo_below=2, fill=-7)
PLAIN = StripLayout(strips=1, lines=16)


def pack_picture(values: np.ndarray, layout: StripLayout, size: int) -> np.ndarray:
    """Pack a tensor (N, blocks * size, H, W) into elements (block, line, column, row, channel)."""
    pictures, channels, height, width = values.shape
    found = np.zeros((channels // size, layout.height, width, size, size), dtype=np.int8)
    for number in range(pictures):
        for strip in range(layout.strips):
            for line in range(layout.height):
                pixel = strip * layout.lines + line - layout.halo_above
                row = number * layout.strips + strip
                inside = 0 <= pixel < height
                wanted = values[number, :, pixel] if inside else np.full((channels, width), layout.fill)
                found[:, line, :, row] = wanted.reshape(-1, size, width).transpose(0, 2, 1)
    return found


def run_exchange(one: RowExchange, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, int]:
    contents = {SOURCE: source.tobytes(), TARGET: target.tobytes(), **one.constants}
    sizes = {name: len(data) for name, data in contents.items()}
    sizes[TRANSPOSED] = one.scratch_elements * one.config.out_element_bytes
    offsets, reached = {}, 0
    for name, nbytes in sizes.items():
        offsets[name] = reached
        reached += -(-nbytes // 4096) * 4096
    if one.is_in_place:
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


def transpose_elements(elements: np.ndarray, shift: int) -> np.ndarray:
    """Transpose elements (block, line, column, row, channel), in the order (line, column, block)."""
    return np.ascontiguousarray(elements.transpose(1, 2, 0, 4, 3) + np.int8(shift))


@pytest.mark.parametrize("shift", [0, -128])
@pytest.mark.parametrize(("blocks", "above"), [(2, 0), (11, 1)])
def test_transposed_layouts(shift: int, blocks: int, above: int) -> None:
    values = np.random.default_rng(2).integers(-128, 128, (1, blocks * 8, 16, 5), dtype=np.int8)
    size = PictureSize(pictures=1, blocks=blocks, height=16, width=5)
    source = replace(EIGHT, halo_above=above)
    target = replace(EIGHT, transposed=True, shift=shift)
    one = RowExchange(config=CONFIG, size=size, source=source, target=target)
    wanted = transpose_elements(pack_picture(values, EIGHT, 8), shift)
    found, cycles = run_exchange(one, pack_picture(values, source, 8), np.zeros_like(wanted))
    assert np.array_equal(found, wanted)
    assert 0.7 * cycles < one.cycles < 1.3 * cycles


@pytest.mark.parametrize(
    ("pictures", "blocks", "source", "target"),
    [
        (1, 2, AROUND, AROUND),
        (1, 8, EIGHT, PLAIN),
        (1, 2, EIGHT, replace(PLAIN, halo_above=1)),
        (1, 2, PLAIN, AROUND),
        (
            1,
            3,
            StripLayout(strips=4, lines=4, halo_below=1),
            StripLayout(strips=8, lines=2, halo_above=3, fill=9),
        ),
        (2, 1, FOUR, StripLayout(strips=2, lines=8, halo_above=1, halo_below=1)),
        (2, 1, replace(FOUR, halo_above=1), PLAIN),
    ],
)
def test_rows_move_to_their_target(
    pictures: int, blocks: int, source: StripLayout, target: StripLayout
) -> None:
    values = np.random.default_rng(1).integers(-128, 128, (pictures, blocks * 8, 16, 5), dtype=np.int8)
    size = PictureSize(pictures=pictures, blocks=blocks, height=16, width=5)
    one = RowExchange(config=CONFIG, size=size, source=source, target=target, is_in_place=source == target)
    wanted, given = (pack_picture(values, layout, 8) for layout in (target, source))
    start = np.zeros_like(wanted)
    if one.is_in_place:
        own = slice(target.halo_above, target.halo_above + target.lines)
        start[:, own] = wanted[:, own]
    found, cycles = run_exchange(one, given, start)
    assert np.array_equal(found, wanted)
    assert 0.7 * cycles < one.cycles < 1.3 * cycles


def test_exchanges_that_do_not_fit_are_refused() -> None:
    tiny = CONFIG.override({"wgt_bytes": 512, "acc_bytes": 2048})
    size = PictureSize(pictures=1, blocks=1, height=16, width=5)
    with pytest.raises(ScheduleError, match="an exchange has 16 lines; "):
        _ = RowExchange(config=tiny, size=size, source=EIGHT, target=PLAIN).cycles
    few = CONFIG.override({"uop_bytes": 64})
    with pytest.raises(ScheduleError, match=r"an exchange has \d+ matrices and \d+ micro-ops"):
        _ = RowExchange(config=few, size=size, source=EIGHT, target=PLAIN).cycles
    with pytest.raises(ScheduleError, match="a transposed layout has other strips"):
        _ = RowExchange(config=CONFIG, size=size, source=PLAIN, target=replace(EIGHT, transposed=True)).cycles


def test_joined_layouts() -> None:
    assert (EIGHT | AROUND) == (AROUND | EIGHT) == AROUND
    assert AROUND.contains(EIGHT)
    assert not EIGHT.contains(AROUND)
    assert AROUND | replace(AROUND, fill=0) is None
    assert EIGHT | PLAIN is None
    assert str(AROUND) == "8 strips, 1 above, 2 below"
    assert str(PLAIN) == "plain"
    assert EIGHT | replace(EIGHT, transposed=True) is None
    assert str(replace(EIGHT, transposed=True)) == "8 strips, turned"
    assert EIGHT | replace(EIGHT, repeated=True) is None
    assert str(replace(EIGHT, repeated=True)) == "8 strips, repeated"
