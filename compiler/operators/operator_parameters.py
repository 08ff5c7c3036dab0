"""Parameters of operators, in Python, in sweeps and on the command line."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct


class ParameterKind(Enum):
    """The type of a parameter's value."""

    FLAG = "flag"
    INTEGER = "integer"
    PAIR = "pair"
    """One number, or one per direction."""
    SIDES = "sides"
    """A number for all sides, (vertical, horizontal), or (top, left, bottom, right)."""
    BOUNDS = "bounds"
    NUMBER = "number"
    SCALES = "scales"
    """A positive number, or one for each channel. The command line takes a number or a ``.npy`` file."""
    TABLE = "table"
    """The 256 results of a function of a byte. The command line takes a ``.npy`` file."""
    TYPE = "type"
    """int8 or uint8."""
    ORDER = "order"
    """See ``quantization.ORDERS``."""
    RESIDUAL_OPERATION = "residual operation"
    OPERATIONS = "operations"
    """Declared operations with their operands, as texts such as ``max=7``. The command line takes them in
    one option or several."""
    RECORD = "record"
    """Several parameters in one argument. Outside of Python, they are separate."""

    @property
    def is_tuple(self) -> bool:
        return self in (
            *(ParameterKind.PAIR, ParameterKind.SIDES, ParameterKind.BOUNDS),
            ParameterKind.OPERATIONS,
        )

    @property
    def counts(self) -> tuple[int, ...]:
        counts = {ParameterKind.PAIR: (1, 2), ParameterKind.SIDES: (1, 2, 4), ParameterKind.BOUNDS: (2,)}
        return counts.get(self, (1,))

    @property
    def separator(self) -> str:
        return "x" if self is ParameterKind.PAIR else ","


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of an operator.

    Attributes:
        name: the argument in Python, and the column in a sweep's table.
        metavar: syntax on the command line, for example ``KH[xKW]``.
        aliases: other names, for example ``batch`` for ``N``.
        has_short_option: whether a name of one letter is also a short option.
        omitted_value: the default outside of Python, which requires the parameter.
        default_text: the default in help texts, if the value itself would not explain it.
        shared: parameters of the operator that belong to the record if it is given.
        make: makes the argument of a record from the values of its fields.
    """

    name: str
    text: str
    kind: ParameterKind = ParameterKind.INTEGER
    metavar: str | None = None
    aliases: tuple[str, ...] = ()
    has_short_option: bool = True
    omitted_value: int | None = None
    default_text: str | None = None
    fields: tuple["Parameter", ...] = ()
    shared: tuple[str, ...] = ()
    make: Callable[[Mapping[str, Any]], Any] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options on the command line. A record has none of its own."""
        if self.kind is ParameterKind.RECORD:
            return ()
        names = (self.name, *self.aliases)
        return tuple(
            option for name in names for option in _options(name, has_short_option=self.has_short_option)
        )


class JointParameter(Struct, frozen=True, kw_only=True):
    """One name for several parameters, for example ``size`` for ``H`` and ``W``. One number applies to
    all."""

    name: str
    names: tuple[str, ...]
    text: str
    metavar: str

    @property
    def options(self) -> tuple[str, ...]:
        return _options(self.name, has_short_option=False)


def _options(name: str, *, has_short_option: bool) -> tuple[str, ...]:
    option = name.lower().replace("_", "-")
    return (f"-{option}", f"--{option}") if has_short_option and len(option) == 1 else (f"--{option}",)
