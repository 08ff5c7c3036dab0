"""Names of the counted accesses of a run, the same in simulator and hardware."""

from accel.core.config import Config
from accel.core.memory_banks import MIRROR
from accel.core.scratchpad_specs import ACC, PAR, RES, TAB, scratchpads_of

OPERATIONS = ("gemm", "mac", "depthwise", "depthwise_taps", "alu", "alu_mul")
"""Micro-ops by kind: GEMM, MAC over all columns, depthwise MAC and the sum of their taps, ALU other than MUL,
and MUL."""
BUS = ("read_bursts", "write_bursts")


def read_names(config: Config) -> dict[str, str]:
    """Return the counted reads, each with the memory that it reads.

    Each of the two copies of acc has its own read port and count.
    """
    found = {f"{name}_reads": name for name in scratchpads_of(config) if name != ACC.name}
    return found | {"acc_dst_reads": ACC.name, "acc_src_reads": ACC.name, "out_reads": MIRROR}


def write_names(config: Config) -> dict[str, tuple[str, str]]:
    """Return the names of the counted bank writes and write enables, by scratchpad."""
    return {name: (f"{name}_writes", f"{name}_lane_writes") for name in scratchpads_of(config)}


def access_names(config: Config) -> tuple[str, ...]:
    """Return the names of all counts of a machine, in order.

    ============================  ===================================================================
    ``gemm`` etc.                 micro-ops by kind
    ``inp_reads`` etc.            cycles in which a micro-op, or a slot of a STORE, reads the memory
    ``inp_writes`` etc.           words written, summed over the banks of one copy
    ``inp_lane_writes`` etc.      write enables of these words
    ``read_bursts`` etc.          bursts on the bus
    ============================  ===================================================================
    """
    writes = [name for pair in write_names(config).values() for name in pair]
    return (*OPERATIONS, *read_names(config), *writes, *BUS)


STORE_READS = {PAR.name: "par_reads", RES.name: "res_reads", TAB.name: "tab_reads"}
