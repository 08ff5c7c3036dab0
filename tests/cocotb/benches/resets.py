"""Resets in the middle of a program."""

from typing import Any

import cocotb

from accel.core.registers import REGISTERS, Access
from tests.cocotb.bench import Bench
from tests.programs import gemm_program


@cocotb.test()
async def reset_at_any_time(dut: Any) -> None:
    """The bus is silent immediately, registers have their initial values, and the next run
    is correct."""
    bench = await Bench.begin(dut)
    compiled = gemm_program(13, 17, 12, config=bench.config)
    names = [name for name, r in REGISTERS.items() if r.access is not Access.CONSTANT]
    fresh = {name: REGISTERS[name].reset for name in names}
    length = 0
    for n in range(12 if bench.thorough else 6):
        calm = n % 2 == 0
        inputs = compiled.random_inputs(n)
        bench.pause()
        if not calm:
            bench.disturb()
        if n % 4 == 0:
            length = (await bench.run(compiled, inputs)).cycles
        before = bench.twin.window()
        await bench.launch(compiled, compiled.random_inputs(100 + n))
        placed = bench.twin.window()
        bench.twin.run(compiled).raise_if_bad()
        after = bench.twin.window()
        assert not (before == after).all()
        await bench.cycles(bench.rng.randrange(length))
        await bench.reset(bench.rng.choice((1, 2, 5)))
        assert await bench.read(*names) == fresh
        assert not int(dut.irq.value)
        found = bench.memory()
        assert ((found == placed) | (found == after)).all()
        bench.adopt()
    await bench.run(compiled, compiled.random_inputs(1000))
