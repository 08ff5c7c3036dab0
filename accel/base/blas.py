"""The library behind numpy's matrix products."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """Decorator for functions whose matrix products are of integers that floating point represents exactly.

    None of them is invalid. The library may still report an invalid value, if it fills a vector register
    with memory next to an array. These warnings are suppressed.
    """
    return np.errstate(invalid="ignore")(function)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Matrix products by one thread. Small ones are done as soon, and far sooner where others work, too:
    threads that find no processor keep the others waiting."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  # slow to import

    return ThreadpoolController()
