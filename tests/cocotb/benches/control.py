"""The software interface: registers, settings, start, interrupt, counters."""

from typing import Any

import cocotb

from accel.core.config import RUN_FIELDS
from accel.core.fault_causes import Cause
from accel.core.isa import Unit
from accel.core.registers import ADDRESS_BITS, ID, MAP_VERSION, REGISTERS, WORD_BYTES, Access, registers_of
from tests.cocotb.bench import Bench, refused
from tests.programs import gemm_program

STATUS = REGISTERS["status"]
START = REGISTERS["control"].bit("start")


@cocotb.test()
async def registers_hold_what_the_map_says(dut: Any) -> None:
    bench = await Bench.begin(dut)
    here = registers_of(bench.config)
    values = await bench.read(*here)
    expected = {name: register.reset for name, register in here.items()}
    expected |= {"id": ID, "version": MAP_VERSION}
    expected |= {name: getattr(bench.config, name) for name in bench.config.fields if name not in RUN_FIELDS}
    assert values == expected
    for register in REGISTERS.values():
        if register.access is Access.SETTING:
            pattern = 0xA5C3_96F0_5A3C_690F & ((1 << register.width) - 1)
            await bench.write(**{register.name: pattern})
            assert (await bench.read(register.name))[register.name] == pattern
    bench.disturb()
    address = REGISTERS["max_cycles"].offset
    await bench.write(max_cycles=0)
    await bench.write_word(address + 1, b"\x12")
    await bench.write_word(address + 6, b"\x34\x56")
    assert await bench.read("max_cycles") == {"max_cycles": 0x56340000_00001200}


@cocotb.test()
async def what_is_no_register_is_refused(dut: Any) -> None:
    bench = await Bench.begin(dut)
    here = registers_of(bench.config)
    known = {r.offset + WORD_BYTES * word for r in here.values() for word in range(r.words)}
    unknown = sorted(set(range(0, 1 << ADDRESS_BITS, WORD_BYTES)) - known)
    for address in (*unknown[:60:6], unknown[-1]):
        await refused(bench.read_word(address))
        await refused(bench.write_word(address, bytes(4)))
    for name, register in here.items():
        if not register.access.writable:
            await refused(bench.write(**{name: 1}))
    assert (await bench.read("id"))["id"] == ID


@cocotb.test()
async def a_run_by_polling_and_by_interrupt(dut: Any) -> None:
    bench = await Bench.begin(dut)
    program = gemm_program(config=bench.config)
    await bench.launch(program, program.random_inputs(1), interrupt_enable=0)
    bench.twin.run(program).raise_if_bad()
    status = STATUS.bit("running")
    for _ in range(500):
        assert status == STATUS.bit("running")
        status = (await bench.read("status"))["status"]
        if status & STATUS.bit("done"):
            break
    assert status == STATUS.bit("done")
    assert bench.axi.idle
    bench.compare()
    assert not int(dut.irq.value)
    assert (await bench.read("interrupt"))["interrupt"] == 1
    await bench.write(interrupt_enable=1)
    await bench.cycles(1)
    assert int(dut.irq.value)
    await bench.write(interrupt=0)
    assert int(dut.irq.value)
    await bench.write(interrupt=1)
    assert not int(dut.irq.value)
    await bench.run(program, program.random_inputs(2))
    assert (await bench.read("interrupt"))["interrupt"] == 0


@cocotb.test()
async def settings_stand_still_during_a_run(dut: Any) -> None:
    bench = await Bench.begin(dut)
    program = gemm_program(config=bench.config)
    bench.pause(r=(0.99, 40))
    await bench.launch(program, program.random_inputs(3))
    names = [name for name, r in REGISTERS.items() if r.access is Access.SETTING]
    before = await bench.read(*names)
    for name in names:
        await refused(bench.write(**{name: before[name] ^ 1}))
    for command in range(1, 4):
        await refused(bench.write(control=command))
    assert (await bench.read("status"))["status"] == STATUS.bit("running")
    bench.pause()
    bench.twin.run(program).raise_if_bad()
    assert (await bench.finish()).cause is Cause.NONE
    bench.compare()
    assert await bench.read(*names) == before


@cocotb.test()
async def bad_settings_do_not_start(dut: Any) -> None:
    bench = await Bench.begin(dut)
    program = gemm_program(config=bench.config)
    base, size = bench.config.mem_base, bench.config.mem_size
    good = {
        "program_address": base + program.code_offset,
        "program_length": len(program.instructions),
        "mem_base": base,
        "mem_size": size,
    }
    for bad in (
        {"program_address": good["program_address"] + 8},
        {"program_address": base - 16},
        {"program_address": base + size - 16},
        {"mem_base": base + 2048},
        {"mem_size": (1 << 40) - base + 1},
        {"program_length": size // 16},
    ):
        await bench.write(**(good | bad))
        await refused(bench.write(control=START))
        assert await bench.read("status") == {"status": 0}
    await bench.run(program, program.random_inputs(4))


@cocotb.test()
async def counters_count(dut: Any) -> None:
    bench = await Bench.begin(dut)
    program = gemm_program(13, 17, 12, config=bench.config)
    names = [name for name, r in REGISTERS.items() if r.access is Access.COUNTER]
    bench.pause(r=(0.3, 3), w=(0.3, 3))
    await bench.launch(program, program.random_inputs(5))
    bench.twin.run(program).raise_if_bad()
    earlier = await bench.read(*names)
    assert earlier["cycles"] > 0
    outcome = await bench.finish()
    bench.compare()
    values = await bench.read(*names)
    assert values == await bench.read(*names)
    assert values["cycles"] == outcome.cycles
    assert all(earlier[name] <= values[name] for name in names)
    assert values["fetch_busy"] == len(program.instructions)
    assert values["compute_busy"] >= sum(getattr(i, "uop_count", 0) for i in program.instructions)
    for unit in Unit:
        kinds = [values[f"{unit.label}_{kind}"] for kind in ("busy", "memory_stall", "token_stall")]
        assert 0 < sum(kinds) <= values["cycles"]
