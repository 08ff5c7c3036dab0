"""The operators by name, for the command line, sweeps and files."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from accel.base.errors import ShapeError, nearest
from accel.compiler.operators.declared_convolutions import CONV2D, CONV2D_TRANSPOSE
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.declared_pooling import AVG_POOL2D, GLOBAL_AVG_POOL2D, MAX_POOL2D
from accel.compiler.operators.declared_products import DENSE, GEMM
from accel.compiler.ops.workload import Workload

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (GEMM, DENSE, CONV2D, CONV2D_TRANSPOSE, AVG_POOL2D, MAX_POOL2D, GLOBAL_AVG_POOL2D)
}
"""A new operator is a declaration in this list."""

WORKLOADS: dict[str, Callable[..., Workload]] = {name: operator.make for name, operator in OPERATORS.items()}
"""The function that makes each operator's workload."""


def operator_of(name: str) -> Operator:
    """Return the operator of a name.

    Raises:
        ShapeError: the name is unknown.
    """
    if name not in OPERATORS:
        raise ShapeError(f"{name!r} is not a workload; {nearest(name, OPERATORS)}")
    return OPERATORS[name]


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a workload, in order.

    Raises:
        ShapeError: the name is unknown.
    """
    return dict(inspect.signature(operator_of(name).make).parameters)


def takes_tuples(name: str, parameter: str) -> bool:
    """Return whether a value of a workload's parameter can be several numbers.

    Raises:
        ShapeError: the name is unknown.
    """
    return operator_of(name).takes_tuples(parameter)


def make_workload(name: str, parameters: Mapping[str, Any]) -> Workload:
    """Make a workload from its name and its parameters, under any of their names.

    For example, ``make_workload("gemm", {"m": 64, "n": 64, "k": 128})``.

    Raises:
        ShapeError: a name is unknown, a parameter is missing or given twice, or a value is invalid.
    """
    return operator_of(name).workload(parameters)
