"""Stopped runs, and memory that does not answer: no run hangs, and the next one is correct."""

from typing import Any

import cocotb

from accel.core.fault_causes import Cause
from accel.core.registers import REGISTERS
from tests.cocotb.bench import Bench, Outcome, refused
from tests.cocotb.benches.faults import subject
from tests.cocotb.protocol import Rule

STOP, CLEAR, START = (REGISTERS["control"].bit(name) for name in ("stop", "clear", "start"))
ANSWERS = ("r", "b")
QUESTIONS = ("ar", "aw", "w")
TIMEOUT = 300
"""Bus timeout in cycles. Memory that answers never pauses this long."""


async def status(bench: Bench) -> set[str]:
    """Names of the status bits that are set."""
    word = (await bench.read("status"))["status"]
    return {bit.name for bit in REGISTERS["status"].bits if word >> bit.position & 1}


async def begin(bench: Bench, **settings: int) -> Any:
    """Start a program and let it run for a random time; return memory before and after a whole run."""
    target = subject(bench)
    bench.place(target)
    before = bench.twin.window()
    await bench.launch(target, **{"bus_timeout": 0, **settings})
    bench.twin.run(target)
    after = bench.twin.window()
    await bench.cycles(bench.rng.randrange(250))
    return before, after


def check_memory(bench: Bench, before: Any, after: Any) -> None:
    """Check that each byte has its value from before the run, or the value that a whole run leaves."""
    found = bench.memory()
    assert ((found == before) | (found == after)).all()


async def go_on(bench: Bench) -> None:
    bench.adopt()
    bench.twin.tokens = (0, 0, 0, 0)
    target = subject(bench)
    await bench.launch(target, bus_timeout=0)
    bench.twin.run(target).raise_if_bad()
    assert (await bench.finish()).cause is Cause.NONE
    bench.compare()


def hang(bench: Bench, *channels: str) -> None:
    """Stop memory's side of these channels."""
    bench.pause(**dict.fromkeys(channels, (1.0, 1)))


@cocotb.test()
async def a_run_is_stopped(dut: Any) -> None:
    bench = await Bench.begin(dut)
    causes = set()
    for _ in range(30 if bench.thorough else 3):
        bench.disturb()
        before, after = await begin(bench)
        await bench.write(control=STOP)
        outcome = await bench.finish()
        assert outcome.cause in (Cause.STOPPED, Cause.NONE)
        causes.add(outcome.cause)
        check_memory(bench, before, after)
        assert await status(bench) == ({"done", "error"} if outcome.cause else {"done"})
        await bench.write(control=STOP)  # stops nothing, as no run is active
        assert "done" in await status(bench)
        await bench.clear()
        await go_on(bench)
    assert Cause.STOPPED in causes


@cocotb.test()
async def memory_that_hangs_is_given_up(dut: Any) -> None:
    """Missing answers arrive later, before or during the next run. Offers stay valid until
    memory accepts them."""
    bench = await Bench.begin(dut)
    bench.tolerated = frozenset({Rule.COMPLETE, Rule.QUIET})
    seen: set[str] = set()
    for _ in range(40 if bench.thorough else 4):
        bench.disturb()
        before, after = await begin(bench)
        hang(bench, *bench.rng.choice(((ANSWERS), QUESTIONS, (*ANSWERS, *QUESTIONS))))
        await bench.cycles(100)
        await bench.write(control=STOP)
        await bench.cycles(100)
        bits = await status(bench)
        seen |= bits
        if "draining" in bits:
            assert bits - {"offering"} == {"running", "draining"}
            assert (await bench.read("cause"))["cause"] == Cause.STOPPED
            await refused(bench.write(control=START))
            if "offering" in bits:
                await refused(bench.write(control=CLEAR))
                bench.pause()
                outcome = await bench.finish()
                assert (outcome.cause, outcome.bit("unanswered")) == (Cause.STOPPED, False)
                await bench.write(control=CLEAR)
            else:
                await bench.write(control=CLEAR)
                assert await status(bench) == {"unanswered"}
                if bench.rng.random() < 0.5:
                    bench.pause()
                    await bench.cycles(300)
                    assert await status(bench) == set()
        else:
            await bench.finish()
            await bench.write(control=CLEAR)
        check_memory(bench, before, after)
        bench.axi.quiet = False
        cocotb.start_soon(answer_soon(bench))
        await go_on(bench)
        seen |= await status(bench)
    offers = set() if bench.sliced else {"offering"}  # register slices accept offers that memory does not
    assert seen >= {"draining", "done"} | offers


async def answer_soon(bench: Bench) -> None:
    """Let memory answer again after 150 cycles."""
    await bench.cycles(150)
    bench.pause()


@cocotb.test()
async def a_time_out(dut: Any) -> None:
    bench = await Bench.begin(dut)
    bench.tolerated = frozenset({Rule.COMPLETE, Rule.QUIET})
    seen: set[Cause] = set()
    for _ in range(40 if bench.thorough else 4):
        before, after = await begin(bench, bus_timeout=TIMEOUT)
        hang(bench, *bench.rng.choice((ANSWERS, QUESTIONS, ("r",), ("b",), ("w",))))
        outcome: Outcome = await bench.finish()
        assert outcome.cause in (Cause.TIMEOUT, Cause.NONE)
        seen.add(outcome.cause)
        bits = await status(bench)
        if outcome.cause:
            assert bits - {"offering", "unanswered"} == {"done", "error"}
            assert "unanswered" in bits
            if "offering" in bits:
                for command in (START, CLEAR):
                    await refused(bench.write(control=command))
        bench.pause()
        await bench.cycles(300)
        assert await status(bench) == ({"done", "error"} if outcome.cause else {"done"})
        check_memory(bench, before, after)
        await bench.write(control=CLEAR)
        await go_on(bench)
    assert Cause.TIMEOUT in seen
    await begin(bench, bus_timeout=TIMEOUT)
    assert (await bench.finish()).cause is Cause.NONE  # slow memory is no timeout
    bench.compare()
