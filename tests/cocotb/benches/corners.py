"""Programs for corner cases where such designs often fail, with and without random back-
pressure."""

from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np

from accel.run.program import Program
from tests.cocotb.bench import Bench
from tests.cocotb.programs import Maker


async def repeated(dut: Any, make: Callable[[Maker, np.random.Generator], Program]) -> Bench:
    """After a program that defines the scratchpads, run a program repeatedly with random contents: once with
    fast memory, and otherwise with random latencies and back-pressure."""
    bench = await Bench.begin(dut)
    maker = Maker(bench.config)
    await bench.run(maker.define(np.random.default_rng(99)))
    for n in range(0 if bench.thorough else 1, 3 if bench.thorough else 2):
        traffic = bench.disturb() if n else ""
        cocotb.log.info("%d: %s", n, traffic)
        await bench.run(make(maker, np.random.default_rng(n)), serial=int(n == 1))
    return bench


@cocotb.test()
async def long_transfers(dut: Any) -> None:
    bench = await repeated(dut, Maker.fill)
    assert bench.axi.longest == min(bench.config.max_burst_beats, 4096 // bench.config.bus_bytes)


@cocotb.test()
async def odd_micro_ops(dut: Any) -> None:
    await repeated(dut, Maker.micro_ops)


@cocotb.test()
async def page_crossings(dut: Any) -> None:
    await repeated(dut, Maker.pages)


@cocotb.test()
async def zero_lengths(dut: Any) -> None:
    await repeated(dut, Maker.nothing)


@cocotb.test()
async def every_lane(dut: Any) -> None:
    await repeated(dut, Maker.lanes)


@cocotb.test()
async def the_end_of_the_window(dut: Any) -> None:
    await repeated(dut, Maker.at_the_end)


@cocotb.test()
async def anything(dut: Any) -> None:
    """Run random programs, each on the state that the previous ones left."""
    bench = await Bench.begin(dut)
    maker = Maker(bench.config)
    await bench.run(maker.fill(np.random.default_rng(0)))
    for n in range(8 if bench.thorough else 2):
        traffic = bench.disturb()
        program = maker.anything(bench.rng, bench.twin.pads, bench.twin.dram)
        cocotb.log.info("%d: %s\n%s", n, traffic, "\n".join(map(str, program.instructions)))
        await bench.run(program, serial=int(n == 3))
