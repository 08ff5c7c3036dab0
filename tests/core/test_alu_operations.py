"""Declarations of operations: their properties, their numbers on a machine, and files that name them."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.assembly import assemble, disassemble
from accel.base.errors import AccelError, ConfigError, ProgramError
from accel.base.records import replace
from accel.core import alu_operations
from accel.core.alu_operations import STOCK_NAMES, AluOp, find_operation
from accel.core.config import NAMED, Config, from_dict
from accel.core.isa import Alu, AluHigh, Finish, decode, encode, format_instruction, parse_instruction
from accel.core.isa_manual import isa_manual
from accel.core.lane_expressions import Lane
from accel.operations import Operation, absolute, register, wrapped
from accel.run.program import Program, as_program
from tests.expect import refused
from tests.own_operations import MACHINE, OWN

TINY = NAMED["tiny"]


def _declared(**values: Any) -> Operation:
    return Operation(**({"name": "unnamed", "result": lambda x, y: wrapped(x - y)} | values))


def starts(error: type[Exception], message: str) -> Any:
    """Expect an error whose message starts like this."""
    return pytest.raises(error, match="^" + re.escape(message))


# --- declarations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"name": "Sub"},
            "an operation is named 'Sub'; a name has 1 to 16 letters a-z, digits and _, "
            "and begins with a letter",
        ),
        ({"stages": 16}, "operation 'unnamed' has 16 stages; it must have 0 to 15"),
        (
            {"result": lambda x, y: x - y},
            "the result of operation 'unnamed' ranges from -4294967295 to 4294967295; it must be int32: "
            "end with wrapped(...) or saturated(...)",
        ),
    ],
)
def test_declarations_that_are_refused(values: dict[str, Any], message: str) -> None:
    with refused(AccelError, message):
        _declared(**values)


def test_properties_are_checked_when_an_operation_is_registered() -> None:
    with pytest.raises(AccelError, match=r"'unnamed' is declared as associative; with x, a, b = .* is not"):
        register(_declared(is_associative=True))
    with pytest.raises(AccelError, match=r"repeated\(-40, 2\) = -40; applying -40 2 times differs"):
        register(_declared(repeated=lambda immediate, times: immediate))
    with starts(ConfigError, "operation 'unnamed' is not declared in this installation"):
        find_operation("unnamed")


def test_one_name_is_one_declaration() -> None:
    (gap, *_) = OWN
    assert register(_declared(name="t_gap", result=lambda x, y: wrapped(absolute(x - y)))) is gap
    with refused(AccelError, "another operation is registered as 't_gap'; choose another name"):
        register(_declared(name="t_gap"))
    with refused(AccelError, "another operation is registered as 'add'; choose another name"):
        register(_declared(name="add"))


def test_an_entry_point_declares_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        value = "package:OPERATION"

        def __init__(self, loaded: object) -> None:
            self.loaded = loaded

        def load(self) -> object:
            return self.loaded

    found: dict[str, object] = {
        "from_package": _declared(name="from_package"),
        "other": _declared(),
        "bad": 3,
    }
    monkeypatch.setattr(alu_operations, "_REGISTERED", dict(alu_operations._REGISTERED))
    monkeypatch.setattr(
        alu_operations,
        "_entry_points",
        lambda name: [Point(found[name])] if name in found else [],
    )
    assert find_operation("from_package") is found["from_package"]
    for name in ("other", "bad"):
        with pytest.raises(ConfigError, match=f"entry point 'package:OPERATION' declares operation '{name}'"):
            find_operation(name)
    with starts(ConfigError, "operation 'absent' is not declared in this installation"):
        find_operation("absent")


def test_digests_follow_what_is_computed() -> None:
    def result(x: Lane, y: Lane) -> Lane:
        return wrapped(x - y)

    digests = {
        _declared().digest,
        _declared(result=result).digest,
        _declared(stages=1).digest,
        _declared(result=lambda x, y: wrapped(y - x)).digest,
        _declared(name="other").digest,
    }
    assert _declared().digest == _declared(result=result).digest == _declared(text="x less y").digest
    assert len(digests) == 4


# --- machines ----------------------------------------------------------------------------------------


def test_numbers_are_vtas_then_in_the_order_of_the_machine() -> None:
    config = TINY.override({"alu_ops": "t_sum,max,t_gap,add"})
    assert config.alu_ops == ("max", "add", "t_sum", "t_gap")
    assert dict(config.operation_codes) == {"max": AluOp.MAX, "add": AluOp.ADD, "t_sum": 5, "t_gap": 6}
    assert MACHINE.operation_codes["t_and"] == 14
    assert config.label == "tiny with alu_ops=max,add,t_sum,t_gap"
    assert TINY.override({"alu_ops": "+t_gap"}).label == "tiny with alu_ops=+t_gap"
    assert TINY.override({"alu_ops": "+t_gap"}).hardware != TINY.hardware


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("+t_gap,t_gap", "alu_ops has 't_gap' twice"),
        ("add,subtract", "operation 'subtract' is not declared in this installation"),
        (7, "alu_ops is 7; it must be names of operations, as 'add,max' or '+absdiff'"),
        (["add", 3], "alu_ops is ['add', 3]; it must be names of operations, as 'add,max' or '+absdiff'"),
        (
            "t_gap@0123",
            f"operation 't_gap' has the digest {OWN[0].digest} in this installation; 0123 is needed, so its "
            f"declaration has changed: compile the program again, or install that declaration",
        ),
    ],
)
def test_operations_that_a_machine_cannot_have(value: Any, message: str) -> None:
    with starts(ConfigError, message):
        Config(alu_ops=value)
    with starts(ConfigError, message):
        from_dict({"alu_ops": value})


def test_more_operations_than_numbers() -> None:
    names = [register(_declared(name=f"t_more_{n}", stages=n)).name for n in range(12)]
    with refused(ConfigError, "alu_ops has 12 operations in addition to VTA's; at most 11 have a number"):
        TINY.override({"alu_ops": f"+{','.join(names)}"})


def test_plain_data_of_a_machine() -> None:
    assert "alu_ops" not in TINY.to_dict()
    data = MACHINE.to_dict()
    assert data["alu_ops"] == [*STOCK_NAMES, *(f"{one.name}@{one.digest}" for one in OWN)]
    assert from_dict(data) == MACHINE == pickle.loads(pickle.dumps(MACHINE))
    with refused(
        ConfigError,
        "'alu_ops' is a geometry field, bound when the program was compiled; only timing fields can be set "
        "here",
    ):
        TINY.override({"alu_ops": "add"}, kinds=("timing",))


# --- instructions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", OWN, ids=lambda one: one.name)
def test_instructions_name_their_operation(one: Operation) -> None:
    code = MACHINE.operation_codes[one.name]
    cls = AluHigh if code >= 8 else Alu
    instruction = cls(alu_op=code, use_imm=True, imm=-3, uop_end=1)
    text = format_instruction(instruction)
    assert text.split()[0] == f"ALU.{one.name.upper()}"
    assert parse_instruction(text, MACHINE) == instruction
    (decoded,) = decode(encode([instruction], MACHINE), MACHINE)
    assert decoded == instruction
    assert format_instruction(decoded) == text
    if code >= 8:
        with refused(
            ProgramError,
            f"instruction 0 is ALU.{one.name.upper()}; configuration 'tiny' has no ALU "
            f"operation from number 8 on",
        ):
            encode([instruction], TINY)
    with starts(ProgramError, f"'ALU.{one.name.upper()}' is not a mnemonic"):
        parse_instruction(text, TINY)


def test_the_manual_lists_a_machines_operations() -> None:
    text = isa_manual(MACHINE)
    assert "| 5 | T_GAP | `\\|x - y\\|` |" in text
    assert "### ALU_HIGH (7)" in text
    assert "T_RANGE" in text
    assert "ALU_HIGH" not in isa_manual(TINY)


def _program() -> Program:
    listing = """
        .config tiny alu_ops=+t_gap
        .preset uop[0] .uop 0,1,0
        .preset acc[0] .int32 9*8 -4*8
            ALU.T_GAP uop_end=1
            FINISH
        .expect acc[0] .int32 13*8
    """
    return as_program(assemble(listing))


def test_a_program_file_carries_the_digests(tmp_path: Path) -> None:
    program = _program()
    assert "acc 0 = t_gap(acc 0, acc 1)" in disassemble(program)
    assert as_program(assemble(disassemble(program))) == program
    path = tmp_path / "gap.accel"
    program.save(path)
    assert Program.load(path).config.alu_ops == (*STOCK_NAMES, "t_gap")
    changed = replace(OWN[0], result=lambda x, y: wrapped(x - y))
    known = dict(alu_operations._REGISTERED)
    try:
        alu_operations._REGISTERED["t_gap"] = changed
        with pytest.raises(AccelError, match="operation 't_gap' has the digest"):
            Program.load(path)
        del alu_operations._REGISTERED["t_gap"]
        with pytest.raises(AccelError, match="operation 't_gap' is not declared in this installation"):
            Program.load(path)
    finally:
        alu_operations._REGISTERED.update(known)


def test_a_machine_without_an_operation_says_so() -> None:
    small = accel.machine("tiny", alu_ops="add,max,min")
    with refused(
        accel.TensorizeError,
        "the program needs the ALU operation 'shr'; configuration 'tiny' has alu_ops=min,max,add: "
        "take a machine with alu_ops=min,max,add,shr",
    ):
        accel.build(accel.gemm(4, 8, 4, shift=3), small)
    program = accel.build(accel.gemm(4, 8, 4), small)
    a, b = np.ones((4, 4), np.int8), np.ones((4, 8), np.int8)
    assert (program.run(A=a, B=b).outputs["C"] == 4).all()
    listing = [Alu(alu_op=AluOp.SHR, use_imm=True, imm=1, uop_end=1), Finish()]
    assert decode(encode(listing, small.config), small.config)[0].mnemonic == "ALU.SHR"
