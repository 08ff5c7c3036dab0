"""LOAD and STORE compared with the scalar interpreter."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, PAGE_BYTES, Config
from accel.core.isa import Load, Memory, Store, Transfer, class_of, field_specs
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import assert_same_effect
from tests.strategies import any_instructions, examples, small_machines, transfers

TINY = NAMED["tiny"]


def random_dram(config: Config, length: int, seed: int = 0) -> Dram:
    """Random bytes at the start of the window."""
    dram = Dram.of(config)
    rng = np.random.default_rng(seed)
    dram.write(config.mem_base, rng.integers(0, 256, length, dtype=np.uint8))
    return dram


@examples(400)
@given(st.data())
def test_transfers_equal_the_scalar_interpreter(data: st.DataObject) -> None:
    config = replace(data.draw(small_machines), mem_base=data.draw(st.sampled_from([0, 3 * PAGE_BYTES])))
    instruction = data.draw(transfers(config, dram_bytes=1024))
    pads = Scratchpads.random(config, data.draw(st.integers(0, 99)))
    assert_same_effect(config, pads, instruction, random_dram(config, 1024))


@examples(300)
@given(st.data())
def test_any_transfer_does_the_same_or_stops_for_the_same_cause(data: st.DataObject) -> None:
    """One or two fields of a good transfer are replaced by arbitrary values, in a small window."""
    config = replace(data.draw(small_machines), mem_size=PAGE_BYTES)
    good = data.draw(transfers(config, dram_bytes=PAGE_BYTES))
    other = data.draw(any_instructions(config).filter(lambda i: isinstance(i, Transfer)))
    names = data.draw(st.lists(st.sampled_from(CHANGED), min_size=1, max_size=2))
    instruction = _meant(good, {name: getattr(other, name) for name in names}, config)
    if instruction.height * instruction.width > 1 << 12:
        instruction = replace(instruction, x_size=1, y_size=min(instruction.y_size, 64))
    assert_same_effect(config, Scratchpads.random(config, 0), instruction, random_dram(config, PAGE_BYTES))


def _meant(good: Transfer, changes: dict[str, Any], config: Config) -> Transfer:
    """Replace fields of ``good``. The class of the result follows from its memory id."""
    values = {name: getattr(good, name) for name in field_specs(type(good))} | changes
    cls = class_of(good.OPCODE, values["memory"], config)
    assert cls is not None
    found = cls(**{name: value for name, value in values.items() if name in field_specs(cls)})
    assert isinstance(found, Transfer)
    return found


CHANGED = ["memory", "sram_base", "dram_base", "y_size", "x_size", "x_stride", "y_pad_0", "x_pad_1"]
CHANGED += ["pop_prev", "push_next"]
ALL_PADS = list(product((0, 1, 2), repeat=4))


@pytest.mark.parametrize("memory", [m for m in Memory if m != Memory.OUT])
def test_pads_of_all_kinds_and_combinations(memory: Memory) -> None:
    for y_pad_0, y_pad_1, x_pad_0, x_pad_1 in ALL_PADS:
        for y_size, x_size in ((2, 2), (1, 3), (0, 1)):
            instruction = Load(
                memory=memory,
                sram_base=3,
                dram_base=5,
                y_size=y_size,
                x_size=x_size,
                x_stride=4,
                y_pad_0=y_pad_0,
                y_pad_1=y_pad_1,
                x_pad_0=x_pad_0,
                x_pad_1=x_pad_1,
            )
            assert_same_effect(TINY, Scratchpads.random(TINY, 1), instruction, random_dram(TINY, 512))


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 70])
def test_rows_that_overlap_or_are_far_apart(stride: int) -> None:
    load = Load(memory=Memory.ACC, y_size=4, x_size=3, x_stride=stride)
    assert_same_effect(TINY, Scratchpads.random(TINY, 1), load, random_dram(TINY, 8192))
    store = Store(y_size=4, x_size=3, x_stride=stride, sram_base=7)
    assert_same_effect(TINY, Scratchpads.random(TINY, 1), store, random_dram(TINY, 8192))


def test_a_store_of_overlapping_rows_leaves_the_last_one() -> None:
    pads, dram = Scratchpads.zeros(TINY), Dram.of(TINY)
    pads.acc[:4, 0, 0] = 1, 2, 3, 4
    assert_same_effect(TINY, pads, Store(y_size=2, x_size=2, x_stride=1), dram)
    assert dram.read(0, 32)[::8].tolist() == [1, 3, 4, 0]


def test_a_store_writes_the_low_8_bits_and_acc_8bit_extends_the_sign() -> None:
    pads, dram = Scratchpads.zeros(TINY), Dram.of(TINY)
    pads.acc[0, 0] = -1, 127, 128, 255, 256, -129, 1 << 31 - 1, -(1 << 31)
    assert_same_effect(TINY, pads, Store(y_size=1, x_size=1), dram)
    assert dram.read(0, 8).view(np.int8).tolist() == [-1, 127, -128, -1, 0, 127, 0, 0]
    assert_same_effect(TINY, pads, Load(memory=Memory.ACC_8BIT, y_size=1, x_size=1, sram_base=1), dram)
    assert pads.acc[1, 0].tolist() == [-1, 127, -128, -1, 0, 127, 0, 0]


@pytest.mark.parametrize("cls", [Load, Store])
def test_x_size_zero_moves_nothing_and_nothing_is_checked(cls: type[Transfer]) -> None:
    instruction = cls(
        memory=7,
        sram_base=65535,
        dram_base=(1 << 32) - 1,
        y_size=65535,
        y_pad_0=15,
        x_pad_1=15,
        pop_prev=cls is Store,
    )
    pads = Scratchpads.random(TINY, 1)
    before = pads.copy()
    assert_same_effect(TINY, pads, instruction)
    assert np.array_equal(pads.acc, before.acc)


def test_rows_megabytes_apart() -> None:
    """Sparse rows are stored separately, so that memory stays small."""
    config = NAMED["tiny"]
    dram = random_dram(config, 64)
    load = Load(memory=Memory.ACC, y_size=100, x_size=1, x_stride=65535, sram_base=2)
    assert_same_effect(config, Scratchpads.random(config, 1), load, dram)
    store = Store(y_size=100, x_size=1, x_stride=65535)
    pads = Scratchpads.random(config, 1)
    assert_same_effect(config, pads, store, dram)
    assert sum(1 for _ in dram.pages()) == 100
