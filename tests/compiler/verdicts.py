"""Checks that a program, or a stage of its compilation, is correct."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import accel
from accel import te

Array = npt.NDArray[Any]


def program_is_right(program: accel.Program, inputs: Mapping[str, Array], want: Array) -> None:
    """Check that its only output is ``want``, also in another order of execution.

    The check also proves the tokens, and that none is left over and no unwritten data are read.
    """
    (name,) = (t.name for t in program.tensors if t.role == "output")
    np.testing.assert_array_equal(program.reference(inputs)[name], want)
    for order in ("program", "random"):
        found = program.run(inputs, backend="functional", order=order, seed=1)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.outputs[name], want)
    report = program.check()
    assert report.ok
    assert report.left_over == (0, 0, 0, 0)
    assert report.unwritten_count == 0


def stages_are_right(schedule: te.Schedule, inputs: Mapping[str, Array], want: Array) -> None:
    """Interpret the loops before and after tensorization, and compare ``out`` with ``want``."""
    for nest in (te.lower(schedule), te.tensorize(schedule)):
        np.testing.assert_array_equal(te.interpret(nest, inputs)["out"], want)
