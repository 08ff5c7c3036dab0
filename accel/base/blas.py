"""The library of matrix products."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """Suppress warnings of exact integer products in floating point.

    A vector register may hold memory next to an array, with invalid values.
    """
    return np.errstate(invalid="ignore")(function)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for matrix products, which is faster for small ones on a busy computer."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # slow to import

    return ThreadpoolController()
