"""The parts of a machine that take LUTs and flip-flops, as numbers.

Each feature counts bits or cells of one kind of part.
"""

from math import log2

from accel.area.memory_primitives import mapped, scratchpad_primitives
from accel.core.config import Config
from accel.core.memory_banks import MIRROR, memory_banks
from accel.core.pipeline_stages import spread
from accel.core.scratchpad_specs import ACC, INP, WGT

_PRODUCT_BITS = 16
_READ, _PRODUCT, _SUM = 2, 2, 1
"""Relative delays in the GEMM core, which determine where its pipeline registers lie."""
_ALU_REGISTER_BITS = {1: 0, 2: 96, 3: 80, 4: 48, 5: 80}
"""Bits of registers of MUL in an ALU lane by ``mul_slots``: partial products, a sum, and factors."""
_ACC_BITS = 32
_ADDRESS_WORDS = 16
"""Words of a distributed RAM."""


def features(config: Config) -> dict[str, float]:
    """Return the features of a machine by name."""
    lanes = config.batch * config.block_out
    post = bool(config.post)
    requantized = config.lanes if post else 0
    return {
        "core": 1.0,
        "post": float(post),
        "distributed RAM": float(scratchpad_primitives(config).distributed),
        "queues": float(_queue_blocks(config)),
        "fetch buffer": float(_fetch_blocks(config)),
        "outstanding": float(-(-config.outstanding // _ADDRESS_WORDS)),
        "loads in flight": float(config.loads_in_flight * (2 if post else 1)),
        "stores in flight": float(config.stores_in_flight * (3 if post else 1)),
        "adder bits": float(_adder_bits(config)),
        "operand registers": float(_operand_bits(config)),
        "tree registers": float(_tree_bits(config)),
        "write registers": float(_write_bits(config)),
        "read registers": float(_read_bits(config)),
        "ALU registers": float(_alu_bits(config)),
        "ALU lanes": float(lanes),
        "ALU lanes, MUL in one slot": float(lanes * (config.mul_slots == 1)),
        "write selection": float(_write_selection(config)),
        "read selection": float(_read_selection(config)),
        "store selection": float(_store_selection(config)),
        "bus bits": float(config.bus_bits),
        "requantization lanes": float(requantized),
        "requantization stages": float(requantized * config.post_stages),
        "tables": float(requantized * bool(config.tab_bytes)),
        "residual products": float(requantized * bool(config.res_mul)),
        "depthwise taps": float(_tap_bits(config)),
        "dispatch stages": float(config.dispatch_stages),
        "scratchpad address bits": float(
            sum(
                (memory.bank_depth - 1).bit_length() * memory.banks
                for memory in memory_banks(config).values()
            )
        ),
    }


def _queue_blocks(config: Config) -> int:
    """Count blocks of 16 entries. One entry of each queue is in registers."""
    depths = (config.load_queue, config.compute_queue, config.store_queue)
    return sum(-(-max(1, depth - 1) // _ADDRESS_WORDS) for depth in depths)


def _fetch_blocks(config: Config) -> int:
    banks = max(1, config.bus_bits // 128)
    return banks * -(-max(1, config.fetch_buffer // banks) // _ADDRESS_WORDS)


def _levels(config: Config) -> int:
    return int(log2(config.block_in))


def _adder_bits(config: Config) -> int:
    each = sum(
        (config.block_in >> level) * (_PRODUCT_BITS + 2 * bool(config.post) + level)
        for level in range(1, _levels(config) + 1)
    )
    return config.batch * config.block_out * each


def _operand_bits(config: Config) -> int:
    """Return the bits of an element each of inp, wgt and acc, which pass through registers."""
    return INP.word_bits(config) + WGT.word_bits(config) + ACC.word_bits(config)


def _tree_bits(config: Config) -> int:
    """Return the bits of registers after products and sums."""
    width = _PRODUCT_BITS + 2 * bool(config.post)
    _, product, *sums = spread(config.tree_stages, [_READ, _PRODUCT, *[_SUM] * _levels(config)])
    per_sum = product * config.block_in * width
    for level, stages in enumerate(sums, 1):
        per_sum += stages * (config.block_in >> level) * (width + level)
    return config.batch * config.block_out * per_sum


def _write_bits(config: Config) -> int:
    """Return the bits of registers in front of the write ports of inp, wgt and acc."""
    found = (memory_banks(config)[pad.name] for pad in (INP, WGT, ACC))
    return sum(memory.banks * memory.word_bits for memory in found)


def _read_bits(config: Config) -> int:
    """Return the bits of registers after reads from distributed RAM."""
    total = 0
    for memory in memory_banks(config).values():
        if mapped(memory.word_bits, memory.bank_depth, memory.lane_bits).distributed:
            total += memory.banks * memory.copies * memory.word_bits
    return total


def _alu_bits(config: Config) -> int:
    return config.batch * config.block_out * _ALU_REGISTER_BITS[config.mul_slots]


def _write_selection(config: Config) -> int:
    """Return a beat's bits times the banks that select from them."""
    total = 0
    for name, memory in memory_banks(config).items():
        if name != MIRROR and memory.banks > 1:
            total += memory.banks * memory.word_bits * (memory.banks - 1)
    return total


def _read_selection(config: Config) -> int:
    ports = {INP.name: min(config.tap_banks, config.block_in) if config.depthwise else 1, ACC.name: 2}
    return sum(
        ports.get(name, 1) * memory.word_bits * (memory.banks - 1)
        for name, memory in memory_banks(config).items()
        if name != MIRROR
    )


def _store_selection(config: Config) -> int:
    mirror = memory_banks(config)[MIRROR]
    beat_lanes = max(1, config.bus_bytes // config.out_element_bytes)
    return mirror.word_bits * mirror.banks * beat_lanes


def _tap_bits(config: Config) -> int:
    """Return the bits from which depthwise MACs select, for each column with a tap."""
    if not config.depthwise:
        return 0
    taps = min(config.tap_banks, config.block_in)
    return config.batch * config.block_out * taps * INP.lane_bits(config)


LUT_FEATURES = (
    "core",
    "post",
    "distributed RAM",
    "fetch buffer",
    "loads in flight",
    "stores in flight",
    "adder bits",
    "ALU lanes",
    "write selection",
    "read selection",
    "bus bits",
    "requantization lanes",
    "tables",
    "scratchpad address bits",
)
FLIP_FLOP_FEATURES = (
    "core",
    "post",
    "loads in flight",
    "stores in flight",
    "operand registers",
    "tree registers",
    "write registers",
    "read registers",
    "ALU lanes",
    "ALU registers",
    "bus bits",
    "requantization lanes",
    "requantization stages",
    "tables",
    "depthwise taps",
    "dispatch stages",
)
