"""The figures of a run, compared with values computed by hand."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

import accel
from accel.base.errors import DeadlockError, MachineError, MismatchError, RaceError
from accel.base.records import replace
from accel.core.config import Config
from accel.core.fault_causes import Cause, Fault, instruction_fault
from accel.core.isa import Gemm, Instruction, Load, Memory, Store
from accel.run.result import RESULT_KEYS, Result, bytes_moved, error_dict
from tests.expect import refused
from tests.programs import gemm_program, handmade


@pytest.fixture(scope="module")
def result() -> Result:
    """A (16, 24) times B (24, 8) on 8x8x8 blocks: 2 x 1 x 3 of them; 16 bytes per cycle and direction."""
    return gemm_program(16, 8, 24, config="gemm8x8").run()


def test_least_cycles(result: Result) -> None:
    figures = result.to_dict()
    assert figures["macs"] == 16 * 8 * 24
    assert figures["ideal_cycles"] == 6  # 3072 MACs, 512 per cycle
    assert figures["roofline_cycles"] == 36  # (16 * 24 + 24 * 8) bytes read, 16 per cycle
    assert Fraction(figures["utilization"]) == Fraction(6 / figures["cycles"])
    assert Fraction(figures["roofline_fraction"]) == Fraction(36 / figures["cycles"])


def test_bytes_moved(result: Result) -> None:
    figures = result.to_dict()
    kinds = figures["bytes_by_kind"]
    assert list(kinds) == ["uop", "wgt", "inp", "acc", "out", "acc_8bit", "instructions"]
    assert (kinds["inp"], kinds["wgt"], kinds["out"]) == (16 * 24, 24 * 8, 16 * 8)
    assert (kinds["acc"], kinds["acc_8bit"]) == (0, 0)
    assert kinds["instructions"] == 16 * figures["instructions"]
    assert 0 < kinds["uop"] <= 4 * figures["uops"]
    assert figures["load_bytes"] == kinds["inp"] + kinds["wgt"] + kinds["uop"]
    assert figures["store_bytes"] == 16 * 8


def test_bytes_of_repeated_instructions_count_each_time_and_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = accel.machine("gemm8x8").config
    block = {"dram_base": 64, "y_size": 3, "x_size": 2, "x_stride": 4}
    load, store = Load(memory=Memory.INP, **block), Store(**block)
    faulty = Load(memory=Memory.WGT, **(block | {"x_size": 60000}))  # the scratchpad has 1,024 elements
    computed: list[Instruction] = []

    def counted(instruction: Instruction, config: Config) -> Fault | None:
        computed.append(instruction)
        return instruction_fault(instruction, config)

    monkeypatch.setattr("accel.run.result.instruction_fault", counted)
    moved = bytes_moved([load, store, load, faulty, Gemm(), load, faulty], config)
    assert (moved["inp"], moved["wgt"], moved["out"]) == (3 * 6 * 64, 0, 6 * 64)
    assert moved["instructions"] == 7 * 16
    assert [id(one) for one in computed] == [id(load), id(store), id(faulty)]


def test_the_repr_of_a_result_is_one_line(result: Result) -> None:
    assert repr(result) == (
        f"Result(sim on gemm8x8, {len(result.instructions)} instructions, {result.cycles} cycles, "
        f"utilization {6 / (result.cycles or 0):.1%}, 0 mismatches; C int8[16, 8])"
    )
    untimed = gemm_program().run(backend="functional", check=False)
    assert repr(untimed) == (
        f"Result(functional on tiny, {len(untimed.instructions)} instructions, not compared; C int8[3, 9])"
    )


def test_results_are_equal_if_they_are_the_same(result: Result) -> None:
    assert result == result  # arrays in it must not be compared
    assert result != replace(result)
    assert result in {result}


def test_micro_ops_are_counted_as_executed(result: Result) -> None:
    """Six block products, and two accumulators set to zero."""
    assert result.to_dict()["uops"] == 6 + 2


@pytest.mark.parametrize(
    ("sizes", "options", "roofline"),
    [
        ((64, 64, 64), {}, 512),  # products: 64**3 MACs, 512 per cycle; 8192 bytes take as long
        ((64, 64, 8), {}, 256),  # writing: 4096 bytes
        ((1, 1, 1000), {}, 125),  # reading: 2000 bytes
        ((8, 8, 8), {"bias": True}, 10),  # reading: 128 bytes of int8 and 8 of int32
        ((8, 8, 8), {"bias": True, "shift": 1}, 10),
    ],
)
def test_the_roofline_is_the_slowest_of_three(
    sizes: tuple[int, int, int], options: dict[str, Any], roofline: int
) -> None:
    found = gemm_program(*sizes, config="gemm8x8", **options).run(check=False)
    assert found.to_dict()["roofline_cycles"] == roofline
    assert found.cycles is not None
    assert found.cycles > roofline


def test_padding_is_moved_but_does_not_count_as_work() -> None:
    """(7, 5) times (5, 13): 1 x 2 x 1 blocks. The bias is repeated in every row of two blocks."""
    program = accel.build(accel.gemm(7, 13, 5, bias=True), "gemm8x8", vthreads=1)
    figures = program.run().to_dict()
    assert figures["macs"] == 7 * 13 * 5
    kinds = figures["bytes_by_kind"]
    assert (kinds["inp"], kinds["wgt"], kinds["acc"], kinds["out"]) == (64, 2 * 64, 2 * 8 * 8 * 4, 2 * 64)
    assert figures["roofline_cycles"] == (7 * 5 + 5 * 13 + 13 * 4) / 16


def test_bytes_of_each_memory() -> None:
    """The bytes are rows times the row's size. Padding and empty transfers move none."""
    row = {"y_size": 2, "x_size": 3, "x_stride": 3}
    program = handmade(
        Load(memory=Memory.UOP, **row),
        Load(memory=Memory.WGT, **row),
        Load(memory=Memory.INP, y_pad_0=1, x_pad_1=1, **row),
        Load(memory=Memory.ACC, **row),
        Load(memory=Memory.ACC_8BIT, **row),
        Load(memory=Memory.INP, y_size=0, x_size=3, y_pad_0=1),
        Store(memory=Memory.UOP, y_size=3, x_size=0),
        Store(**row),
    )
    found = program.run()
    assert found.bytes_by_kind == {
        "uop": 6 * 4,
        "wgt": 6 * 32,
        "inp": 6 * 4,
        "acc": 6 * 32,
        "acc_8bit": 6 * 8,
        "out": 6 * 8,
        "instructions": 9 * 16,
    }
    assert found.load_bytes == 24 + 192 + 24 + 192 + 48
    assert found.store_bytes == 48


def test_every_cycle_of_a_unit_has_a_state(result: Result) -> None:
    assert result.stalls is not None
    assert list(result.stalls) == ["fetch", "load", "compute", "store"]
    for cycles in result.stalls.values():
        assert sum(cycles.to_dict().values()) == result.cycles
    assert result.stalls["load"].busy == (16 * 24 + 24 * 8) // 16
    assert result.stalls["store"].busy == 16 * 8 // 16
    assert result.stalls["fetch"].busy == len(result.instructions)


def test_to_dict_has_the_documented_keys(result: Result) -> None:
    figures = result.to_dict()
    assert tuple(figures) == RESULT_KEYS
    assert figures["schema_version"] == 1
    assert (figures["backend"], figures["config"]) == ("sim", "gemm8x8")
    assert (figures["mismatches"], figures["error"]) == (0, None)
    assert min(figures[f"{what}_seconds"] for what in ("compile", "pack", "simulate")) > 0


def test_figures_that_do_not_apply_are_none() -> None:
    found = gemm_program().run(backend="functional", check=False)
    assert (found.cycles, found.stalls, found.events) == (None, None, None)
    figures = found.to_dict()
    assert tuple(figures) == RESULT_KEYS
    assert {key for key, value in figures.items() if value is None} == {
        *("cycles", "utilization", "roofline_fraction", "bound_by", "mismatches", "stalls", "error"),
        *("slot_utilization", "slot_roofline_fraction"),
    }
    handmade_figures = handmade(Gemm()).run().to_dict()
    assert {key for key, value in handmade_figures.items() if value is None} == {
        *("macs", "padding_macs", "ideal_cycles", "roofline_cycles", "utilization", "roofline_fraction"),
        *("mismatches", "compile_seconds", "error"),
        *("slot_bound_cycles", "slot_roofline_fraction", "packing_factor"),
    }


def test_a_mismatch_is_an_error(result: Result) -> None:
    result.raise_if_wrong()
    wrong = replace(result, mismatches=3)
    message = "3 of 128 output elements differ from the numpy reference"
    with refused(MismatchError, message):
        wrong.raise_if_wrong()
    assert wrong.to_dict()["error"] == {
        "cause": "mismatch",
        "instruction": None,
        "cycle": None,
        "message": message,
    }


def test_a_run_faster_than_the_roofline_is_an_error(result: Result) -> None:
    assert result.compulsory is not None
    assert result.cycles is not None
    least = replace(result.compulsory, read_bytes=16 * (result.cycles + 1))
    message = (
        f"the run took {result.cycles} cycles, fewer than the {result.cycles + 1} that the roofline allows; "
        f"one of the two is wrong"
    )
    with refused(MismatchError, message):
        replace(result, compulsory=least).to_dict()
    exact = replace(result, compulsory=replace(least, read_bytes=16 * result.cycles))
    assert exact.roofline_fraction == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MachineError("m", cause=Cause.SRAM_RANGE, index=3, cycle=70), ("sram-range", 3, 70)),
        (DeadlockError("m", cause=Cause.DEADLOCK, index=0), ("deadlock", 0, None)),
        (RaceError("m"), ("race", None, None)),
    ],
)
def test_errors_as_plain_data(error: accel.ProgramFault, expected: tuple[Any, ...]) -> None:
    assert tuple(error_dict(error).values()) == (*expected, "m")


def test_seconds_are_those_of_the_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing before and unpacking after the run count together. The comparison does not count."""
    ticks = iter([10.0, 12.0, 12.0, 15.0, 15.0, 19.0])
    program = gemm_program()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))  # other threads use the real one
    monkeypatch.setattr("accel.run.program.time", clock)
    monkeypatch.setattr("accel.run.execute_program.time", clock)
    found = program.run()
    assert (found.pack_seconds, found.simulate_seconds) == (2 + 4, 3)
    assert next(ticks, None) is None


def test_a_run_is_bound_by_a_busy_unit_or_latency(result: Result) -> None:
    assert result.bound_by == "latency"  # a few cycles of work, 64 until the first beat
    assert result.gemm_uops == 6
    slow = gemm_program(1, 1, 2048, config="gemm8x8").run()
    assert slow.bound_by == "loads"
    assert slow.stalls is not None
    assert slow.stalls["load"].busy > 0.85 * (slow.cycles or 0)
