"""The library of numpy's matrix products."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """Suppress warnings of exact integer products in floating point.

    The library may report an invalid value if a vector register holds memory next to an array.
    """
    return np.errstate(invalid="ignore")(function)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for matrix products. Small ones are as fast, and faster on a busy computer."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  # slow to import

    return ThreadpoolController()
