"""The library behind numpy's matrix products.

Products of whole numbers that floating point holds exactly are never invalid. Where the library says so all
the same, it has computed with what lies beside an array, to fill a vector; warnings would be about that.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """A function that makes products of whole numbers, without warnings that they are invalid."""
    return np.errstate(invalid="ignore")(function)


@contextmanager
def exact_products(*, few: bool = True) -> Iterator[None]:
    """Products of whole numbers are made within, without warnings that they are invalid.

    Args:
        few: by one thread. Small products are done as soon, and far sooner where others work, too: threads
            that find no processor keep the others waiting.
    """
    limited = _libraries().limit(limits=1, user_api="blas") if few else nullcontext()
    with limited, np.errstate(invalid="ignore"):
        yield


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  # slow to import

    return ThreadpoolController()
