"""Programs of other compilers, and the memory that they must leave. See ``--vectors``."""

from pathlib import Path

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.config import INSTRUCTION_BYTES, Config, load_config
from accel.core.isa import Instruction, decode
from accel.image.dram import Dram
from accel.proof.token_check import check_tokens
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.timing_model import simulate_timing
from tests.sim.timing.cycle_stepped_machine import assert_same, step_by_step

STEPPED = 4000
"""Runs up to this many cycles are also stepped cycle by cycle."""

Vector = tuple[Config, list[Instruction], Dram]


def read(folder: Path) -> Vector:
    """Return configuration, program and DRAM before the run."""
    config = load_config(folder / "config.json")
    dram = Dram.of(config)
    with np.load(folder / "dram_before.npz") as before:
        for address, page in zip(before["addr"].tolist(), before["data"], strict=True):
            dram.write(address, page)
    return config, decode((folder / "insn.bin").read_bytes(), config), dram


def assert_expected(folder: Path, dram: Dram) -> None:
    with np.load(folder / "expect.npz") as expect:
        data = expect["data"]
        for address, length in zip(expect["addr"].tolist(), expect["length"].tolist(), strict=True):
            np.testing.assert_array_equal(dram.read(address, length), data[:length], err_msg=f"{address:#x}")
            data = data[length:]
    assert not len(data)


@pytest.mark.parametrize(("order", "seed"), [("program", 0), ("random", 1), ("random", 2)])
def test_memory_is_as_expected_from_any_scratchpad_contents(vector: Path, order: str, seed: int) -> None:
    config, program, dram = read(vector)
    executor = Executor(config, dram, Scratchpads.random(config, seed))
    run_functional(program, executor, order=order, seed=seed).raise_if_bad()  # type: ignore[arg-type]
    assert_expected(vector, dram)


def test_machines_with_post_1_leave_the_same_memory(vector: Path) -> None:
    """Memory and scratchpads with ``post=1``, and cycles if the store path has no additional stages."""
    config, program, dram = read(vector)
    second = replace(config, post=1, post_stages=0)
    assert decode((vector / "insn.bin").read_bytes(), second) == program
    ends = []
    for machine, start in ((config, dram.copy()), (second, dram.copy())):
        pads = Scratchpads.zeros(machine)
        run_functional(program, Executor(machine, start, pads)).raise_if_bad()
        ends.append((pads, simulate_timing(program, machine, address=0).cycles))
        assert_expected(vector, start)
    (first, cycles), (other, others) = ends
    assert cycles == others
    for name in ("uop", "inp", "wgt", "acc"):
        np.testing.assert_array_equal(getattr(first, name), getattr(other, name), err_msg=name)


def test_tokens_are_proven(vector: Path) -> None:
    config, program, dram = read(vector)
    check_tokens(program, config, memory=dram).raise_if_bad()


def test_timing_runs_to_the_end(vector: Path) -> None:
    config, program, _ = read(vector)
    run = simulate_timing(program, config, address=0)
    assert run.stop is None
    assert all(one.retire is not None for one in run.instruction_runs)
    assert run.cycles > len(program) * INSTRUCTION_BYTES // config.bus_bytes
    if run.cycles < STEPPED:
        assert_same(run, step_by_step(program, config))
