"""The operators by name, as command line, sweeps and files of theirs ask for them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from accel.base.errors import ShapeError, nearest
from accel.compiler.operators.convolutions import CONV2D, CONV2D_TRANSPOSE
from accel.compiler.operators.operator import Operator
from accel.compiler.operators.pooling import AVG_POOL2D, GLOBAL_AVG_POOL2D, MAX_POOL2D
from accel.compiler.operators.products import DENSE, GEMM
from accel.compiler.ops.workload import Workload

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (GEMM, DENSE, CONV2D, CONV2D_TRANSPOSE, AVG_POOL2D, MAX_POOL2D, GLOBAL_AVG_POOL2D)
}
"""All there are; a new one is one more declaration in this list."""

WORKLOADS: dict[str, Callable[..., Workload]] = {name: operator.make for name, operator in OPERATORS.items()}
"""Each makes a workload of its name from parameters by name; those without a default must be given."""


def operator_of(name: str) -> Operator:
    """The operator of a name.

    Raises:
        ShapeError: there is none.
    """
    if name not in OPERATORS:
        raise ShapeError(f"{name!r} is no workload; {nearest(name, OPERATORS)}")
    return OPERATORS[name]


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """The parameters that a workload takes, in order.

    Raises:
        ShapeError: there is no such workload.
    """
    return dict(inspect.signature(operator_of(name).make).parameters)


def takes_tuples(name: str, parameter: str) -> bool:
    """Whether a value of a workload's parameter may be several numbers.

    Raises:
        ShapeError: there is no such workload.
    """
    return operator_of(name).takes_tuples(parameter)


def make_workload(name: str, parameters: Mapping[str, Any]) -> Workload:
    """A workload from its name and parameters, under any of the names that :class:`Operator` knows.

    Raises:
        ShapeError: an unknown name or parameter, one that is missing or given twice, or a bad value.
    """
    return operator_of(name).workload(parameters)
