"""Read VTA's ``vta_config.json``."""

from collections.abc import Mapping
from typing import Any

from accel.base.errors import ConfigError, nearest
from accel.base.json_types import shown
from accel.core.config.machine_config import Config

VTA_IGNORED_KEYS = {"TARGET", "HW_VER"}
_VTA_WIDTH_LOGS = {"LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3, "LOG_ACC_WIDTH": 5, "LOG_OUT_WIDTH": 3}
"""Supported base-2 logarithms of data widths in bits."""
_VTA_KEYS = {
    "LOG_BATCH": ("batch",),
    "LOG_BLOCK": ("block_in", "block_out"),
    "LOG_BLOCK_IN": ("block_in",),
    "LOG_BLOCK_OUT": ("block_out",),
    "LOG_UOP_BUFF_SIZE": ("uop_bytes",),
    "LOG_INP_BUFF_SIZE": ("inp_bytes",),
    "LOG_WGT_BUFF_SIZE": ("wgt_bytes",),
    "LOG_ACC_BUFF_SIZE": ("acc_bytes",),
}
"""Fields whose base-2 logarithm a key holds."""
_MAX_LOG = 40
"""2**40 bytes are all of DRAM."""


def from_vta(data: Mapping[str, Any], *, name: str = "custom") -> Config:
    """Convert VTA's ``vta_config.json``.

    Missing keys get VTA's stock values, timing fields their defaults. ``TARGET`` and ``HW_VER`` are ignored.
    ``LOG_BLOCK_IN`` and ``LOG_BLOCK_OUT`` override ``LOG_BLOCK``.

    Raises:
        ConfigError: unknown key, or data widths other than int8 operands and results and int32 sums.
    """
    values: dict[str, int] = {}
    known = VTA_IGNORED_KEYS | _VTA_WIDTH_LOGS.keys() | _VTA_KEYS.keys() | {"LOG_OUT_BUFF_SIZE"}
    for key, value in data.items():
        if key not in known:
            raise ConfigError(f"{key!r} is not a VTA configuration key; {nearest(key, known)}")
        if key in VTA_IGNORED_KEYS:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_LOG:
            raise ConfigError(f"{key} is {shown(value)}; it must be an integer logarithm in 0..{_MAX_LOG}")
        if key in _VTA_WIDTH_LOGS and value != _VTA_WIDTH_LOGS[key]:
            raise ConfigError(
                f"{key} is {value}; operands and results are int8 and sums int32 here, "
                f"so it must be {_VTA_WIDTH_LOGS[key]}"
            )
    for (
        key,
        names,
    ) in _VTA_KEYS.items():  # later keys override earlier ones
        if key in data:
            values.update(dict.fromkeys(names, 1 << data[key]))
    config = Config(name=name).override(values)
    out = data.get("LOG_OUT_BUFF_SIZE")
    if out is not None and 1 << out != config.acc_depth * config.out_element_bytes:
        raise ConfigError(
            f"LOG_OUT_BUFF_SIZE is {out}; out holds as many elements as acc, so it must be "
            f"{(config.acc_depth * config.out_element_bytes).bit_length() - 1}"
        )
    return config
