"""Runs that several tests look at."""

from functools import cache
from typing import Any

import accel
from accel.assembly import assemble
from accel.run.program import as_program
from accel.run.result import Result
from accel.views.scene import Scene, scene
from tests.programs import gemm_program


@cache
def result(
    M: int = 24, N: int = 24, K: int = 32, *, timing: tuple[tuple[str, int], ...] = (), **options: Any
) -> Result:
    """A matrix product on the smallest machine."""
    return gemm_program(M, N, K, **options).run(**dict(timing))


def look(*sizes: int, **options: Any) -> Scene:
    """The same, to look at."""
    return scene(result(*sizes, **options))


@cache
def from_text(text: str) -> Scene:
    """A program in assembly."""
    return scene(as_program(assemble(text)).run(check=False))


@cache
def many() -> Result:
    """A program of some 2,000 instructions."""
    found = accel.build(accel.gemm(192, 192, 224), "tiny").run(check=False)
    assert len(found.instructions) > 1500
    return found
