"""Emitted instructions run on the functional machine, and their micro-ops one by one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import accel
from accel.base.records import replace
from accel.compiler.codegen.micro_op_placement import place_uops
from accel.compiler.codegen.nest_emission import Emission
from accel.compiler.codegen.reorder_passes import reorder
from accel.compiler.mappings.mapping import workload_tensors
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import UOP_BYTES, Config
from accel.core.isa import Alu, Gemm, Instruction, Load, Loops, Mac, Memory
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads

UOP_OFFSET = 1 << 20
"""Offset of the micro-ops in DRAM, in bytes."""

Indices = tuple[int, int, int]
"""dst, src and wgt of a micro-op."""


def run(emitted: Sequence[Emitted], config: Config, pads: Scratchpads, dram: Dram | None = None) -> None:
    """Execute instructions in order; update ``pads`` and ``dram``."""
    dram = Dram.of(config) if dram is None else dram
    placed = place_uops(emitted, config)
    dram.write(config.mem_base + UOP_OFFSET, placed.words.astype("<u4").tobytes())
    executor = Executor(config, dram, pads)
    for instruction in placed.program:
        fault = executor.execute(_placed(instruction))
        assert fault is None, fault


def _placed(instruction: Instruction) -> Instruction:
    """A LOAD of micro-ops with ``dram_base`` relative to the window instead of the micro-ops."""
    if isinstance(instruction, Load) and instruction.memory == Memory.UOP:
        return replace(instruction, dram_base=instruction.dram_base + UOP_OFFSET // UOP_BYTES)
    return instruction


def steps(emitted: Sequence[Emitted]) -> Iterator[Indices]:
    """The micro-ops that GEMM, MAC and ALU instructions run, with all loop iterations."""
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
    """The instructions of a nest after all reorder passes, without LOADs of micro-ops."""
    return [item.instruction for item in reorder(emission.program()).emitted]


def loops(emission: Emission) -> list[Emitted]:
    """The GEMM, MAC and ALU instructions among them."""
    return [item for item in reorder(emission.program()).emitted if isinstance(item.instruction, Loops)]


def as_it_is(target: Any, on: Any, **options: Any) -> accel.Program:
    """Build a workload without a mapping, or a schedule."""
    return accel.build(target, on, mapping="plain", **options)


def mapped_and_loaded(workload: accel.Workload, config: str, mapping: str, path: Path) -> accel.Program:
    """A program with a mapping, saved and loaded: both have the workload's tensors, and compute the same."""
    program = accel.build(workload, config, mapping=mapping)
    program.save(path)
    loaded = accel.Program.load(path)
    assert loaded.mapping == mapping
    assert {one.name: one.shape for one in workload_tensors(workload)} == {
        t.name: t.shape for t in loaded.tensors
    }
    for one in (program, loaded):
        assert one.run(seed=2).mismatches == 0
    return program
