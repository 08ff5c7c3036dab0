"""Advice is followed, and the cycles compared with the prediction."""

from functools import cache

import pytest

import accel
from accel.base.errors import AccelError
from accel.base.records import replace
from accel.compiler.ops.workload import Workload
from accel.core.config import SPECS
from accel.run import advice_candidates, machine_advice
from accel.run.machine_advice import Advice, AdviceReport, advise, reads_of
from accel.run.machine_price import price_text
from accel.run.program import Program
from tests.programs import handmade

GEMM = accel.gemm(32, 64, 64, shift=8)


@cache
def program(workload: Workload = GEMM, **fields: int | str) -> Program:
    return accel.build(workload, accel.machine("gemm8x8", **fields))


def followed(one: Advice, origin: Program, workload: Workload = GEMM) -> int:
    """Return the cycles of a run on the advised machine."""
    config = origin.config.override({one.field: one.then})
    again = accel.build(workload, config) if one.recompiled else origin.with_timing(config)
    return again.run(check=False).cycles


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"outstanding": 1, "read_latency": 200}, {"outstanding", "read_latency"}),
        ({"bus_bits": 64, "acc_bytes": "1KiB"}, {"bus_bits", "acc_bytes"}),
        ({"serial": 1}, {"serial"}),
    ],
    ids=["latency", "bandwidth", "serial"],
)
def test_the_advised_machine_takes_the_predicted_cycles(
    fields: dict[str, int | str], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = {"read_latency", "loads_in_flight", *expected}
    monkeypatch.setattr(
        advice_candidates, "_LEVERS", {name: advice_candidates._LEVERS[name] for name in tried}
    )
    origin = program(**fields)
    result = origin.run()
    found = advise(result)
    assert found.skipped == ()
    assert expected <= {one.field for one in found.advice}
    for one in found.advice:
        assert one.simulated
        assert one.recompiled == (SPECS[one.field].kind == "geometry")
        assert one.cycles == followed(one, origin)
        assert one.speedup == result.cycles / one.cycles > 1.01
    assert [one.cycles for one in found.advice] == sorted(one.cycles for one in found.advice)


def test_the_model_predicts_if_simulation_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_advice, "_MAX_RECOMPILED_INSTRUCTIONS", 0)
    monkeypatch.setattr(
        advice_candidates,
        "_LEVERS",
        {name: advice_candidates._LEVERS[name] for name in ("block_in", "block_out")},
    )
    workload = accel.gemm(256, 256, 256, shift=8)
    origin = program(workload)
    found = advise(origin.run(check=False))
    predicted = [one for one in found.advice if not one.simulated]
    assert {one.field for one in predicted} >= {"block_in", "block_out"}
    for one in predicted:
        assert "the compiler's model" in one.how
        assert one.cycles == pytest.approx(followed(one, origin, workload), rel=0.02)


def test_a_larger_scratchpad_is_explained_by_fewer_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advice_candidates, "_LEVERS", {"inp_bytes": advice_candidates._LEVERS["inp_bytes"]})
    workload = accel.gemm(128, 128, 128, shift=8)
    origin = program(workload, bus_bits=64, acc_bytes="4KiB", inp_bytes="4KiB", wgt_bytes="4KiB")
    before = reads_of(origin)
    found = {one.field: one for one in advise(origin.run(check=False)).advice}
    one = found["inp_bytes"]
    after = reads_of(accel.build(workload, origin.config.override({"inp_bytes": one.then})))
    name = one.reason.split()[0]
    assert after[name] < before[name]
    assert f"{name} is read {before[name]:g} times; inp_bytes of {one.then // 1024}KiB" in one.reason


def test_another_mapping_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice_candidates, "_LEVERS", {"batch": advice_candidates._LEVERS["batch"]})
    workload = accel.conv2d(1, 64, 14, 14, 64, 3, padding=1, shift=8)
    origin = accel.build(workload, "vta")
    (one,) = advise(origin.run(check=False)).advice
    again = accel.build(workload, origin.config.override({"batch": 2}))
    assert one.cycles == again.run(check=False).cycles
    assert one.mapping == again.mapping != origin.mapping
    assert one.how == f"compiled again with mapping {again.mapping}, simulated"


def test_time_is_limited() -> None:
    found = advise(program().run(), seconds=0)
    assert (found.advice, found.tried) == ((), ())
    assert found.skipped


def test_a_program_without_a_workload_stays_as_it_is() -> None:
    origin = program(outstanding=1, read_latency=200)
    bare = handmade(*origin.instructions[:-1], config=origin.config)
    found = advise(bare.run())
    assert all(SPECS[field].kind == "timing" for field in found.tried)
    assert "outstanding" in {one.field for one in found.advice}


def test_runs_without_advice() -> None:
    with pytest.raises(AccelError, match="advice needs a complete run"):
        advise(program().run(backend="functional"))


def test_as_plain_data() -> None:
    one = Advice(
        field="acc_bytes",
        now=1024,
        then=2048,
        cycles=100,
        speedup=1.5,
        recompiled=True,
        simulated=False,
        reason="why",
    )
    assert one.change == "acc_bytes=2KiB"
    assert (
        one.text == "why: 1.50 times as fast (100 cycles, compiled again, predicted by the compiler's model)"
    )
    found = AdviceReport(bound="b", advice=(one,), tried=("acc_bytes",), skipped=())
    assert found.to_dict()["advice"][0]["then"] == 2048


# --- prices and schedules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("bus_bits", 128, "+64 bits of bus"),
        ("batch", 2, "+256 multipliers"),
        ("acc_bytes", 256 * 1024, "+1,048,576 bits of scratchpad (57 block RAMs)"),
        ("outstanding", 40, "+8 bursts in flight"),
        ("read_latency", 8, "a faster memory"),
        ("serial", 1, ""),
    ],
)
def test_the_price_is_counted(field: str, value: int, expected: str) -> None:
    config = accel.machine("vta").config
    assert config.acc_bytes == 128 * 1024
    assert config.outstanding == 32
    assert price_text(config, config.override({field: value})) == expected


def test_another_schedule_comes_first() -> None:
    """The predicted plan of this product is not the fastest one in simulation."""
    workload = accel.gemm(20, 300, 64, shift=7)
    result = accel.build(workload, "vta").run(check=False)
    fastest = accel.build(workload, "vta", measure=8).run(check=False).cycles
    assert result.cycles > 1.01 * fastest
    found = advise(result, seconds=0)
    (one,) = found.software
    assert (one.command, one.cycles, one.speedup) == ("--measure 8", fastest, result.cycles / fastest)
    assert found.to_dict()["software"] == [one.to_dict()]
    again = accel.build(workload, "vta", measure=8).run(check=False)
    assert advise(again, seconds=0).software == ()


def test_scratchpad_bits_are_those_of_the_hardware() -> None:
    """Values of inp have nine bits where zero points are subtracted: 32 KiB more are 294,912 bits."""
    config = accel.machine("vta-int8").config
    twice = config.override({"inp_bytes": 2 * config.inp_bytes})
    assert price_text(config, twice) == "+294,912 bits of scratchpad (16 block RAMs)"


def test_a_report_shows_itself_in_one_line() -> None:
    small = accel.machine("gemm8x8", inp_bytes="4KiB", wgt_bytes="4KiB", acc_bytes="4KiB", bus_bits=64)
    found = accel.build(accel.gemm(64, 64, 64, shift=8), small).run().advise()
    assert len(found.advice) > 1
    text = repr(found)
    assert len(text) <= 250
    assert text.startswith(f"AdviceReport({found.bound}; ")
    assert f"{found.advice[0].change} {found.advice[0].speedup:.2f} times as fast" in text
    assert repr(replace(found, advice=(), software=())) == f"AdviceReport({found.bound}; nothing helps)"
