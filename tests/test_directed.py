"""The programs of ``tests/programs``: each feature of the instruction set by itself, on every backend."""

from functools import cache
from pathlib import Path

import pytest

from accel.assembly import assemble, disassemble
from accel.base.records import replace
from accel.base.run_choices import SIMULATORS
from accel.core.alu_operations import OperationCode
from accel.core.fault_causes import Cause
from accel.core.isa import CLASSES, VARIANTS, Alu, AluOp, Instruction, Load, Store, field_specs
from accel.run.program import Program, as_program
from accel.run.replay import load_test, replay
from tests.own_operations import OWN

FOLDER = Path(__file__).parent / "programs"
FILES = sorted(FOLDER.glob("*.s"))
UNPROVEN = {"order_of_micro_ops_that_were_stored"}
"""Errors that only the run finds."""

each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@cache
def program(path: Path) -> Program:
    return load_test(path)


@each
@pytest.mark.parametrize("backend", SIMULATORS)
def test_all_is_as_expected(path: Path, backend: str) -> None:
    """Whatever is in the scratchpads that the program does not preset."""
    for seed in range(2):
        done = replay(program(path), backend=backend, seed=seed)
        assert done.differences == (), seed
        limited_cycles = program(path).start.max_cycles is not None and done.figures.cycles is None
        assert done.passed is (None if limited_cycles and "limit" in path.stem else True), seed


@each
def test_the_check_knows_what_will_come(path: Path) -> None:
    """Programs that end well are proven and read no arbitrary element. The others are refuted."""
    one = program(path)
    assert one.expected is not None
    report = one.check()
    causes = {fault.cause for _, fault in report.faults}
    if one.expected.racy:
        assert report.race_count
    elif path.stem in UNPROVEN:
        assert report.unknown_uops
        assert report.race_count == 0
    elif one.expected.cause in (Cause.NONE, Cause.LIMIT):
        assert report.ok
        assert report.unwritten == ()
    elif one.expected.cause is Cause.DEADLOCK:
        assert report.deadlock is not None
    else:
        assert causes == {one.expected.cause}


@each
def test_any_order_will_do(path: Path) -> None:
    for order in range(3):
        done = replay(program(path), order="random", seed=order)
        assert done.differences == (), order


TIMINGS: tuple[dict[str, int], ...] = (
    {"read_latency": 2, "write_latency": 1, "outstanding": 1},
    {"bus_bits": 512, "max_burst_beats": 2, "fetch_chunk": 1, "fetch_buffer": 1},
    {"load_queue": 1, "compute_queue": 1, "store_queue": 1, "loads_in_flight": 1, "stores_in_flight": 1},
    {"serial": 1},
)


@each
def test_any_timing_will_do(path: Path) -> None:
    """Where it does not decide: short queues and serial mode may deadlock what is not in order."""
    one = program(path)
    assert one.expected is not None
    if one.expected.cause is Cause.LIMIT:
        return
    for timing in TIMINGS:
        changed = one.with_timing(replace(one.config, **timing))  # type: ignore[arg-type]
        if changed.check().deadlock is None:
            assert replay(changed, backend="sim").differences == (), timing


@each
def test_listings_come_back(path: Path) -> None:
    assert as_program(assemble(disassemble(program(path)))) == program(path)


# --- what they have between them -----------------------------------------------------------------------


def instructions() -> list[Instruction]:
    return [instruction for path in FILES for instruction in program(path).instructions]


def test_every_field_of_every_instruction_matters_somewhere() -> None:
    for cls in (*CLASSES.values(), *VARIANTS.values()):
        seen = [one for one in instructions() if type(one) is cls]
        for name in field_specs(cls):
            values = {int(getattr(one, name)) for one in seen}
            fixed = ("opcode", "memory", "part") if cls.MEMORY is not None else ("opcode",)
            assert len(values) > 1 or name in fixed, f"{cls.__name__}.{name}"


def test_every_memory_and_operation_is_there() -> None:
    assert {one.memory for one in instructions() if isinstance(one, Load)} == set(range(8))
    assert {one.memory for one in instructions() if isinstance(one, Store)} == set(range(8))
    operations = {(one.alu_op, one.use_imm) for one in instructions() if isinstance(one, Alu)}
    assert {(op.value, imm) for op in AluOp for imm in (False, True)} <= operations
    own = {code.name.lower() for code, _ in operations if isinstance(code, OperationCode)}
    assert {one.name for one in OWN} == own


def test_every_error_is_there() -> None:
    """But those that take a bad memory, or a host that stops the run."""
    causes = {one.expected.cause for one in map(program, FILES) if one.expected is not None}
    assert causes == set(Cause) - {Cause.BUS, Cause.STOPPED, Cause.TIMEOUT}


def test_every_program_says_what_it_is_for() -> None:
    assert len(FILES) > 100
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in FILES)
