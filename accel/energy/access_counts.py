"""Exact counts of a program's accesses.

If the program ends well, they depend on its instructions alone, not on latencies.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from accel.core.access_names import STORE_READS, access_names, write_names
from accel.core.config import Config
from accel.core.fault_causes import NOTHING_SET
from accel.core.instruction_access import dram_rows
from accel.core.isa import (
    Alu,
    Gemm,
    Instruction,
    Load,
    Loops,
    Mac,
    Products,
    SetAcc,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
)
from accel.core.memory_banks import beats_per_element, memory_banks
from accel.core.scratchpad_specs import PAR, RES, TAB
from accel.core.timing_rules import beat_cycles, burst_beats, fetch_bursts

READ_BYTES, WRITTEN_BYTES = "read_bytes", "written_bytes"
"""Names of the counted bytes on the bus: whole beats, even if an instruction uses a part."""

Counts = npt.NDArray[np.int64]


class AccessCounts(Struct, frozen=True, eq=False):
    """Counts of accesses on a machine.

    Attributes:
        values: counts by name: :func:`~accel.core.access_names.access_names`, :data:`READ_BYTES` and
            :data:`WRITTEN_BYTES`.
    """

    config: Config
    values: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.values.get(name, 0)

    def __add__(self, other: "AccessCounts") -> "AccessCounts":
        return AccessCounts(
            self.config, {name: self[name] + other[name] for name in count_names(self.config)}
        )

    def __mul__(self, factor: int) -> "AccessCounts":
        return AccessCounts(self.config, {name: factor * self[name] for name in count_names(self.config)})

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the GEMM core, including padding."""
        config = self.config
        full = (self["gemm"] + self["mac"]) * config.macs_per_cycle
        return full + self["depthwise_taps"] * config.batch * config.block_out

    def to_dict(self) -> dict[str, int]:
        """Return the counts and ``macs`` as plain data."""
        return {"macs": self.macs} | {name: self[name] for name in count_names(self.config)}


def count_names(config: Config) -> tuple[str, ...]:
    """Return the names of :class:`AccessCounts`, in order."""
    return (*access_names(config), READ_BYTES, WRITTEN_BYTES)


def count_accesses(
    instructions: Sequence[Instruction], config: Config, *, address: int | None = None
) -> AccessCounts:
    """Count the accesses of a whole program that ends well.

    Args:
        address: byte address of the first instruction, or None to leave out the reads of instructions.
    """
    (counts,) = count_parts(instructions, config, [len(instructions)])
    return counts if address is None else counts + count_fetch(len(instructions), config, address)


def count_parts(
    instructions: Sequence[Instruction], config: Config, ends: Iterable[int]
) -> list[AccessCounts]:
    """Count the accesses of consecutive parts of a program, without the reads of instructions.

    Args:
        ends: the index after the last instruction of each part, for example the layers of a network.
    """
    counter = _Counter(config)
    every = counter.rows(instructions)
    names = count_names(config)
    found, begin = [], 0
    for end in ends:
        total = np.zeros(len(names), dtype=np.int64)
        for row in (next(every) for _ in range(begin, end)):
            total += row
        found.append(AccessCounts(config, dict(zip(names, total.tolist(), strict=True))))
        begin = end
    return found


def count_fetch(instructions: int, config: Config, address: int) -> AccessCounts:
    """Count the bursts and bytes that read the instructions."""
    bursts = fetch_bursts(address, instructions, config)
    beats = sum(one.burst.beats for one in bursts)
    return AccessCounts(config, {"read_bursts": len(bursts), READ_BYTES: beats * config.bus_bytes})


class _Counter:
    """Counts single instructions, equal ones only once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.banks = memory_banks(config)
        self.names = count_names(config)
        self._setting = NOTHING_SET
        self._by_id: dict[int, tuple[Instruction, Counts]] = {}

    def rows(self, instructions: Iterable[Instruction]) -> Iterator[Counts]:
        for one in instructions:
            if isinstance(one, SetAcc):
                self._setting = one
            known = self._by_id.get(id(one))
            if known is not None:
                yield known[1]
                continue
            row = self._row(one)
            if not (isinstance(one, Mac) and one.depthwise):  # the taps of a depthwise MAC are a setting
                self._by_id[id(one)] = one, row
            yield row

    def _row(self, instruction: Instruction) -> Counts:
        found: Mapping[str, int] = {}
        if isinstance(instruction, Loops):
            found = self._loops(instruction)
        elif isinstance(instruction, Load):
            found = self._load(instruction)
        elif isinstance(instruction, Store):
            found = self._store(instruction)
        return np.array([found.get(name, 0) for name in self.names], dtype=np.int64)

    def _loops(self, instruction: Loops) -> dict[str, int]:
        uops = instruction.uop_count
        words, lanes = write_names(self.config)["acc"]
        found = {"uop_reads": uops, words: uops, lanes: uops * self.banks["acc"].lanes}
        if isinstance(instruction, Products):
            if instruction.multiplies:
                found |= {"inp_reads": uops, "wgt_reads": uops}
            if instruction.accumulates:
                found["acc_dst_reads"] = uops
            if isinstance(instruction, Mac) and instruction.depthwise:
                found |= {"depthwise": uops, "depthwise_taps": uops * self._setting.taps}
            elif isinstance(instruction, Mac):
                found["mac"] = uops
            elif isinstance(instruction, Gemm) and instruction.multiplies:
                found["gemm"] = uops
        elif isinstance(instruction, Alu):
            multiplies = instruction.alu_op == self.config.operation_codes.get("mul")
            found |= {"alu_mul" if multiplies else "alu": uops, "acc_dst_reads": uops}
            if not instruction.use_imm:
                found["acc_src_reads"] = uops
        return found

    def _load(self, instruction: Load) -> dict[str, int]:
        route = instruction.route
        if route is None or not instruction.sram_elements:
            return {}
        pad = route.scratchpad
        bursts = self._bursts(instruction)
        elements = instruction.x_size * instruction.y_size
        pads = instruction.sram_elements - elements
        words = elements * beats_per_element(route.element_bytes(self.config), self.config)
        enables = words if pad.is_table else elements * self.banks[pad.name].lanes
        word_name, lane_name = write_names(self.config)[pad.name]
        return {
            "read_bursts": len(bursts),
            READ_BYTES: sum(bursts) * self.config.bus_bytes,
            word_name: words + pads,
            lane_name: enables + pads * self.banks[pad.name].lanes,
        }

    def _store(self, instruction: Store) -> dict[str, int]:
        bursts = self._bursts(instruction)
        beats = sum(bursts)
        slots = beats * beat_cycles(instruction, self.config)
        found = {
            "write_bursts": len(bursts),
            WRITTEN_BYTES: beats * self.config.bus_bytes,
            "out_reads": slots,
        }
        if isinstance(instruction, StoreReq):
            found[STORE_READS[PAR.name]] = slots
            if isinstance(instruction, StoreAdd):
                found[STORE_READS[RES.name]] = slots
            if TAB.exists(self.config) and instruction.table:
                found[STORE_READS[TAB.name]] = slots
        return found

    def _bursts(self, instruction: Transfer) -> tuple[int, ...]:
        rows = dram_rows(instruction, self.config)
        return () if rows is None else burst_beats(rows, self.config)
