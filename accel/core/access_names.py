"""Names of the counted accesses of a run, the same in simulator and hardware."""

from accel.core.config import Config
from accel.core.memory_banks import MIRROR
from accel.core.scratchpad_specs import ACC, PAR, RES, TAB, scratchpads_of

OPERATIONS = ("gemm", "mac", "depthwise", "depthwise_taps", "alu", "alu_mul")
"""Micro-ops by kind: GEMM, MAC over all columns, depthwise MAC and the sum of their taps, ALU other than MUL,
and MUL."""
BUS = ("read_bursts", "write_bursts")


def read_names(config: Config) -> dict[str, str]:
    """Return the memory of each counted read. Each copy of acc has its own read port and count."""
    found = {f"{name}_reads": name for name in scratchpads_of(config) if name != ACC.name}
    return found | {"acc_dst_reads": ACC.name, "acc_src_reads": ACC.name, "out_reads": MIRROR}


def write_names(config: Config) -> dict[str, tuple[str, str]]:
    """Return the names of bank writes and write enables by scratchpad."""
    return {name: (f"{name}_writes", f"{name}_lane_writes") for name in scratchpads_of(config)}


def access_names(config: Config) -> tuple[str, ...]:
    """Return the names in order, see ``docs/reference/area-and-energy.md``."""
    writes = [name for pair in write_names(config).values() for name in pair]
    return (*OPERATIONS, *read_names(config), *writes, *BUS)


STORE_READS = {PAR.name: "par_reads", RES.name: "res_reads", TAB.name: "tab_reads"}
