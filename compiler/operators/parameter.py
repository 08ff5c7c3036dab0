"""Parameters of operators: their names in Python and in sweeps, their spellings on the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """What a parameter takes."""

    FLAG = "flag"
    INTEGER = "integer"
    PAIR = "pair"
    """A number for both directions, or one for each."""
    SIDES = "sides"
    """A number for all sides, (vertical, horizontal), or (top, left, bottom, right)."""
    BOUNDS = "bounds"
    """The lowest and the highest value."""
    NUMBER = "number"
    """A real number."""
    SCALES = "scales"
    """A positive real number, or one for each channel; on the command line a number or a file of numpy's."""
    TYPE = "type"
    """The type of a quantized tensor: int8 or uint8."""
    ORDER = "order"
    """How floating point adds: left, right or apart."""
    RECORD = "record"
    """Several parameters together; elsewhere than in Python these are given one by one."""

    @property
    def is_tuple(self) -> bool:
        """Whether a value may be several numbers."""
        return self in (Kind.PAIR, Kind.SIDES, Kind.BOUNDS)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many numbers a value may be."""
        return {Kind.PAIR: (1, 2), Kind.SIDES: (1, 2, 4), Kind.BOUNDS: (2,)}.get(self, (1,))

    @property
    def separator(self) -> str:
        """Between the numbers on the command line."""
        return "x" if self is Kind.PAIR else ","


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of an operator.

    Attributes:
        name: of the argument in Python, and of the column in a sweep's table.
        kind: what it takes.
        text: what it means, a sentence.
        form: how a value is written on the command line, as ``KH[xKW]``.
        also: other names, as ``batch`` for ``N``.
        short: whether a name of one letter is a short option too.
        otherwise: its value where the command line or a sweep leaves it out that Python must be given.
        default: what help says of one that may be left out and whose default is no value of its own.
        fields: of a record, its parameters.
        shared: of a record, parameters of the operator that are the record's where it is given.
        make: of a record, makes the argument from the values of fields, by name.
    """

    name: str
    text: str
    kind: Kind = Kind.INTEGER
    form: str | None = None
    also: tuple[str, ...] = ()
    short: bool = True
    otherwise: int | None = None
    default: str | None = None
    fields: tuple["Parameter", ...] = ()
    shared: tuple[str, ...] = ()
    make: Callable[[Mapping[str, Any]], Any] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Its spellings on the command line; a record has none of its own."""
        if self.kind is Kind.RECORD:
            return ()
        names = (self.name, *self.also)
        return tuple(option for name in names for option in _options(name, short=self.short))


@dataclass(frozen=True, kw_only=True)
class Joint:
    """One name for several parameters at once, as ``size`` for ``H`` and ``W``.

    Attributes:
        name: what it is called everywhere but in Python.
        of: the parameters, in order; a single number is for each of them.
        text: what it means, a sentence.
        form: how a value is written on the command line.
    """

    name: str
    of: tuple[str, ...]
    text: str
    form: str

    @property
    def options(self) -> tuple[str, ...]:
        """Its spellings on the command line."""
        return _options(self.name, short=False)


def _options(name: str, *, short: bool) -> tuple[str, ...]:
    spelled = name.lower().replace("_", "-")
    return (f"-{spelled}", f"--{spelled}") if short and len(spelled) == 1 else (f"--{spelled}",)
