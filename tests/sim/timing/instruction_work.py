"""For each instruction, the work that the cycle-stepped machine has to do: micro-ops, bursts and pad words.

It is computed from the instruction's fields alone, independently of the timing model.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from accel.core.config import Config
from accel.core.fault_causes import Fault
from accel.core.isa import (
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Loops,
    Memory,
    StoreAdd,
    StoreReq,
    Transfer,
    Unit,
)


def bursts_of_row(address: int, length: int, config: Config) -> Iterator[int]:
    """Beats of each burst: words of the bus, in order; a new burst at a 4 KiB boundary and after
    ``max_burst_beats`` beats."""
    bus = config.bus_bits // 8
    beats = 0
    for word in range(address // bus, (address + length - 1) // bus + 1):
        if beats and (word * bus % 4096 == 0 or beats == config.max_burst_beats):
            yield beats
            beats = 0
        beats += 1
    yield beats


def element_bytes(transfer: Transfer, config: Config) -> int:
    batch, block_in, block_out = config.batch, config.block_in, config.block_out
    if isinstance(transfer, LoadPar):
        return block_out * 8
    if isinstance(transfer, LoadTab):
        return 256
    if isinstance(transfer, LoadRes | StoreReq):
        return batch * block_out
    return {
        Memory.UOP: 4,
        Memory.WGT: block_out * block_in,
        Memory.INP: batch * block_in,
        Memory.ACC: batch * block_out * 4,
        Memory.OUT: batch * block_out,
        Memory.ACC_8BIT: batch * block_out,
    }[Memory(transfer.memory)]


@dataclass(eq=False)
class Work:
    """The progress of an instruction in the machine. Cycles are None until they are known."""

    index: int
    instruction: Instruction
    fault: Fault | None
    """The fault that its unit finds before the start."""
    requests: deque[int]
    """Beats of each burst that is not granted yet."""
    beats: int
    """Beats that have not been written into the scratchpad, or on the bus, yet."""
    pads: int
    """Pad words that have not been written yet."""
    range: tuple[int, int, int] | None
    """Memory id and range of scratchpad elements. None if it moves nothing."""
    operands: frozenset[tuple[str, int]] = frozenset()
    """Scratchpad and index of the elements of PAR and TAB that a LOAD fills or a STORE reads."""
    res: int = 0
    """RES elements that a LOAD brings or a STORE consumes."""
    pace: int = 1
    """Cycles for a beat of a STORE: one for each group of bytes that the lanes process together."""
    last_grant: int = -1
    response: int = -1
    """Cycle of the last write response so far."""
    handed_out: int | None = None
    start: int | None = None
    retire: int | None = None

    @property
    def unit(self) -> Unit:
        return self.instruction.unit

    @property
    def pipelined(self) -> bool:
        return isinstance(self.instruction, Loops)

    @property
    def loads(self) -> bool:
        return isinstance(self.instruction, Load)

    def started(self, before: int) -> bool:
        return self.start is not None and self.start < before

    def retired(self, before: int) -> bool:
        return self.retire is not None and self.retire < before

    def in_flight(self, now: int) -> bool:
        return self.start is not None and not self.retired(now)


def work_of(index: int, instruction: Instruction, fault: Fault | None, config: Config) -> Work:
    work = Work(index, instruction, fault, deque(), 0, 0, None)
    if not isinstance(instruction, Transfer) or not instruction.x_size or work.fault is not None:
        return work
    size = element_bytes(instruction, config)
    for y in range(instruction.y_size):
        address = config.mem_base + (instruction.dram_base + y * instruction.x_stride) * size
        work.requests.extend(bursts_of_row(address, instruction.x_size * size, config))
    work.beats = sum(work.requests)
    box = instruction.width * instruction.height
    work.pads = box - instruction.x_size * instruction.y_size
    if box:
        work.range = (instruction.memory, instruction.sram_base, instruction.sram_base + box)
    if work.unit is Unit.STORE and box:
        finish(work, instruction, box, config)
    return work


def finish(work: Work, transfer: Transfer, elements: int, config: Config) -> None:
    """Set the elements of PAR, TAB and RES that an instruction uses."""
    if isinstance(transfer, StoreReq):
        steps = [y if transfer.par_y else x if transfer.par_x else 0 for y, x in box_of(transfer)]
        tables = {("tab", transfer.table - 1)} if transfer.table else set()
        work.operands = frozenset(("par", transfer.par + step) for step in steps) | tables
        work.pace = (config.bus_bits // 8) // config.lanes
    elif isinstance(transfer, LoadPar | LoadTab):
        pad = "par" if isinstance(transfer, LoadPar) else "tab"
        filled = range(transfer.sram_base, transfer.sram_base + elements)
        work.operands = frozenset((pad, element) for element in filled)
    if isinstance(transfer, LoadRes | StoreAdd):
        work.res = 1 if isinstance(transfer, StoreAdd) and transfer.hold else elements


def box_of(transfer: Transfer) -> Iterator[tuple[int, int]]:
    return product(range(transfer.y_size), range(transfer.x_size))


@dataclass(eq=False)
class Burst:
    """A granted burst. Reads of instructions have no ``work``, but the index of the first one, and for each
    beat the number of instructions that it completes."""

    unit: Unit
    index: int
    work: Work | None
    grant: int
    beats: int
    completes: list[int]
    writes: bool = False
    sent: int = 0
    """Cycles in which a part of it has moved: a beat, or the bytes that fit the lanes."""
    last: int | None = None
    response: int | None = None


def fetch_bursts(address: int, count: int, config: Config) -> Iterator[list[int]]:
    """Yield, for each burst of instructions, the number of instructions that each beat completes."""
    bus = config.bus_bits // 8
    for begin in range(0, count, config.fetch_chunk):
        at = address + 16 * begin
        end = at + 16 * min(config.fetch_chunk, count - begin)
        for beats in bursts_of_row(at, end - at, config):
            words = range(at // bus, at // bus + beats)
            ends = [min(end, (word + 1) * bus) for word in words]
            starts = [at, *ends[:-1]]
            yield [e // 16 - s // 16 for s, e in zip(starts, ends, strict=True)]
            at = ends[-1]
