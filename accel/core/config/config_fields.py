"""The fields of a configuration."""

from dataclasses import dataclass

from accel.core.alu_operations import STOCK_NAMES
from accel.core.config.field_spec import (
    DRAM_ADDRESS_BITS,
    block_size_field,
    capacity_field,
    config_field,
    feature_field,
    timing_field,
)
from accel.core.scratchpad_specs import MAX_TABLES, TABLE_BYTES


@dataclass(frozen=True, kw_only=True)
class ConfigFields:
    """The fields of ``Config``, without checks."""

    name: str = "custom"
    alu_ops: tuple[str, ...] = STOCK_NAMES
    """A geometry field that is no number. VTA's operations come first."""

    batch: int = block_size_field(
        1, "rows of an inp, acc, out and res element", affects="inp, acc, out, res; GEMM, MAC, ALU"
    )
    block_in: int = block_size_field(
        16,
        "columns of an inp element and of a wgt element, over which the GEMM core sums",
        affects="inp, wgt; GEMM, MAC",
    )
    block_out: int = block_size_field(
        16,
        "rows of a wgt element, columns of an acc, out and res element, channels of a par element",
        affects="wgt, acc, out, par, res; GEMM, MAC, ALU",
    )
    uop_bytes: int = capacity_field(
        32 << 10, "capacity of the micro-op memory", affects="uop; width of uop_begin and uop_end"
    )
    inp_bytes: int = capacity_field(
        32 << 10, "capacity of the inp scratchpad", affects="inp; width of src in micro-ops and factors"
    )
    wgt_bytes: int = capacity_field(
        256 << 10, "capacity of the wgt scratchpad", affects="wgt; width of wgt in micro-ops and factors"
    )
    acc_bytes: int = capacity_field(
        128 << 10,
        "capacity of the acc scratchpad; out has the same number of elements",
        affects="acc, out; width of dst in micro-ops and factors",
    )

    bus_bits: int = timing_field(
        64,
        "bits",
        "width of the AXI4 data bus",
        64,
        512,
        affects="bus: bytes per beat; LOAD, STORE",
        power_of_two=True,
    )
    read_latency: int = timing_field(
        64, "cycles", "from the grant of a read burst to its first beat", 2, 65535, affects="bus: reads"
    )
    write_latency: int = timing_field(
        16,
        "cycles",
        "from the last beat of a write burst to its response",
        1,
        65535,
        affects="bus: writes; when a STORE retires",
    )
    outstanding: int = timing_field(
        32, "bursts", "most bursts in flight, separately for reads and writes", 1, 256, affects="bus"
    )
    max_burst_beats: int = timing_field(
        256,
        "beats",
        "longest burst; rows are split at it and at 4 KiB boundaries",
        2,
        256,
        affects="bus; LOAD, STORE, fetch",
        power_of_two=True,
    )
    fetch_buffer: int = timing_field(
        64,
        "instructions",
        "most instructions requested or read and not yet dispatched",
        1,
        4096,
        affects="fetch",
        power_of_two=True,
    )
    fetch_chunk: int = timing_field(
        16,
        "instructions",
        "instructions per request of the fetch unit",
        1,
        256,
        affects="fetch",
        power_of_two=True,
    )
    load_queue: int = timing_field(
        32, "instructions", "depth of the load unit's queue", 1, 4096, affects="fetch, load"
    )
    compute_queue: int = timing_field(
        32, "instructions", "depth of the compute unit's queue", 1, 4096, affects="fetch, compute"
    )
    store_queue: int = timing_field(
        32, "instructions", "depth of the store unit's queue", 1, 4096, affects="fetch, store"
    )
    loads_in_flight: int = timing_field(
        8,
        "instructions",
        "most LOADs started and not yet retired, separately in the load and the store unit",
        1,
        64,
        affects="load, store; LOAD",
    )
    stores_in_flight: int = timing_field(
        8, "instructions", "most STOREs started and not yet retired", 1, 64, affects="store; STORE"
    )
    tree_stages: int = timing_field(
        2,
        "cycles",
        "pipeline stages of the MAC array's adder tree",
        0,
        8,
        affects="compute: latency of GEMM, MAC, ALU",
    )
    token_bits: int = timing_field(
        8, "bits", "width of a token counter", 1, 16, affects="tokens; error `token-overflow`"
    )
    mem_base: int = timing_field(
        0,
        "bytes",
        "first byte of the DRAM window",
        0,
        (1 << DRAM_ADDRESS_BITS) - 1,
        affects="LOAD, STORE: dram_base; register `mem_base`",
    )
    mem_size: int = timing_field(
        256 << 20,
        "bytes",
        "size of the DRAM window",
        1,
        1 << DRAM_ADDRESS_BITS,
        affects="error `dram-range`; register `mem_size`",
    )
    serial: int = timing_field(
        0,
        "flag",
        "serial mode: an instruction is dispatched only after the previous one has retired",
        0,
        1,
        affects="fetch; register `serial`",
    )
    mul_slots: int = timing_field(
        1,
        "cycles",
        "slots of each micro-op of ALU.MUL; with 4 or 5 each lane has one multiplier, which computes the "
        "product in parts; with 5 the factors come from registers",
        1,
        5,
        affects="compute: ALU.MUL",
    )
    dispatch_stages: int = timing_field(
        0,
        "cycles",
        "pipeline stages between the fetch unit and the queues, in which instructions are checked",
        0,
        3,
        affects="fetch; when any instruction can start",
    )

    post: int = config_field(
        0,
        "geometry",
        "flag",
        "second generation: MAC, zero points, and requantization in the store unit",
        0,
        1,
        affects="MAC, SET, LOAD.PAR, LOAD.RES, STORE.ACC, STORE.REQ, STORE.ADD; par, res",
        post=True,
    )
    post_stages: int = timing_field(
        10,
        "cycles",
        "pipeline stages of requantization, through which the beats of every STORE pass",
        0,
        16,
        affects="store: latency of STORE",
        post=True,
    )
    par_bytes: int = capacity_field(
        16 << 10,
        "capacity of the par scratchpad, which holds a bias and a scale for each channel",
        affects="par; LOAD.PAR, STORE.REQ, STORE.ADD, STORE.MUL",
        post=True,
    )
    res_bytes: int = capacity_field(
        16 << 10,
        "capacity of the res scratchpad, a queue of residuals",
        affects="res; LOAD.RES, STORE.ADD, STORE.MUL",
        post=True,
    )
    post_lanes: int = timing_field(
        0,
        "values",
        "values that the store unit requantizes per cycle; 0: the smaller of the values in a "
        "beat and in an out element",
        0,
        64,
        affects="store: STORE.REQ, STORE.ADD, STORE.MUL",
        power_of_two=True,
        post=True,
    )
    inp_banks: int = config_field(
        0,
        "geometry",
        "banks",
        "banks of the inp scratchpad; the taps of a depthwise MAC lie in different banks; 0: at most 4, at "
        "most block_in and at most the depth of inp if block_in equals block_out, otherwise 1",
        0,
        64,
        affects="inp; SET.ACC, depthwise MAC",
        power_of_two=True,
        post=True,
        optional=True,
    )

    tab_bytes: int = feature_field(
        "bytes",
        "third generation: capacity of the tab scratchpad, which holds tables of 256 bytes; 0: no tables",
        TABLE_BYTES * MAX_TABLES,
        affects="tab; LOAD.TAB, STORE.REQ, STORE.ADD, STORE.MUL",
    )
    res_mul: int = feature_field(
        "flag",
        "third generation: products with residuals, and one residual for a whole STORE",
        1,
        affects="STORE.MUL, STORE.ADD",
    )
    wgt_zero: int = feature_field(
        "flag",
        "third generation: wgt values of 9 bits, from which LOAD.WGT has subtracted a zero point",
        1,
        affects="wgt; SET.WGT, LOAD.WGT",
    )
