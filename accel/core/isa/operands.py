"""The operands that instructions access by micro-ops (GEMM, MAC, ALU) or by fields (STOREs)."""

from dataclasses import dataclass
from typing import Protocol

from accel.core.scratchpad_specs import Scratchpad


@dataclass(frozen=True, kw_only=True)
class Operand:
    """Elements of a scratchpad, indexed by a micro-op field and two loop factors, see ``Loops``.

    Access sets, index checks, simulator and hardware follow from these declarations.

    Attributes:
        name: name of the micro-op field.
        unless: flag that disables reading, if any.
        tapped: flag with which an index selects ``taps`` elements, ``step`` apart, as SET.ACC sets them.
    """

    name: str
    memory: Scratchpad
    writes: bool = False
    unless: str | None = None
    tapped: str | None = None

    def read_by(self, instruction: object) -> bool:
        """Whether the instruction reads the elements."""
        return self.unless is None or not getattr(instruction, self.unless)

    def used_by(self, instruction: object) -> bool:
        """Whether the instruction accesses the elements. Otherwise the index is ignored."""
        return self.writes or self.read_by(instruction)

    def tapped_by(self, instruction: object) -> bool:
        """Whether each index selects several elements."""
        return self.tapped is not None and bool(getattr(instruction, self.tapped))

    @property
    def factors(self) -> tuple[str, str]:
        """The fields with the index increments per outer and inner iteration."""
        return factor_fields(self.name)


class Sized(Protocol):
    @property
    def x_size(self) -> int: ...

    @property
    def y_size(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class StoreOperand:
    """Elements of a scratchpad of the store unit that a STORE reads.

    Range checks, the order of LOADs and STOREs, and the views follow from these declarations.

    Attributes:
        field: the field with the first element, plus ``offset``.
        offset: the lowest value of the field that selects an element. With an offset of 1, a field of 3
            selects element 2, and a field of 0 none.
        per_row: the flag with which each row uses the next element, if any.
        per_column: the same for each element of a row.
    """

    scratchpad: Scratchpad
    field: str
    offset: int = 0
    per_row: str = ""
    per_column: str = ""

    def used_by(self, instruction: object) -> bool:
        """Whether the instruction selects an element."""
        return bool(getattr(instruction, self.field) >= self.offset)

    def first(self, instruction: object) -> int:
        """Return the first element."""
        return int(getattr(instruction, self.field)) - self.offset

    def count(self, instruction: "Sized") -> int:
        """Return the number of elements, 0 if the instruction moves nothing."""
        if not self.used_by(instruction) or not (instruction.x_size and instruction.y_size):
            return 0
        if self.per_row and getattr(instruction, self.per_row):
            return instruction.y_size
        return instruction.x_size if self.per_column and getattr(instruction, self.per_column) else 1


def factor_fields(name: str) -> tuple[str, str]:
    return f"{name}_factor_out", f"{name}_factor_in"
