"""The library behind numpy's matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np


@contextmanager
def exact_products(*, few: bool = True) -> Iterator[None]:
    """Matrix products of whole numbers that floating point holds exactly.

    Nothing is invalid about them: where the library says so, it has computed with what lies beside an array,
    to fill a vector, and warnings would be about that.

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
