"""The configuration of a machine: its geometry and its timing."""

from accel.core.config.config_files import from_dict, load_config
from accel.core.config.field_spec import (
    DRAM_ADDRESS_BITS,
    INSTRUCTION_BYTES,
    PAGE_BYTES,
    UOP_BYTES,
    Kind,
    Spec,
)
from accel.core.config.machine_config import ALU_OPS, NAMED, RUN_FIELDS, SPECS, Config, parse_quantity
from accel.core.config.vta_config import from_vta

__all__ = [
    "ALU_OPS",
    "DRAM_ADDRESS_BITS",
    "INSTRUCTION_BYTES",
    "NAMED",
    "PAGE_BYTES",
    "RUN_FIELDS",
    "SPECS",
    "UOP_BYTES",
    "Config",
    "Kind",
    "Spec",
    "from_dict",
    "from_vta",
    "load_config",
    "parse_quantity",
]
