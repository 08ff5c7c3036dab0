from functools import cache
from typing import Any

import accel
from accel.assembly import assemble
from accel.run.program import as_program
from accel.run.result import Result
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from tests.programs import gemm_program


@cache
def result(
    M: int = 24, N: int = 24, K: int = 32, *, timing: tuple[tuple[str, int], ...] = (), **options: Any
) -> Result:
    """A matrix product on the smallest machine."""
    return gemm_program(M, N, K, **options).run(**dict(timing))


def look(*sizes: int, **options: Any) -> AnalyzedRun:
    """The same, analyzed."""
    return analyze_run(result(*sizes, **options))


@cache
def from_text(text: str) -> AnalyzedRun:
    """The run of a program in assembly."""
    return analyze_run(as_program(assemble(text)).run(check=False))


EPILOGUES = """
    .config tiny-int8 read_latency=20 write_latency=8 post_stages=1
    LOAD.ACC  y_size=1 x_size=8 x_stride=8 >store
    LOAD.PAR  y_size=1 x_size=2 x_stride=2 dram_base=64
    LOAD.RES  y_size=1 x_size=16 x_stride=16 dram_base=1024
    STORE.REQ y_size=1 x_size=4 dram_base=2000 <compute
    STORE.ADD y_size=2 x_size=4 x_stride=4 par_y=1 dram_base=2100
    LOAD.RES  y_size=1 x_size=8 x_stride=8 dram_base=1040
    STORE.ADD y_size=1 x_size=8 x_stride=8 par=1 dram_base=2200
    STORE.ADD y_size=1 x_size=8 x_stride=8 dram_base=2300
    LOAD.PAR  y_size=1 x_size=1 x_stride=1 dram_base=64
    FINISH
    """
"""Requantization in the store unit, with every kind of wait for PAR and RES."""


@cache
def many() -> Result:
    """A program of some 2,000 instructions."""
    found = accel.build(accel.gemm(192, 192, 224), "tiny").run(check=False)
    assert len(found.instructions) > 1500
    return found
