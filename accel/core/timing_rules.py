"""The timing contract's numbers: what follows from an instruction and the configuration alone.

Simulator and hardware take every latency from the configuration or from here. A cycle number names
the cycle in which something happens; what is pushed in cycle t can be used in t + 1.
"""

from functools import lru_cache
from typing import NamedTuple

from accel.core.access import DramRows
from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.isa import Alu, AluOp, Instruction, Loops, StoreReq

FETCH_STARTUP = 1
"""Cycles from the start of a run to fetch's first request."""
REQUEST_STARTUP = 1
"""Cycles from the start of a LOAD or STORE to its first burst request, and to its first pad word."""
WRITE_DELAY = 1
"""Cycles from a read beat on the bus to its write into a scratchpad or the fetch buffer."""
EMPTY_DURATION = 1
"""Cycles from start to retirement of an instruction that moves nothing, and of FINISH."""
INDEX_CHECK = 3
"""Cycles from a micro-op's slot to the check of its indices: sequencer, micro-op read, index add."""
_OPERAND_STAGES = 4
"""From a micro-op's slot to its products: sequencer, micro-op read, index add, operand read."""
_ACCUMULATE_STAGES = 2
"""Multiply-to-write stages besides the adder tree: operate, write."""
_STORE_STAGES = 2
"""From the grant of a write burst to its first beat: accumulators read, beat."""


def dispatch_depth(config: Config) -> int:
    """Cycles from an instruction's hand-out to the first in which it may start: ``dispatch_stages``, and the
    queue."""
    return config.dispatch_stages + 1


def compute_depth(config: Config) -> int:
    """Cycles from a micro-op's slot to its write into the accumulators.

    A GEMM or ALU instruction that starts in cycle t and takes n slots for each micro-op has its micro-op k in
    slot ``t + n * (k + 1) - 1``; it retires with its last micro-op's write, ``t + max(1, n * micro-ops) - 1 +
    compute_depth``.
    """
    return _OPERAND_STAGES + config.tree_stages + _ACCUMULATE_STAGES


def uop_slots(instruction: Instruction, config: Config) -> int:
    """Slots that each micro-op of an instruction takes; where one cycle is meant, it is that of the last."""
    multiplies = isinstance(instruction, Alu) and instruction.alu_op == AluOp.MUL
    return config.mul_slots if multiplies else 1


def busy_slots(instruction: Loops, config: Config) -> int:
    """Slots that an instruction's micro-ops take together; the next one starts behind them, and at least one
    cycle later."""
    return instruction.uop_count * uop_slots(instruction, config)


def store_depth(config: Config) -> int:
    """Cycles from the grant of a write burst to its first beat on the bus.

    The accumulators are read in between; with ``post=1`` the beats of every STORE go through the stages in
    which outputs are finished, so that they stay in order.
    """
    return _STORE_STAGES + (config.post_stages if config.post else 0)


def beat_cycles(instruction: Instruction, config: Config) -> int:
    """Cycles that a beat of a transfer takes, in the last of which it is on the bus.

    A beat that the store unit requantizes goes through its lanes, ``config.lanes`` bytes at a time; all
    others take one cycle.
    """
    return config.bus_bytes // config.lanes if isinstance(instruction, StoreReq) else 1


class Burst(NamedTuple):
    """One burst on the bus."""

    address: int
    beats: int


def split_bursts(address: int, length: int, config: Config) -> list[Burst]:
    """The bursts of one row of ``length`` bytes: split at 4 KiB boundaries and at ``max_burst_beats``.

    ``address`` is that of the first byte; later bursts start at a beat.
    """
    bus = config.bus_bytes
    bursts = []
    stop = address + length
    while address < stop:
        first_beat = address // bus
        end = min(stop, (address // PAGE_BYTES + 1) * PAGE_BYTES, (first_beat + config.max_burst_beats) * bus)
        bursts.append(Burst(address, (end - 1) // bus - first_beat + 1))
        address = end
    return bursts


@lru_cache(maxsize=1 << 14)
def _beats(start_in_page: int, rows: int, row_bytes: int, stride: int, config: Config) -> tuple[int, ...]:
    bus = config.bus_bytes
    simple = start_in_page % bus == 0 and stride % bus == 0 and row_bytes <= config.max_burst_beats * bus
    if simple and start_in_page + (rows - 1) * stride + row_bytes <= PAGE_BYTES:
        return ((row_bytes + bus - 1) // bus,) * rows
    found: list[int] = []
    for row in range(rows):
        found.extend(burst.beats for burst in split_bursts(start_in_page + row * stride, row_bytes, config))
    return tuple(found)


def burst_beats(rows: DramRows, config: Config) -> tuple[int, ...]:
    """Beats of each burst of a transfer, in order; rows are never merged."""
    return _beats(rows.start % PAGE_BYTES, rows.rows, rows.row_bytes, rows.stride, config)


def transfer_bursts(rows: DramRows, config: Config) -> list[Burst]:
    """The bursts of a transfer, in order."""
    found: list[Burst] = []
    for row in range(rows.rows):
        found.extend(split_bursts(rows.start + row * rows.stride, rows.row_bytes, config))
    return found


class FetchBurst(NamedTuple):
    """A burst of instructions: ``arrival[k]`` is the beat that completes the k-th one."""

    burst: Burst
    arrival: tuple[int, ...]


def fetch_bursts(address: int, count: int, config: Config) -> list[FetchBurst]:
    """The bursts in which fetch reads ``count`` instructions from ``address``, a multiple of 16.

    Instructions are asked for in chunks of ``fetch_chunk``; each chunk is split like a row.
    """
    bus = config.bus_bytes
    bursts = []
    for begin in range(0, count, config.fetch_chunk):
        size = min(config.fetch_chunk, count - begin) * INSTRUCTION_BYTES
        first = address + begin * INSTRUCTION_BYTES
        for burst in split_bursts(first, size, config):
            end = min(first + size, (burst.address // bus + burst.beats) * bus)
            ends = range(burst.address + INSTRUCTION_BYTES, end + 1, INSTRUCTION_BYTES)
            arrival = tuple((e - 1) // bus - burst.address // bus for e in ends)
            bursts.append(FetchBurst(burst, arrival))
    return bursts
