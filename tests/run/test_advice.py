"""Advice is followed, and what comes of it compared with what was predicted."""

from functools import cache

import pytest

import accel
from accel.base.errors import AccelError
from accel.compiler.ops.workload import Workload
from accel.core.config import SPECS
from accel.run import advice, levers
from accel.run.advice import Advice, Advised, advise, reads_of
from accel.run.program import Program
from tests.programs import handmade

GEMM = accel.gemm(32, 64, 64, shift=8)


@cache
def program(workload: Workload = GEMM, **fields: int | str) -> Program:
    return accel.build(workload, accel.machine("gemm8x8", **fields))


def followed(one: Advice, origin: Program, workload: Workload = GEMM) -> int:
    """The cycles that a run takes when the advice is followed."""
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
def test_what_is_advised_comes_true(
    fields: dict[str, int | str], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = {"read_latency", "loads_in_flight", *expected}
    monkeypatch.setattr(levers, "_LEVERS", {name: levers._LEVERS[name] for name in tried})
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


def test_the_model_predicts_where_simulating_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "_LARGE", 0)
    monkeypatch.setattr(levers, "_LEVERS", {name: levers._LEVERS[name] for name in ("block_in", "block_out")})
    workload = accel.gemm(256, 256, 256, shift=8)
    origin = program(workload)
    found = advise(origin.run(check=False))
    predicted = [one for one in found.advice if not one.simulated]
    assert {one.field for one in predicted} >= {"block_in", "block_out"}
    for one in predicted:
        assert "the compiler's model" in one.how
        assert one.cycles == pytest.approx(followed(one, origin, workload), rel=0.02)


def test_a_larger_scratchpad_is_explained_by_what_is_read_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(levers, "_LEVERS", {"inp_bytes": levers._LEVERS["inp_bytes"]})
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
    monkeypatch.setattr(levers, "_LEVERS", {"batch": levers._LEVERS["batch"]})
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


def test_what_cannot_be_advised() -> None:
    with pytest.raises(AccelError, match="advice needs a run"):
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
    found = Advised(bound="b", advice=(one,), tried=("acc_bytes",), skipped=())
    assert found.to_dict()["advice"][0]["then"] == 2048
