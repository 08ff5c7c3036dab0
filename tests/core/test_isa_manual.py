from pathlib import Path

import pytest

from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.fault_conditions import conditions_of
from accel.core.isa import Instruction, MicroOp, class_slots, classes_of, variants_of
from accel.core.isa_manual import isa_manual
from tests.core.test_fault_causes import FAULTS, FINISHING

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "isa.md"


def test_the_document_is_up_to_date() -> None:
    """``make golden`` regenerates the document."""
    assert DOCUMENT.read_text(encoding="utf-8") == isa_manual(NAMED["vta-int8"])


@pytest.mark.parametrize("name", NAMED)
def test_every_field_of_every_instruction_is_there(name: str) -> None:
    manual = isa_manual(NAMED[name])
    sections = {part.split("\n")[0].split(" ")[0]: part for part in manual.split("## ")}
    for cls, title in [
        *((cls, cls.OPCODE.name) for cls in classes_of(NAMED[name]).values()),
        *((cls, cls().mnemonic) for cls in variants_of(NAMED[name]).values()),
        (MicroOp, "Micro-ops"),
    ]:
        for slot in class_slots(cls, NAMED[name]):
            bits = str(slot.offset)
            if slot.width > 1:
                bits = f"{slot.offset + slot.width - 1}:{slot.offset}"
            assert f"| {bits} | `{slot.name}` | {slot.spec.doc}" in sections[title]


@pytest.mark.parametrize("name", NAMED)
def test_every_error_is_there(name: str) -> None:
    manual = isa_manual(NAMED[name])
    for cause in Cause:
        line = f"| {cause.value} | `{cause.label}` | {cause.doc}" + (
            "; only where post=1 |" * cause.post or " |"
        )
        assert (line in manual) is (not cause.post or bool(NAMED[name].post))
        assert cause.doc


def test_machines_with_post_0_omit_the_additions_of_post_1() -> None:
    first, second = isa_manual(NAMED["vta"]), isa_manual(NAMED["vta-int8"])
    assert "post" not in first
    assert "### MAC" not in first
    assert "STORE.ACC" not in first
    assert "#### STORE.ACC (1, memory 3)\n\nOnly machines of the second generation" in second
    assert "### MAC (5)\n\nOnly machines of the second generation" in second


def test_memories_have_the_shapes_of_the_machine() -> None:
    manual = isa_manual(NAMED["gemm8x8"])
    assert "| 2 | INP | int8[8][8] | inp | 1024 | LOAD, in the load unit |" in manual
    assert "| 4 | OUT | int8[8][8]: the low bytes of acc | acc | 512 | STORE, in the store unit |" in manual
    assert "| 3 | ACC | int32[8][8] | acc | 512 | LOAD, in the compute unit |" in manual


@pytest.mark.parametrize(("instruction", "cause", "message"), FAULTS + FINISHING)
def test_every_error_that_a_unit_reports_stands_at_its_instruction(
    instruction: Instruction, cause: Cause, message: str
) -> None:
    assert cause in {one.cause for one in conditions_of(type(instruction), NAMED["vta-int8"])}
