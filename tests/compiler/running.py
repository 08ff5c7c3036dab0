"""Emitted instructions on the functional machine, and the micro-ops that they run one by one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import accel
from accel.compiler.codegen.emit import Emission
from accel.compiler.codegen.uops import place_uops
from accel.compiler.mappings.mapping import tensors_of
from accel.compiler.target.registry import Emitted
from accel.core.config import UOP_BYTES, Config
from accel.core.isa import Alu, Gemm, Instruction, Load, Loops, Mac, Memory
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads

UOP_OFFSET = 1 << 20
"""Bytes from the start of DRAM at which micro-ops are put."""

Indices = tuple[int, int, int]
"""dst, src and wgt of a micro-op."""


def run(emitted: Sequence[Emitted], config: Config, pads: Scratchpads, dram: Dram | None = None) -> None:
    """Execute instructions in order; ``pads`` and ``dram`` are changed."""
    dram = Dram.of(config) if dram is None else dram
    placed = place_uops(emitted, config)
    dram.write(config.mem_base + UOP_OFFSET, placed.words.astype("<u4").tobytes())
    executor = Executor(config, dram, pads)
    for instruction in placed.program:
        fault = executor.execute(_placed(instruction))
        assert fault is None, fault


def _placed(instruction: Instruction) -> Instruction:
    """A LOAD of micro-ops whose ``dram_base`` counts from the window's start, not from the words'."""
    if isinstance(instruction, Load) and instruction.memory == Memory.UOP:
        return replace(instruction, dram_base=instruction.dram_base + UOP_OFFSET // UOP_BYTES)
    return instruction


def steps(emitted: Sequence[Emitted]) -> Iterator[Indices]:
    """The micro-ops that GEMM, MAC and ALU instructions run, loops included."""
    for item in emitted:
        loops = item.instruction
        assert isinstance(loops, Gemm | Mac | Alu)
        wgt_out, wgt_in = (0, 0) if isinstance(loops, Alu) else (loops.wgt_factor_out, loops.wgt_factor_in)
        for i, j in np.ndindex(loops.iter_out, loops.iter_in):
            for dst, src, wgt in item.uops[loops.uop_begin : loops.uop_end].tolist():
                yield (
                    dst + i * loops.dst_factor_out + j * loops.dst_factor_in,
                    src + i * loops.src_factor_out + j * loops.src_factor_in,
                    wgt + i * wgt_out + j * wgt_in,
                )


def instructions(emission: Emission) -> list[Instruction]:
    """What a nest became, without micro-ops."""
    return [item.instruction for item in emission.emitted]


def loops(emission: Emission) -> list[Emitted]:
    """GEMM and ALU among it."""
    return [item for item in emission.emitted if isinstance(item.instruction, Loops)]


def as_it_is(target: Any, on: Any, **options: Any) -> accel.Program:
    """Build a workload as the operator that it is, or a schedule."""
    return accel.build(target, on, mapping="plain", **options)


def mapped_and_loaded(workload: accel.Workload, config: str, mapping: str, path: Path) -> accel.Program:
    """A program with a mapping, saved and loaded: both have the workload's tensors, and compute the same."""
    program = accel.build(workload, config, mapping=mapping)
    program.save(path)
    loaded = accel.Program.load(path)
    assert loaded.mapping == mapping
    assert {one.name: one.shape for one in tensors_of(workload)} == {t.name: t.shape for t in loaded.tensors}
    for one in (program, loaded):
        assert one.run(seed=2).mismatches == 0
    return program
