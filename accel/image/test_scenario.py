"""Initial state and expected results of a test."""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from accel.base.errors import ProgramError, nearest
from accel.base.json_types import kind_name, shown
from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.scratchpad_specs import scratchpads_of

T = TypeVar("T")
Tokens = tuple[int, int, int, int]
"""In the order of :class:`~accel.core.token_rules.Counter`."""

NO_TOKENS: Tokens = (0, 0, 0, 0)


class Contents(Struct, frozen=True, kw_only=True):
    """Elements of a scratchpad from ``element``, as little-endian bytes of software's type."""

    scratchpad: str
    element: int
    data: bytes

    def check(self, config: Config) -> None:
        pads = scratchpads_of(config)
        pad = pads.get(self.scratchpad)
        if pad is None:
            raise ProgramError(f"{self.scratchpad!r} is not a scratchpad; {nearest(self.scratchpad, pads)}")
        size = pad.held_bytes(config)
        if len(self.data) % size:
            raise ProgramError(
                f"{len(self.data)} bytes are given for {self.scratchpad}; its elements have {size} each"
            )
        end = self.element + len(self.data) // size
        depth = pad.depth(config)
        if not 0 <= self.element <= end <= depth:
            raise ProgramError(
                f"{self.scratchpad} elements {self.element}..{end - 1} are given; the scratchpad has {depth}"
            )
        bits = pad.lane_bits(config)
        if bits % 8:
            values = np.frombuffer(self.data, dtype=np.dtype(pad.held_dtype(config)).newbyteorder("<"))
            low, high = -(1 << bits - 1), (1 << bits - 1) - 1
            beyond = values[(values < low) | (values > high)]
            if len(beyond):
                raise ProgramError(
                    f"{self.scratchpad} is given {beyond[0]}; its values have {bits} bits ({low}..{high})"
                )

    def to_dict(self) -> dict[str, Any]:
        return {"scratchpad": self.scratchpad, "element": self.element, "data": _text(self.data)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Contents":
        return cls(
            scratchpad=_get(data, "scratchpad", str),
            element=_get(data, "element", int),
            data=_bytes(_get(data, "data", str)),
        )


class Start(Struct, frozen=True, kw_only=True):
    """Initial state except DRAM. Other elements of scratchpads are arbitrary."""

    contents: tuple[Contents, ...] = ()
    tokens: Tokens = NO_TOKENS
    max_cycles: int | None = None
    max_uops: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "contents": [one.to_dict() for one in self.contents],
            "tokens": list(self.tokens),
            "max_cycles": self.max_cycles,
            "max_uops": self.max_uops,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Start":
        return cls(
            contents=_each(data, "contents", Contents.from_dict),
            tokens=_tokens(_get(data, "tokens", list)),
            max_cycles=_positive(data, "max_cycles"),
            max_uops=_positive(data, "max_uops"),
        )


class Expected(Struct, frozen=True, kw_only=True):
    """Expected results.

    Attributes:
        cause: of the error that ends the run, or NONE.
        instruction: where the run ends, or None for any.
        tokens: at the end, or None for any.
        racy: whether the token check must find a race.
    """

    cause: Cause = Cause.NONE
    instruction: int | None = None
    memory: tuple[tuple[int, bytes], ...] = ()
    contents: tuple[Contents, ...] = ()
    tokens: Tokens | None = None
    racy: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "cause": self.cause.label,
            "instruction": self.instruction,
            "memory": [{"offset": offset, "data": _text(content)} for offset, content in self.memory],
            "contents": [one.to_dict() for one in self.contents],
            "tokens": None if self.tokens is None else list(self.tokens),
            "racy": self.racy,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Expected":
        index, tokens = data.get("instruction"), data.get("tokens")
        return cls(
            cause=cause_by_label(_get(data, "cause", str)),
            instruction=None if index is None else _get(data, "instruction", int),
            memory=_each(
                data, "memory", lambda one: (_get(one, "offset", int), _bytes(_get(one, "data", str)))
            ),
            contents=_each(data, "contents", Contents.from_dict),
            tokens=None if tokens is None else _tokens(tokens),
            racy=bool(data.get("racy")),
        )


def cause_by_label(label: str, *, of_error: bool = False) -> Cause:
    """Return a cause by name, for example ``dst-index``."""
    named = {cause.label: cause for cause in Cause if cause is not Cause.NONE or not of_error}
    if label not in named:
        raise ProgramError(f"{label!r} is not a cause of an error; {nearest(label, named)}")
    return named[label]


def check_scenario(start: Start, expected: Expected | None, config: Config, instructions: int) -> None:
    """Raise a ProgramError for a scenario that does not fit."""
    limit = config.token_limit
    if not all(0 <= count <= limit for count in start.tokens):
        raise ProgramError(f"the tokens at the start are {list(start.tokens)}; a counter holds 0..{limit}")
    for one in (*start.contents, *(expected.contents if expected else ())):
        one.check(config)
    if expected is None:
        return
    for offset, content in expected.memory:
        if not 0 <= offset <= config.mem_size - len(content):
            raise ProgramError(
                f"DRAM bytes {offset:#x}..{offset + len(content) - 1:#x} are expected; "
                f"the window has {config.mem_size:#x}"
            )
    if expected.instruction is not None and not 0 <= expected.instruction < max(instructions, 1):
        raise ProgramError(
            f"an error is expected at instruction {expected.instruction}; the program has {instructions}"
        )


def _get(data: Any, key: str, kind: type[T]) -> T:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ProgramError(f"{key} is {shown(value)}; it must be {kind_name(kind)}")
    return value


def _each(data: Any, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    values: Iterable[Any] = _get(data, key, list)
    return tuple(read(value) for value in values)


def _positive(data: Any, key: str) -> int | None:
    if data.get(key) is None:
        return None
    value = _get(data, key, int)
    if value < 1:
        raise ProgramError(f"{key} is {value}; it must be positive")
    return value


def _tokens(values: Sequence[Any]) -> Tokens:
    if len(values) != len(NO_TOKENS) or any(type(value) is not int for value in values):
        raise ProgramError(f"the tokens are {values!r}; four numbers are needed")
    return values[0], values[1], values[2], values[3]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProgramError(f"data is not base64 text: {error}") from None
