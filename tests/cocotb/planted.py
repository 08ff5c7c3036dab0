"""Violations planted into the signals around a running core. A monitor must report each
of them first."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from tests.cocotb.bench import Bench, configuration, known
from tests.cocotb.flipped import outputs
from tests.cocotb.programs import Maker
from tests.cocotb.protocol import Rule, Violation

CYCLES = 1500
"""Cycles after which a violation counts as missed."""


async def begin(dut: Any) -> Bench:
    """Return a bench that continues after a violation."""
    for name in outputs(configuration()):
        getattr(dut, f"flip_{name}").value = 0
    bench = await Bench.begin(dut, strict=False)
    bench.pause(ar=(0.5, 3), w=(0.5, 3), aw=(0.5, 3))
    return bench


async def launch(bench: Bench) -> None:
    """Start a program that uses all channels."""
    await bench.launch(Maker(bench.config).lanes(np.random.default_rng(1)))


async def flip(bench: Bench, name: str, mask: int) -> None:
    """Flip bits of an output for one cycle."""
    handle = getattr(bench.dut, f"flip_{name}")
    handle.value = mask
    await bench.cycles(1)
    handle.value = 0


async def assert_seen(bench: Bench, channel: str, rule: Rule) -> None:
    """Check that it is the first reported violation, within :data:`CYCLES`."""
    seen: list[Violation] = []
    for _ in range(CYCLES):
        seen = bench.axi.violations + bench.lite.violations
        if seen:
            break
        await bench.cycles(1)
    assert seen, "nothing was seen"
    assert (seen[0].channel, seen[0].rule) == (channel, rule), str(seen[0])


@cocotb.test()
@cocotb.parametrize(
    (
        ("channel", "signal", "flipped", "rule"),
        [
            ("w", "data", 1, Rule.STABLE),
            ("w", "last", 1, Rule.STABLE),
            ("w", "valid", 1, Rule.HELD),
            ("aw", "addr", 0x40, Rule.STABLE),
            ("ar", "len", 1, Rule.STABLE),
            ("ar", "valid", 1, Rule.HELD),
        ],
    )
)
async def while_a_channel_waits(dut: Any, channel: str, signal: str, flipped: int, rule: Rule) -> None:
    bench = await begin(dut)
    await launch(bench)
    prefix = f"m_axi_{channel}"
    valid, ready = getattr(dut, f"{prefix}valid"), getattr(dut, f"{prefix}ready")
    while not known(valid) or known(ready):
        await RisingEdge(dut.clk)
    bench.check()
    await flip(bench, f"{prefix}{signal}", flipped)
    await assert_seen(bench, channel, rule)


@cocotb.test()
@cocotb.parametrize(
    (
        ("channel", "signal", "flipped", "rule"),
        [
            ("ar", "cache", 1, Rule.ATTRIBUTES),
            ("aw", "prot", 2, Rule.ATTRIBUTES),
            ("aw", "burst", 1, Rule.TYPE),
            ("ar", "size", 1, Rule.SIZE),
            ("aw", "addr", 0x40_0000, Rule.WINDOW),
        ],
    )
)
async def in_every_burst(dut: Any, channel: str, signal: str, flipped: int, rule: Rule) -> None:
    bench = await begin(dut)
    getattr(dut, f"flip_m_axi_{channel}{signal}").value = flipped
    await launch(bench)
    await assert_seen(bench, "w" if rule is Rule.WINDOW else channel, rule)


@cocotb.test()
async def an_address_in_reset(dut: Any) -> None:
    bench = await begin(dut)
    dut.rst.value = 1
    await bench.cycles(2)
    await flip(bench, "m_axi_arvalid", 1)
    await assert_seen(bench, "ar", Rule.RESET)


@cocotb.test()
async def an_address_without_a_run(dut: Any) -> None:
    bench = await begin(dut)
    await flip(bench, "m_axi_awvalid", 1)
    await assert_seen(bench, "aw", Rule.QUIET)


@cocotb.test()
async def an_interrupt_before_the_last_answer(dut: Any) -> None:
    bench = await begin(dut)
    bench.pause(b=(1.0, 1))
    await launch(bench)
    while not bench.axi.answers_due:
        await bench.cycles(1)
    await flip(bench, "irq", 1)
    await assert_seen(bench, "b", Rule.COMPLETE)


@cocotb.test()
async def a_last_beat_that_memory_does_not_mark(dut: Any) -> None:
    bench = await begin(dut)
    channel = bench.memory_channels["r"]
    send = channel.send

    async def unmarked(transaction: Any) -> None:
        transaction.rlast = 0
        await send(transaction)

    channel.send = unmarked
    await launch(bench)
    await assert_seen(bench, "r", Rule.READ_LAST)


@cocotb.test()
async def an_answer_to_nothing(dut: Any) -> None:
    bench = await begin(dut)
    channel = bench.memory_channels["b"]
    channel.send_nowait(channel._transaction_obj(bid=0, bresp=0))
    await assert_seen(bench, "b", Rule.ANSWER_UNASKED)


@cocotb.test()
async def a_register_that_changes_while_it_waits(dut: Any) -> None:
    bench = await begin(dut)
    bench.software_channels["r"].pause = True
    cocotb.start_soon(bench.software.read(0, 4))
    while not known(dut.s_axi_rvalid):
        await RisingEdge(dut.clk)
    await bench.cycles(2)
    await flip(bench, "s_axi_rdata", 1)
    await assert_seen(bench, "r", Rule.STABLE)
