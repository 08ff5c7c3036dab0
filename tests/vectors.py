"""A small conformance vector, written into a folder: eight sums from DRAM, plus seven, stored as bytes."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from accel.core.config import from_vta
from accel.core.isa import Alu, AluOp, Finish, Instruction, Load, Memory, Store, encode, encode_uops

KEYS = {
    "LOG_BATCH": 0,
    "LOG_BLOCK_IN": 2,
    "LOG_BLOCK_OUT": 3,
    "LOG_UOP_BUFF_SIZE": 10,
    "LOG_INP_BUFF_SIZE": 9,
    "LOG_WGT_BUFF_SIZE": 12,
    "LOG_ACC_BUFF_SIZE": 12,
}
CONFIG = from_vta(KEYS)
UOPS, SUMS, RESULT = 0x1000, 0x2000, 0x3000
VALUES = np.array([0, 1, -1, 100, 120, 121, -200, 300], dtype=np.int32)
RESULTS = (VALUES + 7).astype(np.int8)


def program() -> list[Instruction]:
    """Load a micro-op and eight sums, add seven to them, store their low bytes."""
    row = {"y_size": 1, "x_size": 1, "x_stride": 1}
    return [
        Load(memory=Memory.UOP, dram_base=UOPS // 4, **row),
        Load(memory=Memory.ACC, dram_base=SUMS // 32, **row),
        Alu(alu_op=AluOp.ADD, use_imm=True, imm=7, uop_end=1, push_next=True),
        Store(dram_base=RESULT // 8, pop_prev=True, **row),
        Finish(),
    ]


def page(content: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(content.ljust(4096, b"\0"), dtype=np.uint8)


def write_vector(folder: Path, **changes: Any) -> Path:
    """Write a valid vector.

    Args:
        folder: it is made.
        changes: other content by the file's name without its suffix: bytes, or for npz files some of its
            arrays. None leaves out a file or an array.
    """
    arrays: dict[str, dict[str, Any]] = {
        "dram_before": {
            "addr": np.array([UOPS, SUMS], dtype=np.uint64),
            "data": np.stack([page(encode_uops([(0, 0, 0)], CONFIG).tobytes()), page(VALUES.tobytes())]),
        },
        "expect": {
            "addr": np.array([RESULT, SUMS], dtype=np.uint64),
            "length": np.array([8, 32], dtype=np.uint64),
            "data": np.concatenate([RESULTS.view(np.uint8), VALUES.view(np.uint8)]),
        },
    }
    folder.mkdir(parents=True)
    content = {"config": json.dumps(KEYS).encode(), "insn": encode(program(), CONFIG)} | changes
    for stem, suffix in (("config", ".json"), ("insn", ".bin"), ("dram_before", ".npz"), ("expect", ".npz")):
        path, new = folder / (stem + suffix), content.get(stem, {})
        if isinstance(new, bytes):
            path.write_bytes(new)
        elif new is not None:
            kept = {key: value for key, value in (arrays[stem] | new).items() if value is not None}
            np.savez(path, **kept)
    return folder
