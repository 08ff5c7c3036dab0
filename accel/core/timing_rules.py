"""The numbers of the timing contract that follow from one instruction and the configuration.

Simulator and hardware take every latency from here. ``docs/reference/timing.md`` has the contract.
"""

from functools import lru_cache
from typing import NamedTuple

from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.instruction_access import DramRows
from accel.core.isa import Alu, Instruction, Loops, StoreReq

TIMING_CONTRACT_VERSION = 1
"""Increases when a program may take other cycles on the same machine."""
FETCH_STARTUP = 1
"""Cycles from the start of a run to the first request of the fetch unit."""
REQUEST_STARTUP = 1
"""Cycles from the start of a LOAD or STORE to its first burst request and to its first pad word."""
WRITE_DELAY = 1
"""Cycles from a read beat to its write into a scratchpad or the fetch buffer."""
EMPTY_DURATION = 1
"""Cycles from start to retirement of an instruction that moves nothing, such as FINISH."""
INDEX_CHECK = 3
"""Cycles from a micro-op's slot to the check of its indices: sequencer, micro-op read, index add."""
_OPERAND_STAGES = 4
"""Cycles from a micro-op's slot to its products: ``INDEX_CHECK``, and the operand read."""
_ACCUMULATE_STAGES = 2
"""Cycles from product to accumulator, apart from the adder tree: operate, write."""
TABLE_STAGES = 1
"""Cycles that tables add to the requantization of every STORE: the block RAM reads a word."""
_STORE_STAGES = 2
"""Cycles from the grant of a write burst to its first beat without requantization: read accumulators,
beat."""


def dispatch_depth(config: Config) -> int:
    """Cycles from dispatch to the earliest start: ``dispatch_stages``, and one for the queue."""
    return config.dispatch_stages + 1


def compute_depth(config: Config) -> int:
    """Cycles from a micro-op's slot to its write into the accumulators: 8 on ``vta``.

    A GEMM of 64 micro-ops that starts in cycle 100 on ``vta`` retires in 100 + 64 - 1 + 8 = 171.
    """
    return _OPERAND_STAGES + config.tree_stages + _ACCUMULATE_STAGES


def uop_slots(instruction: Instruction, config: Config) -> int:
    """Slots of each micro-op. Index check and write follow the last one."""
    operation = config.operations.get(instruction.alu_op) if isinstance(instruction, Alu) else None
    return 1 if operation is None else operation.slots(config)


def busy_slots(instruction: Loops, config: Config) -> int:
    """Slots of all micro-ops. The next instruction starts after them, at least one cycle later."""
    return instruction.uop_count * uop_slots(instruction, config)


def post_depth(config: Config) -> int:
    """Cycles of a beat in the requantization pipeline: 11 on ``vta-int8`` with tables."""
    if not config.post:
        return 0
    return config.post_stages + (TABLE_STAGES if config.tab_depth else 0)


def store_depth(config: Config) -> int:
    """Cycles from the grant of a write burst to its first beat, in which the accumulators are read.

    With ``post=1`` the beats of every STORE pass through the requantization pipeline, to stay in order.
    """
    return _STORE_STAGES + post_depth(config)


def beat_cycles(instruction: Instruction, config: Config) -> int:
    """Cycles per beat of a transfer. The beat is on the bus in the last of them.

    The store unit requantizes ``config.lanes`` bytes per cycle. Other beats take one cycle.
    """
    return config.bus_bytes // config.lanes if isinstance(instruction, StoreReq) else 1


class Burst(NamedTuple):
    address: int
    beats: int


def split_bursts(address: int, length: int, config: Config) -> list[Burst]:
    """Split a row of ``length`` bytes from ``address`` at 4 KiB boundaries and at ``max_burst_beats``.

    Only the first burst may start within a beat.
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
def _beats_of_rows(
    start_in_page: int, rows: int, row_bytes: int, stride: int, config: Config
) -> tuple[int, ...]:
    bus = config.bus_bytes
    simple = start_in_page % bus == 0 and stride % bus == 0 and row_bytes <= config.max_burst_beats * bus
    if simple and start_in_page + (rows - 1) * stride + row_bytes <= PAGE_BYTES:
        return ((row_bytes + bus - 1) // bus,) * rows
    found: list[int] = []
    for row in range(rows):
        found.extend(burst.beats for burst in split_bursts(start_in_page + row * stride, row_bytes, config))
    return tuple(found)


def burst_beats(rows: DramRows, config: Config) -> tuple[int, ...]:
    """Rows are never merged."""
    return _beats_of_rows(rows.start % PAGE_BYTES, rows.rows, rows.row_bytes, rows.stride, config)


def transfer_bursts(rows: DramRows, config: Config) -> list[Burst]:
    found: list[Burst] = []
    for row in range(rows.rows):
        found.extend(split_bursts(rows.start + row * rows.stride, rows.row_bytes, config))
    return found


class FetchBurst(NamedTuple):
    """A burst of instructions. Beat ``arrival[k]`` completes the k-th."""

    burst: Burst
    arrival: tuple[int, ...]


def fetch_bursts(address: int, count: int, config: Config) -> list[FetchBurst]:
    """Return the bursts that read ``count`` instructions from ``address``, a multiple of 16.

    Chunks of ``fetch_chunk`` instructions are split like rows.
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
