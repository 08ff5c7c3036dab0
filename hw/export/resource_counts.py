"""Block RAMs and multipliers of a core on an ECP5, counted from its configuration in microseconds.

The counts follow Yosys' choice of memory cells: a memory becomes distributed RAM where that is cheaper. They
equal those of the placed cores in ``docs/reference/resources.md``. For deep and wide scratchpads Yosys may
find a smaller combination of block RAMs, so the count may be a few too high. Logic is not counted.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil

from accel.core.config import Config
from accel.core.isa import Load, Store, Unit
from accel.core.scratchpad_specs import ACC, INP, RES, TAB, bits_of, scratchpads_of
from accel.hw.datapath.scratchpads import scratchpad_shape
from accel.hw.datapath.transfer_memories import kinds_of

_WIDTH_OF_DEPTH = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Depths of a block RAM, and the width that it then has."""
_BYTE_BITS = 9
_BLOCK_COST, _DISTRIBUTED_COST = 128, 4
"""Yosys' costs of a block RAM, and of a distributed RAM of 16x4 bits."""
_DISPATCH_MULTIPLIERS = 5
"""Multipliers of the instruction checks before dispatch."""
_MULTIPLIERS_PER_POST_LANE = 8
_MULTIPLIERS_PER_FAST_LANE = 3
"""Multipliers of a lane of ALU whose products of 32 by 32 bits take fewer than four slots."""
_ONE_MULTIPLIER_SLOTS = 4
"""From so many slots for ALU.MUL, a lane has one multiplier."""


@lru_cache(maxsize=4096)
def block_rams(config: Config) -> int:
    """Return the number of block RAMs of 18 Kbit that the scratchpads take."""
    return sum(_memory_blocks(*memory) for memory in _memories(config))


def multipliers(config: Config) -> int:
    """Return the number of multipliers of 18x18 bits.

    Each MAC of the GEMM core takes one. The rest are for ALU, requantization and instruction checks.
    """
    per_lane = 1 if config.mul_slots >= _ONE_MULTIPLIER_SLOTS else _MULTIPLIERS_PER_FAST_LANE
    alu = per_lane * config.batch * config.block_out
    per_post_lane = _MULTIPLIERS_PER_POST_LANE + bool(config.res_mul)  # STORE.MUL multiplies by a residual
    post = per_post_lane * config.lanes if config.post else 0
    return config.macs_per_cycle + alu + post + _DISPATCH_MULTIPLIERS


def _memories(config: Config) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, depth, width and write granularity of equal memories."""
    kinds = {unit: kinds_of(Load, unit, config) for unit in Unit}
    for pad in scratchpads_of(config).values():
        own = [kind for kind in kinds[pad.filled_by] if kind.route.scratchpad is pad]
        taps = config.tap_banks if pad is INP and config.depthwise else 1
        shape = scratchpad_shape(pad, own, config, circular=pad is RES, taps=taps)
        copies = 2 if pad is ACC else config.lanes if pad is TAB else 1
        yield copies * shape.banks, shape.bank_depth, shape.element_bits, shape.grain_bits
        if pad is ACC:
            stores = kinds_of(Store, Unit.STORE, config)
            width = 8 * max(kind.element_bytes for kind in stores)
            narrow = max(bits_of(kind.route.dtype) for kind in stores)
            yield shape.banks, shape.bank_depth, width, shape.grain_bits * narrow // bits_of(pad.dtype)


def _memory_blocks(count: int, depth: int, width: int, grain: int) -> int:
    """Return the block RAMs of equal memories. A write enable covers whole bytes of 9 bits."""
    rows, bits = next((one for one in _WIDTH_OF_DEPTH if one[0] >= depth), _WIDTH_OF_DEPTH[-1])
    if width == grain or bits < _BYTE_BITS:
        columns = ceil(width / grain) * ceil(grain / bits)
    else:
        columns = ceil(ceil(width / grain) * ceil(grain / _BYTE_BITS) * _BYTE_BITS / bits)
    blocks = columns * ceil(depth / rows)
    distributed = ceil(depth / 16) * ceil(width / 4)
    return 0 if distributed * _DISTRIBUTED_COST < blocks * _BLOCK_COST else count * blocks
