"""Epilogues: how many passes over the accumulators they take."""

import pytest
from hypothesis import given

import accel
from accel.base.errors import ShapeError
from accel.compiler.ops.epilogue import Epilogue
from accel.core.isa import Alu, Gemm, Loops
from tests.compiler.convs import epilogues
from tests.compiler.running import as_it_is
from tests.expect import refused
from tests.strategies import examples


@examples(60)
@given(epilogues)
def test_passes_are_what_the_compiler_emits(options: dict[str, object]) -> None:
    """Of a layer in one tile; what is cleared once for all tiles is not a pass."""
    program = as_it_is(accel.conv2d(1, 16, 4, 4, 16, 1, **options), "vta", vthreads=1)  # type: ignore[arg-type]
    passes = sum(
        i.uop_count
        for i in program.instructions
        if isinstance(i, Loops) and (isinstance(i, Alu) or (isinstance(i, Gemm) and i.reset))
    )
    epilogue = Epilogue(**options)  # type: ignore[arg-type]
    cleared = 16 if epilogue.folds(16) else 0
    assert passes - cleared <= 16 * epilogue.passes(16)
    merged = options["shift"] is None and options["clip"] in ((-128, 127), None) and not options["relu"]
    assert merged or passes - cleared >= 16 * (epilogue.passes(16) - 1)


def test_of_the_networks_layers() -> None:
    assert Epilogue(bias=True, shift=8, relu=True).passes(576) == 4
    assert Epilogue(bias=True, shift=8, clip=(0, 127)).passes(4608) == 4
    assert Epilogue(bias=True, residual=True, shift=8, relu=True).passes(576) == 5
    assert Epilogue(residual=True).passes(576) == 4
    assert Epilogue(shift=8).passes(576) == 4
    assert Epilogue(bias=True).passes(576) == 2
    assert Epilogue().passes(576) == 1
    assert Epilogue().is_empty


@pytest.mark.parametrize("shift", [-1, 32, True, 1.0])
def test_bad_shifts(shift: object) -> None:
    with refused(ShapeError, f"shift is {shift!r}; it must be in 0..31"):
        Epilogue(shift=shift)  # type: ignore[arg-type]


@pytest.mark.parametrize("clip", [(1, 0), (-129, 0), (0, 128), (0,), (0, 1, 2), (False, 3)])
def test_bad_bounds(clip: tuple[int, ...]) -> None:
    with refused(ShapeError, f"clip is {clip}; it must be two ascending integers in -128..127"):
        Epilogue(clip=clip)  # type: ignore[arg-type]
