"""The field values of the named machines, where they differ from the defaults."""

from collections.abc import Mapping

_FIRST_GENERATION: dict[str, dict[str, int]] = {
    "vta": {},
    "gemm8x8": {
        "batch": 8,
        "block_in": 8,
        "block_out": 8,
        "uop_bytes": 16 << 10,
        "inp_bytes": 64 << 10,
        "wgt_bytes": 64 << 10,
        "acc_bytes": 128 << 10,
        "bus_bits": 128,
    },
    "tiny": {
        "batch": 1,
        "block_in": 4,
        "block_out": 8,
        "uop_bytes": 1 << 10,
        "inp_bytes": 512,
        "wgt_bytes": 4 << 10,
        "acc_bytes": 4 << 10,
        "tree_stages": 1,
    },
    "ecp5": {
        "batch": 1,
        "block_in": 8,
        "block_out": 8,
        "uop_bytes": 8 << 10,
        "inp_bytes": 8 << 10,
        "wgt_bytes": 32 << 10,
        "acc_bytes": 32 << 10,
        "outstanding": 8,
        "fetch_buffer": 32,
        "load_queue": 16,
        "compute_queue": 16,
        "store_queue": 16,
        "mul_slots": 5,
        "dispatch_stages": 3,
    },
}

_SECOND_GENERATION: dict[str, dict[str, int]] = {
    "tiny": {
        "block_out": 4,
        "wgt_bytes": 2 << 10,
        "acc_bytes": 2 << 10,
        "post_stages": 2,
        "par_bytes": 512,
        "res_bytes": 64,
    },
    "ecp5": {"post_lanes": 2},
}
"""Differences from the first generation, apart from ``post=1``. ``tiny-int8`` has square blocks, so that
depthwise MACs exist, and 16 elements each in par and res. An ECP5-85F has multipliers for two lanes."""

_THIRD_GENERATION: dict[str, int] = {"tab_bytes": 2 << 10, "res_mul": 1, "wgt_zero": 1}
"""Further values of ``-npu``: eight tables, products with residuals, and products of two activations."""

_THIRD_GENERATION_OF: dict[str, dict[str, int]] = {
    "vta": {"post_stages": 9},
    "gemm8x8": {"post_stages": 9},
    "tiny": {"tab_bytes": 1 << 10},
}
"""With nine stages before that of the look-up, the store path of ``vta-npu`` is as long as that of
``vta-int8``, and no path between two registers is longer than with ten. ``tiny-npu`` has only four tables, so
that random programs reuse them."""


def _second(name: str) -> dict[str, int]:
    return {**_FIRST_GENERATION[name], **_SECOND_GENERATION.get(name, {}), "post": 1}


NAMED_VALUES: Mapping[str, Mapping[str, int]] = {
    **_FIRST_GENERATION,
    **{f"{name}-int8": _second(name) for name in _FIRST_GENERATION},
    **{
        f"{name}-npu": {**_second(name), **_THIRD_GENERATION, **_THIRD_GENERATION_OF.get(name, {})}
        for name in _FIRST_GENERATION
    },
}
