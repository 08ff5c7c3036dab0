"""The C header of a machine's instructions."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from accel.core.config import NAMED, Config
from accel.core.isa import Alu, AluHigh, Load, Memory, decode, encode
from accel.core.isa_c_header import isa_c_header
from tests.own_operations import MACHINE
from tests.tools import needs


def values(config: Config) -> dict[str, int]:
    return {
        name: int(number)
        for name, number in re.findall(r"(ACCEL_\w+)(?: =)? (\d+)[u,]", isa_c_header(config))
    }


def word(known: dict[str, int], kind: str, fields: dict[str, int]) -> int:
    """Place fields as a C program does."""
    found = 0
    for name, value in fields.items():
        key = f"ACCEL_{kind}_{name.upper()}"
        assert value < 1 << known[f"{key}_BITS"]
        found |= value << known[f"{key}_BIT"]
    return found


@pytest.mark.parametrize("name", ["vta", "tiny", "vta-npu"])
def test_words_equal_the_codecs(name: str) -> None:
    config = NAMED[name]
    known = values(config)
    fields = {"sram_base": 3, "dram_base": 100, "y_size": 2, "x_size": 5, "x_stride": 7, "push_next": 1}
    load = Load(memory=Memory.WGT, **fields)
    ids = {"opcode": known["ACCEL_OPCODE_LOAD"], "memory": known["ACCEL_LOAD_MEMORY_WGT"]}
    assert word(known, "LOAD", ids | fields).to_bytes(16, "little") == encode([load], config)


def test_operations_of_ones_own_have_constants() -> None:
    known = values(MACHINE)
    numbers = [known[f"ACCEL_ALU_OP_{name.upper()}"] for name in MACHINE.alu_ops]
    assert numbers == list(range(len(MACHINE.alu_ops)))
    name = MACHINE.alu_ops[-1]
    code = known[f"ACCEL_ALU_OP_{name.upper()}"]
    assert code >= known["ACCEL_ALU_HIGH_ALU_OP_BASE"], "of opcode 7"
    fields = {"opcode": known["ACCEL_OPCODE_ALU_HIGH"], "iter_out": 4, "use_imm": 1, "imm": 9}
    fields["alu_op"] = code - known["ACCEL_ALU_HIGH_ALU_OP_BASE"]
    (instruction,) = decode(word(known, "ALU_HIGH", fields).to_bytes(16, "little"), MACHINE)
    assert isinstance(instruction, AluHigh)
    assert (instruction.alu_op, instruction.imm) == (code, 9)


def test_the_alus_operation() -> None:
    config = NAMED["vta"]
    known = values(config)
    fields = {"alu_op": known["ACCEL_ALU_OP_ADD"], "iter_out": 4, "use_imm": 1, "imm": 9}
    alu = Alu(**fields, uop_begin=0, uop_end=0, iter_in=0)
    assert word(known, "ALU", {"opcode": known["ACCEL_OPCODE_ALU"]} | fields).to_bytes(
        16, "little"
    ) == encode([alu], config)


@pytest.mark.parametrize("name", ["vta", "vta-npu"])
def test_a_compiler_accepts_it(name: str, tmp_path: Path) -> None:
    needs("g++")
    compiler = shutil.which("g++")
    assert compiler is not None
    header = tmp_path / "accel_isa.h"
    header.write_text(isa_c_header(NAMED[name]))
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", header], check=True)
