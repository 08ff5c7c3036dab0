"""When a program, or a stage of its compilation, counts as right."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import accel
from accel import te

Array = npt.NDArray[Any]


def program_is_right(program: accel.Program, inputs: Mapping[str, Array], want: Array) -> None:
    """Its only output is ``want``, in another order of execution than the program's, too; its tokens are
    proven, none is left over, and it reads nothing that it has not written."""
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
    """Before and after tensorization, loops that are interpreted give ``want`` as the output ``out``."""
    for nest in (te.lower(schedule), te.tensorize(schedule)):
        np.testing.assert_array_equal(te.interpret(nest, inputs)["out"], want)
