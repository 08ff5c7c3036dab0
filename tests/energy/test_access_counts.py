"""Counts of accesses: by hand, and against the hardware."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.records import replace
from accel.core.access_names import access_names
from accel.core.config import NAMED, Config
from accel.core.isa import Alu, AluOp, Finish, Gemm, Instruction, Load, Mac, Memory, SetAcc, Store, Unit
from accel.core.isa import Load as LoadInstruction
from accel.core.memory_banks import MIRROR, memory_banks
from accel.core.scratchpad_specs import ACC, INP, RES, scratchpads_of
from accel.energy import count_accesses
from accel.energy.access_counts import READ_BYTES, WRITTEN_BYTES, count_fetch, count_names, count_parts
from accel.hw.datapath.scratchpads import scratchpad_shape
from accel.hw.datapath.transfer_memories import kinds_of
from accel.run.lockstep import lockstep
from accel.run.lockstep_difference import compare_accesses
from accel.run.program import Program
from tests.lockstep.builds import BUILDS, built, group
from tests.thorough import grouped

TINY, INT8 = NAMED["tiny"], NAMED["tiny-int8"]


def counts(*instructions: Instruction, config: Config = TINY) -> dict[str, int]:
    """The counts of a program that are not zero."""
    found = count_accesses([*instructions, Finish()], config)
    return {name: found[name] for name in count_names(config) if found[name]}


# --- by hand ---------------------------------------------------------------------------------------


def test_products() -> None:
    """On ``tiny`` an element of acc has 32 bytes, so 4 write enables on a bus of 8 bytes."""
    written = {"uop_reads": 6, "acc_writes": 6, "acc_lane_writes": 24}
    loops: dict[str, Any] = {"uop_end": 3, "iter_out": 2}
    products = {"gemm": 6, "inp_reads": 6, "wgt_reads": 6, "acc_dst_reads": 6}
    assert counts(Gemm(**loops)) == written | products
    assert counts(Gemm(**loops, reset=True)) == written
    assert counts(Gemm(**loops | {"iter_in": 0})) == {}


def test_alu() -> None:
    written = {"uop_reads": 2, "acc_writes": 2, "acc_lane_writes": 8, "acc_dst_reads": 2}
    assert counts(Alu(uop_end=2, alu_op=AluOp.ADD)) == written | {"alu": 2, "acc_src_reads": 2}
    assert counts(Alu(uop_end=2, alu_op=AluOp.MUL, use_imm=True)) == written | {"alu_mul": 2}


def test_depthwise_products_count_the_taps_that_are_set() -> None:
    mac = Mac(uop_end=4, depthwise=True, overwrite=True)
    found = counts(SetAcc(taps=3, step=1), mac, SetAcc(taps=2, step=1), mac, config=INT8)
    assert (found["depthwise"], found["depthwise_taps"]) == (8, 4 * 3 + 4 * 2)
    assert "acc_dst_reads" not in found
    total = count_accesses([SetAcc(taps=3, step=1), mac, Finish()], INT8)
    assert total.macs == 4 * 3 * INT8.batch * INT8.block_out


def test_loads_write_data_and_pads() -> None:
    """Two rows of 3 elements of 4 bytes take 2 beats each, because 3 of them are 12 bytes."""
    load = Load(memory=Memory.INP, y_size=2, x_size=3, x_stride=4, x_pad_0=1)
    assert counts(load) == {
        "read_bursts": 2,
        READ_BYTES: 32,
        "inp_writes": 8,
        "inp_lane_writes": 8,
    }
    shifted = replace(load, dram_base=1)  # begins in the middle of a beat
    assert counts(shifted)[READ_BYTES] == 32
    assert counts(replace(load, x_size=0)) == {}


def test_a_load_of_bytes_writes_parts_of_accumulators() -> None:
    """LOAD.ACC_8BIT of an element of 32 bytes reads one beat, and LOAD.ACC four."""
    common: dict[str, Any] = {"y_size": 1, "x_size": 1, "x_stride": 1}
    narrow = counts(Load(memory=Memory.ACC_8BIT, **common))
    wide = counts(Load(memory=Memory.ACC, **common))
    assert (narrow["acc_writes"], narrow["acc_lane_writes"], narrow[READ_BYTES]) == (1, 4, 8)
    assert (wide["acc_writes"], wide["acc_lane_writes"], wide[READ_BYTES]) == (4, 4, 32)


def test_stores_read_the_mirror_by_beat() -> None:
    assert counts(Store(y_size=2, x_size=3, x_stride=4)) == {
        "write_bursts": 2,
        WRITTEN_BYTES: 48,
        "out_reads": 6,
    }


def test_fetch_reads_whole_beats() -> None:
    wide = TINY.override({"bus_bits": 512, "fetch_chunk": 16})
    found = count_fetch(5, wide, 16)
    assert (found["read_bursts"], found[READ_BYTES]) == (1, 128)
    assert count_fetch(5, TINY, 16)[READ_BYTES] == 80


def test_parts_add_up() -> None:
    program = accel.build(accel.gemm(8, 24, 16, shift=3), "tiny")
    instructions = program.instructions
    parts = count_parts(instructions, program.config, [5, 9, len(instructions)])
    whole = count_accesses(instructions, program.config)
    summed = parts[0] + parts[1] + parts[2]
    assert summed.to_dict() == whole.to_dict()
    assert (whole * 3)["gemm"] == 3 * whole["gemm"] > 0
    assert whole.macs == 8 * 24 * 16


# --- the memories of the hardware ------------------------------------------------------------------


def machines() -> Iterator[Config]:
    yield from NAMED.values()
    yield from BUILDS.values()


@pytest.mark.parametrize("config", list(machines()), ids=str)
def test_banks_are_those_of_the_hardware(config: Config) -> None:
    found = memory_banks(config)
    for name, pad in scratchpads_of(config).items():
        kinds = kinds_of(LoadInstruction, pad.filled_by, config)
        own = [kind for kind in kinds if kind.route.scratchpad is pad]
        taps = config.tap_banks if pad is INP else 1
        shape = scratchpad_shape(pad, own, config, circular=pad is RES, taps=taps)
        one = found[name]
        assert (one.word_bits, one.bank_depth, one.banks, one.lane_bits) == (
            shape.element_bits,
            shape.bank_depth,
            shape.banks,
            shape.grain_bits,
        ), name
    mirror, acc = found[MIRROR], found[ACC.name]
    stored = max(kind.element_bytes for kind in kinds_of(Store, Unit.STORE, config))
    assert (mirror.word_bits, mirror.banks, mirror.bank_depth) == (stored * 8, acc.banks, acc.bank_depth)
    assert mirror.lanes == acc.lanes


# --- against the hardware --------------------------------------------------------------------------

RESIDUAL = accel.QuantizedResidual(
    result_scale=0.0513477, scale=0.0312297, zero=3, dtype="uint8", sum_scale=0.0613371, sum_zero=-9
)
WORKLOADS: dict[str, Any] = {
    "gemm": accel.gemm(5, 20, 30, bias=True, shift=6),
    "conv": accel.conv2d(1, 5, 6, 7, 9, 3, padding=1, bias=True, shift=7, clip=(0, 127)),
    "max pool": accel.max_pool2d(1, 5, 6, 6, 2),
}
QUANTIZED: dict[str, Any] = {
    "depthwise": accel.conv2d(
        1, 8, 6, 5, 8, 3, padding=1, groups=8, bias=True, quantized=accel.Quantized(scale=0.01, input_zero=4)
    ),
    "residual": accel.conv2d(
        1, 8, 5, 5, 12, 1, bias=True, quantized=accel.Quantized(scale=0.01, output_zero=-5, residual=RESIDUAL)
    ),
}
SMALL, LARGE = ("tiny", "tiny-int8", "tiny-npu"), ("vta", "vta-int8", "vta-npu")
CASES = [
    grouped(group(NAMED[machine]), machine, workload, thorough=machine in ("vta-int8", "vta-npu"))
    for machine in (*SMALL, *LARGE)
    for workload in (*WORKLOADS, *(QUANTIZED if NAMED[machine].post else ()))
]
"""Models of large machines with ``post=1`` take long to build, so only ``--thorough`` builds them."""


def compiled(machine: str, workload: str) -> Program:
    return accel.build({**WORKLOADS, **QUANTIZED}[workload], machine)


@pytest.mark.parametrize(("machine", "workload"), CASES)
def test_the_hardware_counts_the_same(machine: str, workload: str) -> None:
    """Lockstep compares all counts of runs that end well."""
    program = compiled(machine, workload)
    engine = built(program.config)
    found = lockstep(program, engine, seed=1)
    assert found.difference is None, found.difference
    told = engine.accesses()
    assert tuple(told) == access_names(program.config)
    address = program.config.mem_base + program.code_offset
    counted = count_accesses(program.instructions, program.config, address=address)
    assert {name: counted[name] for name in told} == told
    assert told["uop_reads"] > 0
    assert program.run().energy().counts.to_dict() == counted.to_dict()


@pytest.mark.xdist_group(group(TINY))
def test_a_count_that_differs_is_found() -> None:
    program = compiled("tiny", "gemm")
    engine = built(program.config)
    assert lockstep(program, engine).difference is None
    run = program.run(backend="rtl", record=True, hardware=engine)
    hardware = run.timing
    assert compare_accesses(program, hardware) is None
    told = dict(engine.accesses())
    told["wgt_reads"] += 1
    found = compare_accesses(program, replace(hardware, accesses=told))
    assert found is not None
    assert (found.what, found.message) == ("accesses", "the counts of wgt reads differ")


@pytest.mark.xdist_group(group(TINY))
def test_counts_begin_anew_with_each_run() -> None:
    program = compiled("tiny", "gemm")
    engine = built(program.config)
    first, second = (lockstep(program, engine) and engine.accesses() for _ in range(2))
    assert first == second


@pytest.mark.xdist_group(group(TINY))
def test_bytes_are_those_of_the_bus_registers() -> None:
    program = compiled("tiny", "conv")
    run = program.run(backend="rtl", hardware=built(program.config)).timing
    found = count_accesses(
        program.instructions, program.config, address=program.config.mem_base + program.code_offset
    )
    assert found[READ_BYTES] == run.counters["read_bytes"]
    assert found[WRITTEN_BYTES] == run.counters["written_bytes"]
    assert np.gcd(found[READ_BYTES], program.config.bus_bytes) == program.config.bus_bytes
