"""Lists of numbers in data statements: ``1 -2 0x10``, ``0..7``, ``5*64``."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError, nearest
from accel.core.config import Config
from accel.core.isa import encode_uops

MOST_VALUES = 1 << 24
"""Of one statement."""
_LEAST_REPEATED = 4
"""Fewer equal numbers are written one by one."""
_DTYPES = {"int8": "<i1", "int16": "<i2", "int32": "<i4"}
DATA = ("uop", *_DTYPES, "hex", "zero")


def parse_integer(text: str, what: str = "a number") -> int:
    """Parse an integer in any base, or raise a ProgramError."""
    try:
        return int(text, 0)
    except ValueError:
        raise ProgramError(f"{text!r} stands where {what} is needed") from None


def parse_data(kind: str, words: Sequence[str], config: Config) -> bytes:
    """Convert a data statement to bytes.

    Raises:
        ProgramError: unknown kind, or wrong value.
    """
    if kind == "uop":
        return encode_uops([_triple(word) for word in words], config).astype("<u4").tobytes()
    if kind in _DTYPES:
        return _integers(kind, words)
    if kind == "hex":
        return _hex(words)
    if kind == "zero":
        count = parse_integer(words[0], "a number of bytes") if len(words) == 1 else -1
        if not 0 <= count <= MOST_VALUES:
            raise ProgramError(
                f".zero has {' '.join(words)!r}; it takes a number of bytes up to {MOST_VALUES}"
            )
        return bytes(count)
    raise ProgramError(f"'.{kind}' is not a kind of data; {nearest(kind, DATA)}")


def _triple(word: str) -> tuple[int, int, int]:
    parts = word.split(",")
    if len(parts) != 3:
        raise ProgramError(f"{word!r} stands where a micro-op is needed, as 0,1,2 for dst, src and wgt")
    dst, src, wgt = (parse_integer(part) for part in parts)
    return dst, src, wgt


def _integers(kind: str, words: Iterable[str]) -> bytes:
    bounds = np.iinfo(kind)
    values: list[int] = []
    for word in words:
        found = list(_sequence(word, MOST_VALUES - len(values)))
        for value in found[:1] + found[-1:]:  # a range is monotonous, a repetition constant
            if not bounds.min <= value <= bounds.max:
                raise ProgramError(f"{value} does not fit {kind}; it must be in {bounds.min}..{bounds.max}")
        values += found
    return np.array(values, dtype=_DTYPES[kind]).tobytes()


def _sequence(word: str, most: int) -> Iterable[int]:
    if match := re.fullmatch(r"(.+)\.\.(.+)", word):
        first, last = parse_integer(match[1]), parse_integer(match[2])
        step = 1 if last >= first else -1
        found: Iterable[int] = range(first, last + step, step)
        count = abs(last - first) + 1
    elif match := re.fullmatch(r"(.+)\*(.+)", word):
        count = parse_integer(match[2], "a number of repetitions")
        found = [parse_integer(match[1])] * max(0, min(count, most))
    else:
        return [parse_integer(word)]
    if not 0 <= count <= most:
        raise ProgramError(f"{word!r} stands for {count} numbers; a statement holds 0..{MOST_VALUES}")
    return found


def _hex(words: Iterable[str]) -> bytes:
    text = "".join(words)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ProgramError(f"{text[:20]!r} is not hexadecimal text of whole bytes") from None


def format_integers(values: npt.NDArray[Any]) -> str:
    """Format numbers for :func:`parse_data`."""
    words: list[str] = []
    for value, group in groupby(values.tolist()):
        count = len(list(group))
        words += [f"{value}*{count}"] if count >= _LEAST_REPEATED else [str(value)] * count
    return " ".join(words)
