"""Rows of zeros around inputs are written once. Scratchpad contents do not depend on the
omitted ones."""

from random import Random

import numpy as np
import pytest

import accel
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.codegen.write_padding_once import WritePaddingOnce
from accel.compiler.target.emitter_registry import Emitted
from accel.core.isa import Gemm, Load, Memory

M = accel.machine("tiny-int8")


def zeros_once(emitted: list[Emitted]) -> list[Emitted]:
    return list(WritePaddingOnce().run(EmittedProgram(emitted=emitted, config=M.config)).emitted)


def load(base: int, rows: int, row: int, pads: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Load:
    above, below, left, right = pads
    return Load(
        memory=Memory.INP,
        sram_base=base,
        dram_base=7,
        y_size=rows,
        x_size=row,
        x_stride=row,
        y_pad_0=above,
        y_pad_1=below,
        x_pad_0=left,
        x_pad_1=right,
    )


def pads_of(loads: list[Load]) -> list[tuple[int, int]]:
    """Rows of zeros that each LOAD writes above and below its data."""
    emitted = zeros_once([Emitted(one) for one in loads])
    return [(one.instruction.y_pad_0, one.instruction.y_pad_1) for one in emitted]  # type: ignore[attr-defined]


def contents(emitted: list[Emitted]) -> list[list[tuple[int, ...]]]:
    """Contents of inp_buffer after each LOAD: row, column and LOAD of each element."""
    held = [(-1,)] * M.config.inp_depth
    found = []
    for number, one in enumerate(emitted):
        i = one.instruction
        if not isinstance(i, Load):
            continue
        for place in range(i.sram_elements):
            row, column = place // i.width - i.y_pad_0, place % i.width - i.x_pad_0
            inside = 0 <= row < i.y_size and 0 <= column < i.x_size
            held[i.sram_base + place] = (number, row, column) if inside else (0,)
        found.append(list(held))
    return found


def test_rows_of_zeros_stay() -> None:
    same = load(0, 2, 3, (1, 1, 1, 1))
    assert pads_of([same, same, same]) == [(1, 1), (0, 0), (0, 0)]
    first, second = zeros_once([Emitted(same)] * 2)
    assert first.instruction == same
    assert second.instruction == load(5, 2, 3, (0, 0, 1, 1))


@pytest.mark.parametrize(
    ("between", "after"),
    [
        (load(0, 1, 2), (1, 0)),  # overlaps the row above
        (load(0, 5, 3), (1, 0)),
        (load(17, 1, 2), (0, 1)),  # overlaps the row below
        (load(20, 1, 2), (0, 0)),  # after both
        (load(0, 0, 3, (2, 0, 1, 1)), (0, 0)),  # zeros over zeros
    ],
    ids=str,
)
def test_overwritten_padding_is_written_again(between: Load, after: tuple[int, int]) -> None:
    same = load(0, 2, 3, (1, 1, 1, 1))
    assert pads_of([same, between, same])[2] == after


def test_weights_have_zeros_of_their_own() -> None:
    emitted = [Emitted(load(0, 2, 3, (1, 1, 1, 1)))]
    emitted += [Emitted(Load(memory=Memory.WGT, y_size=1, x_size=20, x_stride=20)), Emitted(Gemm()), *emitted]
    found = zeros_once(emitted)
    assert found[1:3] == emitted[1:3]
    assert found[3].instruction == load(5, 2, 3, (0, 0, 1, 1))


def test_any_loads_leave_the_same() -> None:
    changed = 0
    for seed in range(100):
        rng = Random(seed)
        emitted = []
        for _ in range(12):
            pads = (rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 1), rng.randint(0, 1))
            rows, row = rng.randint(0, 2), rng.randint(0, 2)
            emitted.append(Emitted(load(rng.choice([0, 0, 3]), rows, row, pads)))
        found = zeros_once(emitted)
        assert contents(found) == contents(emitted)
        changed += found != emitted
    assert changed > 20


def test_depthwise_layers_write_fewer_zeros() -> None:
    """Blocks of channels use the same buffers one after the other."""
    workload = accel.conv2d(1, 128, 7, 7, 128, 3, padding=1, groups=128, shift=6)
    result = accel.build(workload, "vta-int8").run()
    assert not result.mismatches
    loads = [one for one in result.image.instructions if isinstance(one, Load) and one.memory == Memory.INP]
    rows = np.array([one.y_pad_0 + one.y_pad_1 for one in loads])
    assert rows[0] == 2
    assert (rows[len(rows) // 2 :] == 0).all()
