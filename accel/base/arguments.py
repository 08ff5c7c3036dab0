"""Checks and conversions of arguments."""

import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, ProgramError, ShapeError


def plain_integer(value: object) -> int | None:
    if type(value) is int:  # the fastest check for the most frequent case
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # arrays have the method, but mostly no index
        return None


def plain_integers(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, Sequence) and not (isinstance(values, np.ndarray) and values.ndim == 1):
        return None
    numbers = tuple(map(plain_integer, values))
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def check_integer(
    name: str,
    value: object,
    *,
    least: int = 1,
    most: int | None = None,
    error: type[AccelError] = ShapeError,
) -> int:
    """Return an integer in a range, or raise an error."""
    number = plain_integer(value)
    if number is None or number < least or (most is not None and number > most):
        if most is not None:
            right = f"in {least}..{most}"
        else:
            right = "a positive integer" if least == 1 else f"an integer from {least} on"
        raise error(f"{name} is {value!r}; it must be {right}")
    return number


def check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ShapeError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def check_path(what: str, path: object) -> Path:
    """Return a path, or raise a ProgramError, for example for an open file's number."""
    if not isinstance(path, str | os.PathLike):
        raise ProgramError(f"the path of the {what} is {path!r}; it must be a string or a path")
    if "\0" in os.fsdecode(path):
        raise ProgramError(f"the path of the {what} is {path!r}; it must have no zero byte")
    return Path(path)


def check_mapping(what: str, given: object) -> dict[str, Any]:
    """Return a dictionary, empty for None, or raise a ShapeError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ShapeError(f"{what} are a {type(given).__name__}; they must be arrays by name, as in a dict")
    return dict(given)


def check_array(name: str, value: object, shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    array = plain_array(name, value, f"a numpy array of {dtype}{list(shape)}")
    if array.dtype != np.dtype(dtype):
        raise ShapeError(f"{name} has dtype {array.dtype}; it must be {dtype}")
    if array.shape != shape:
        raise ShapeError(f"{name} has shape {list(array.shape)}; it must be {list(shape)}")
    return array


def plain_array(name: str, value: object, right: str) -> npt.NDArray[Any]:
    """Return a plain array over the same memory, or raise a ShapeError."""
    if not isinstance(value, np.ndarray):
        raise ShapeError(f"{name} is a {type(value).__name__}; it must be {right}")
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):  # np.ma is slow to import
        raise ShapeError(f"{name} is a masked array; fill in what is masked, as by filled(0)")
    return np.asarray(value)
