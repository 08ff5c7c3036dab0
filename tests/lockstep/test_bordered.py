"""The core with register slices equals the core with a memory that is slower by the
slices' latency."""

import pytest

import accel
from accel.core.config import NAMED, Config
from accel.core.registers import REGISTERS
from accel.hw.engines import pysim
from accel.hw.engines.pysim import PysimEngine
from accel.hw.export.chip_border import SLICE_CYCLES, Bordered
from accel.hw.sim_top import SimTop
from accel.run.backends.rtl_backend import run_on_hardware
from accel.run.lockstep import compare, scope_of
from accel.sim.functional.scratchpads import Scratchpads

SMALL = {"uop_bytes": 64, "inp_bytes": 64, "wgt_bytes": 512, "acc_bytes": 512}
LATENCIES = {"read_latency": 3, "write_latency": 2}


def sliced(config: Config, *, named: bool = False) -> Bordered:
    return Bordered(SimTop(config, named=named), slices=True)


def test_slices_count_as_latency_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    config = NAMED["tiny-int8"].override(SMALL | LATENCIES)
    monkeypatch.setattr(pysim, "SimTop", sliced)
    program = accel.build(accel.gemm(3, 9, 6, bias=True), config)
    slower = {name: value + SLICE_CYCLES for name, value in LATENCIES.items()}
    twin = program.with_timing(config.override(slower))
    dram, expected, pads = program.dram(), program.dram(), Scratchpads.random(config, 1)
    timing = twin.simulate(expected, pads.copy()).timing
    assert timing is not None
    with PysimEngine(config) as engine:
        run = run_on_hardware(program, dram, pads, engine, max_cycles=1 << 20, record=True)
        assert engine.registers("status")["status"] == REGISTERS["status"].bit("done")
    assert timing.cycles > program.simulate(program.dram(), pads.copy()).timing.cycles  # type: ignore[union-attr]
    assert compare(twin, scope_of(twin), timing, run, expected, dram) is None
