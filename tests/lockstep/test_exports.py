"""Cycles do not depend on the Verilog style from which a model is built."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.hw.engines import model_cache, verilator
from accel.hw.engines.model_header import TOP, model_header
from accel.hw.engines.native_engine import NativeEngine
from accel.hw.engines.open_engine import level
from accel.hw.export import verilog
from accel.hw.export.yosys import rtlil_text
from accel.hw.sim_top import SimTop
from accel.run.lockstep import lockstep
from accel.run.replay import load_test
from tests.lockstep.builds import BUILDS
from tests.programs import gemm_program
from tests.thorough import also
from tests.tools import needs

PROGRAMS = Path(__file__).parents[1] / "programs"
MACHINE = BUILDS["tiny"]
"""One of its queues has one entry, so that its index has no bits."""
OTHERWISE = ("flatten", "memory_collect")
"""Replaces :data:`~accel.hw.export.verilog.LOWERED`: keep one module and its processes."""


@pytest.fixture(scope="module")
def other_export() -> Iterator[NativeEngine]:
    needs("verilator")
    flags = [f"-O{level(1)}", *verilator.includes()]

    def generate(config: Config, folder: Path) -> Sequence[model_cache.Source | Path]:
        header = model_header(
            config, head=verilator._HEAD, body=verilator._BODY, access=lambda name: f"top.{name}"
        )
        (folder / "model.h").write_text(header)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verilog, "LOWERED", OTHERWISE)
            text = verilog.verilog_text(SimTop(config), TOP)
            patch.setattr(verilog, "verilog_text", lambda *_, **__: text)
            found = verilator.sources(None, TOP, model_cache.NATIVE / "harness.cpp", folder, flags)
        assert text.count("endmodule") == 1
        assert "always_comb" in text
        return found

    name = f"verilator-{'-'.join(OTHERWISE)}"
    engine = NativeEngine(model_cache.model(name, MACHINE, flags, verilator.PACKAGES, generate), MACHINE)
    yield engine
    engine.close()


@pytest.mark.thorough
@pytest.mark.xdist_group("another export")
@pytest.mark.parametrize("name", ["gemm_loops", "load_pads_inp", "tokens_on_every_kind", "fault_dst_index"])
def test_programs_take_the_same_cycles(other_export: NativeEngine, name: str) -> None:
    program = load_test(PROGRAMS / f"{name}.s").with_timing(MACHINE)
    other_export.reset()
    assert lockstep(program, other_export).difference is None


@pytest.mark.thorough
@pytest.mark.xdist_group("another export")
def test_a_layer_takes_the_same_cycles(other_export: NativeEngine) -> None:
    other_export.reset()
    found = lockstep(gemm_program(), other_export)
    assert (found.cause, found.difference) == (Cause.NONE, None)


@pytest.mark.parametrize("name", ["one at a time", also("1x1x1"), also("int8, 1x32x4")])
def test_no_switch_has_an_empty_condition(name: str) -> None:
    """Yosys' Verilog omits such switches when processes are kept."""
    text = rtlil_text(SimTop(BUILDS[name]), TOP)
    assert re.search(r"switch \S", text)
    assert not re.search(r"switch \{\s*\}", text)
