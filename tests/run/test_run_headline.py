"""The sentence on top of a run: its cause is the critical path's, and the next step fits it."""

from typing import Any

import pytest

import accel
from accel.base.records import replace
from accel.run.critical_path import shares
from accel.run.machine_advice import Advice, AdviceReport, SoftwareAdvice
from accel.run.result import Result
from accel.run.run_headline import headline
from tests.programs import gemm_program, handmade


def run(workload: accel.Workload, machine: accel.Machine, **options: Any) -> Result:
    return accel.build(workload, machine, **options).run(check=False)


EMPTY = "blocks are partly empty: "
CASES = {
    "passes": (
        accel.gemm(128, 128, 128, shift=7),
        {},
        "compute slots",
        "`vta-int8` requantizes in the store unit",
    ),
    "no passes": (accel.gemm(128, 128, 128, shift=7), {"post": 1}, "compute slots", "more multipliers"),
    "empty blocks": (accel.conv2d(1, 3, 32, 32, 16, 3), {"mapping": "plain"}, "compute slots", EMPTY),
    "empty rows": (accel.conv2d(1, 3, 7, 9, 5, 3), {"batch": 8}, "load read data", EMPTY),
    "a single row": (accel.gemm(1, 512, 512), {}, "load read data", "a wider bus (`--set bus_bits=128`)"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_next_step_fits_the_cause(name: str) -> None:
    workload, changes, bound, step = CASES[name]
    options = {key: changes[key] for key in changes if key == "mapping"}
    fields = {key: changes[key] for key in changes if key != "mapping"}
    result = run(workload, accel.machine("vta", **fields), **options)
    found = headline(result)
    assert found is not None
    assert found.step.startswith(step)
    assert found.bound.startswith(bound)
    most = shares(result.critical_path())[0]
    assert (found.unit, found.cause, found.cycles) == (most.unit, str(most.cause), most.cycles)
    assert found.text.startswith(f"{bound}: {found.cycles:,} cycles, {found.share:.0%} of the run; ")
    assert found.to_dict()["share"] == most.cycles / (result.cycles or 0)


def test_repeated_loads_are_named() -> None:
    small = accel.machine("gemm8x8", inp_bytes="4KiB", wgt_bytes="4KiB", acc_bytes="4KiB", bus_bits=64)
    found = headline(run(accel.gemm(128, 128, 128, shift=8), small))
    assert found is not None
    assert found.ideal == "81,988 bytes are loaded, 2.5 times the inputs"
    assert found.step.startswith("plans that load less often")


def test_slots_of_the_program_are_compared_with_the_ideal() -> None:
    result = run(accel.gemm(128, 128, 128, shift=7), accel.machine("vta"))
    found = headline(result)
    assert found is not None
    passes = (result.uops or 0) - result.gemm_uops
    assert found.ideal == (
        f"the program has {result.uops:,} slots where 8,192 would be ideal, "
        f"and {passes:,} are passes of the ALU"
    )


def test_the_next_step_is_the_best_change_that_was_tried() -> None:
    result = run(accel.gemm(128, 128, 128, shift=7), accel.machine("gemm8x8", bus_bits=64))
    found = headline(result)
    assert found is not None
    assert found.with_advice(None) is found
    change = Advice(
        field="bus_bits", now=64, then=128, cycles=5000, speedup=1.1, recompiled=False, simulated=True,
        reason="", price="+64 bits of bus",
    )  # fmt: skip
    report = AdviceReport(bound="", advice=(change,), tried=(), skipped=())
    assert found.with_advice(report).step == "`--set bus_bits=128` takes 5,000 cycles, for +64 bits of bus"
    schedule = SoftwareAdvice(command="--measure 8", cycles=5100, speedup=1.05, reason="")
    both = replace(report, software=(schedule,))
    assert found.with_advice(both).step == "`accel compile --measure 8` takes 5,100 cycles"
    assert "next:" not in found.with_advice(replace(report, advice=())).text


def test_a_short_program_waits_for_its_instructions() -> None:
    found = headline(run(accel.gemm(8, 8, 8), accel.machine("tiny")))
    assert found is not None
    assert found.bound == "fetch read latency 32%"
    assert found.step.startswith("more work in one program")


def test_runs_without_time_or_program_have_none_or_no_ideal() -> None:
    assert headline(gemm_program().run(backend="functional")) is None
    found = headline(handmade().run())
    assert found is not None
    assert found.ideal == ""
