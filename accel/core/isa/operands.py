"""The operands that GEMM, MAC and ALU access through micro-ops."""

from dataclasses import dataclass

from accel.core.scratchpad_specs import Scratchpad


@dataclass(frozen=True, kw_only=True)
class Operand:
    """Elements of a scratchpad, indexed by a micro-op field and two loop factors.

    In iteration (i, j) the index is ``uop.<name> + i * <name>_factor_out + j * <name>_factor_in``. Access
    sets, index checks, the simulator and the hardware follow from these declarations.

    Attributes:
        name: name of the micro-op field.
        unless: flag that disables reading, if any.
        tapped: flag with which an index selects ``taps`` elements, ``step`` apart, as SET.ACC sets them, if
            any.
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


def factor_fields(name: str) -> tuple[str, str]:
    """Return the names of the outer and the inner factor."""
    return f"{name}_factor_out", f"{name}_factor_in"
