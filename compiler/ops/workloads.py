"""The workloads by name, as command line, sweeps and files of theirs ask for them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from accel.base.errors import ShapeError, nearest
from accel.compiler.ops.conv import conv2d
from accel.compiler.ops.conv_transpose import conv2d_transpose
from accel.compiler.ops.pool import avg_pool2d, max_pool2d
from accel.compiler.ops.workload import Workload, dense, gemm

WORKLOADS: dict[str, Callable[..., Workload]] = {
    "gemm": gemm,
    "dense": dense,
    "conv2d": conv2d,
    "conv2d_transpose": conv2d_transpose,
    "avg_pool2d": avg_pool2d,
    "max_pool2d": max_pool2d,
}
"""Each makes a workload of its name from parameters by name; those without a default must be given."""


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """The parameters that a workload takes, in order.

    Raises:
        ShapeError: there is no such workload.
    """
    if name not in WORKLOADS:
        raise ShapeError(f"{name!r} is no workload; {nearest(name, WORKLOADS)}")
    return dict(inspect.signature(WORKLOADS[name]).parameters)


def takes_tuples(name: str, parameter: str) -> bool:
    """Whether a value of a workload's parameter may be several numbers.

    Raises:
        ShapeError: there is no such workload.
    """
    known = parameters_of(name)
    return parameter in known and "tuple" in str(known[parameter].annotation)


def make_workload(name: str, parameters: Mapping[str, Any]) -> Workload:
    """A workload from its name and parameters.

    Raises:
        ShapeError: an unknown name or parameter, one that is missing, or a bad value.
    """
    known = parameters_of(name)
    for key in parameters:
        if key not in known:
            raise ShapeError(f"{key!r} is no parameter of {name}; {nearest(key, known)}")
    missing = [key for key, one in known.items() if one.default is one.empty and key not in parameters]
    if missing:
        raise ShapeError(f"{name} has no {', '.join(missing)}; it takes {', '.join(known)}")
    return WORKLOADS[name](**parameters)
