"""The register map, its reference and its C header."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from accel.core.config import NAMED, RUN_FIELDS
from accel.core.fault_causes import Cause
from accel.core.isa import Unit
from accel.core.register_manual import c_header, registers_manual
from accel.core.registers import (
    REGISTERS,
    UNIT_COUNTERS,
    Access,
    constants,
    joined,
    registers_of,
    word_addresses,
    word_writes,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "registers.md"


def test_the_document_is_up_to_date() -> None:
    """``make golden`` regenerates the document."""
    assert DOCUMENT.read_text(encoding="utf-8") == registers_manual()


def test_words_do_not_overlap() -> None:
    addresses = word_addresses(REGISTERS)
    assert sorted(set(addresses)) == addresses
    assert all(address % 4 == 0 and address < 1 << 12 for address in addresses)
    assert all(r.offset % (4 * r.words) == 0 for r in REGISTERS.values())


@pytest.mark.parametrize("name", NAMED)
def test_every_hardware_parameter_has_a_register(name: str) -> None:
    values = constants(NAMED[name])
    fixed = {field: getattr(NAMED[name].hardware, field) for field in NAMED[name].fields}
    fixed = {field: value for field, value in fixed.items() if field not in RUN_FIELDS}
    assert fixed.items() <= values.items()
    assert values.keys() - fixed.keys() == {"id", "version"}
    assert all(0 <= value < 1 << 32 for value in values.values())


def test_registers_of_post_1_come_last() -> None:
    """So no address moves. Machines with ``post=0`` do not have these registers."""
    everywhere = registers_of(NAMED["vta"])
    features = ["tab_bytes", "res_mul", "wgt_zero"]
    second = registers_of(NAMED["vta-int8"])
    assert [*second, *features] == list(REGISTERS)
    npu = NAMED["vta-int8"].override({"tab_bytes": 512, "wgt_zero": 1})
    assert [*second, "tab_bytes", "wgt_zero"] == list(registers_of(npu))
    assert list(REGISTERS)[: len(everywhere)] == list(everywhere)
    assert [name for name in REGISTERS if name not in everywhere] == [
        "post",
        "post_stages",
        "par_bytes",
        "res_bytes",
        "post_lanes",
        "inp_banks",
        *features,
    ]
    assert (REGISTERS["post"].offset, REGISTERS["post_lanes"].offset) == (0x300, 0x310)
    assert constants(NAMED["vta-int8"])["post_lanes"] == 8


def test_every_counter_is_there() -> None:
    names = {name for name, register in REGISTERS.items() if register.access is Access.COUNTER}
    expected = {f"{unit.label}_{kind}" for unit in Unit for kind in UNIT_COUNTERS}
    assert names == expected | {"cycles", "read_bytes", "written_bytes"}


def test_values_survive_being_split_into_words() -> None:
    values = {"program_address": 0xFE_DCBA_9870, "program_length": 17, "max_cycles": (1 << 64) - 2}
    writes = word_writes(values)
    assert [address for address, _ in writes] == word_addresses(values)
    assert joined(values, [word for _, word in writes]) == values


def test_the_header_compiles_and_says_the_same(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "registers.h").write_text(c_header())
    words = re.findall(r"#define (ACCEL_\w+) 0x([0-9a-f]{3})u", c_header())
    lines = [f'printf("%s %u\\n", "{name}", (unsigned){name});' for name, _ in words]
    lines += [f'printf("%s %u\\n", "{c.name}", (unsigned)ACCEL_CAUSE_{c.name});' for c in Cause]
    text = '#include <stdio.h>\n#include "registers.h"\nint main(void) {\n' + "\n".join(lines) + "\n}\n"
    (tmp_path / "main.c").write_text(text)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-o", str(tmp_path / "main")]
    subprocess.run([compiler, *flags, str(tmp_path / "main.c")], check=True)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    found = {name: int(value) for name, value in map(str.split, printed.splitlines())}
    expected: dict[str, int] = {cause.name: cause.value for cause in Cause}
    for register in REGISTERS.values():
        suffixes = ("",) if register.words == 1 else ("_LOW", "_HIGH")
        for word, suffix in enumerate(suffixes):
            expected[f"ACCEL_{register.name.upper()}{suffix}"] = register.offset + 4 * word
    assert found == expected
