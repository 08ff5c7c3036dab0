"""What a GEMM or ALU instruction reads and writes through its micro-ops."""

from dataclasses import dataclass

from accel.core.memories import Scratchpad


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One operand: elements of a scratchpad, indexed by a field of the micro-ops and two factors.

    In iteration (i, j) the index is ``uop.<name> + i * <name>_factor_out + j * <name>_factor_in``. Access
    sets, index checks, execution and the hardware's wiring follow from these declarations.

    Attributes:
        name: of the micro-op's field.
        memory: where the elements are.
        writes: whether they are written; before that, they are read unless the flag says otherwise.
        unless: name of the flag of the instruction with which they are not read; None if they always are.
        tapped: name of the flag with which an index stands for several elements, SET.ACC's ``taps``, each
            ``step`` behind the one before; None if it never does.
    """

    name: str
    memory: Scratchpad
    writes: bool = False
    unless: str | None = None
    tapped: str | None = None

    def read_by(self, instruction: object) -> bool:
        """Whether the instruction looks at the elements."""
        return self.unless is None or not getattr(instruction, self.unless)

    def used_by(self, instruction: object) -> bool:
        """Whether the instruction reads or writes the elements; otherwise the index is not looked at."""
        return self.writes or self.read_by(instruction)

    def tapped_by(self, instruction: object) -> bool:
        """Whether the instruction takes several elements for each index."""
        return self.tapped is not None and bool(getattr(instruction, self.tapped))

    @property
    def factors(self) -> tuple[str, str]:
        """The fields that hold what an iteration of the outer and of the inner loop adds to the index."""
        return factor_fields(self.name)


def factor_fields(name: str) -> tuple[str, str]:
    """The fields that hold what an iteration of the outer and of the inner loop adds to an index."""
    return f"{name}_factor_out", f"{name}_factor_in"
