"""Origins of instructions."""

from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ProgramError
from accel.image.dram_references import check_numbers, numbers_from_bytes, read_records

Kind = Literal["load", "store", "intrinsic", "alu", "clear", "micro-ops", "tokens", "finish"]
"""Copies from or to DRAM, intrinsics, ALU operations, and buffers set to zero. Outside the nest: LOADs of
micro-ops, token carriers, FINISH."""
_KINDS: tuple[Kind, ...] = get_args(Kind)


class Statement(Struct, frozen=True, kw_only=True):
    """The origin of instructions.

    Attributes:
        text: as in the stage ``threads``, or empty outside the nest.
        stage: of the schedule, or empty.
        step: number of the schedule's step that shaped it.
        tensor: moved or computed tensor, preferably in DRAM.
        reads: other read tensors.
        loops: names of its loops, outermost first.
    """

    kind: Kind
    text: str = ""
    stage: str = ""
    step: int | None = None
    tensor: str = ""
    reads: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without empty values."""
        found: dict[str, Any] = {"kind": self.kind}
        for name in ("text", "stage", "tensor"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        for name in ("reads", "loops"):
            if getattr(self, name):
                found[name] = list(getattr(self, name))
        return found if self.step is None else {**found, "step": self.step}


def read_statement(data: dict[str, Any]) -> Statement:
    """Invert :meth:`Statement.to_dict`.

    Raises:
        ValueError: a wrong type, or unknown value.
    """
    texts = [data.get(name, "") for name in ("text", "stage", "tensor")]
    lists = [data.get(name, []) for name in ("reads", "loops")]
    kind, step = data["kind"], data.get("step")
    if kind not in _KINDS or not (step is None or (type(step) is int and step >= 0)):
        raise ValueError(data)
    if not all(isinstance(one, list) for one in lists):
        raise ValueError(data)
    if not all(isinstance(one, str) for one in (*texts, *lists[0], *lists[1])):
        raise ValueError(data)
    return Statement(
        kind=kind,
        text=texts[0],
        stage=texts[1],
        tensor=texts[2],
        step=step,
        reads=tuple(lists[0]),
        loops=tuple(lists[1]),
    )


class Provenance(Struct, frozen=True, kw_only=True, eq=False):
    """Statements by instruction.

    Attributes:
        statements: in the order of first instructions.
        of: int32[instructions], number of a statement.
    """

    statements: tuple[Statement, ...]
    of: npt.NDArray[np.int32]

    def __getitem__(self, index: int) -> Statement:
        return self.statements[int(self.of[index])]

    def __len__(self) -> int:
        return len(self.of)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Provenance):
            return NotImplemented
        return self.statements == other.statements and np.array_equal(self.of, other.of)

    __hash__ = None  # type: ignore[assignment]

    def check(self, instructions: int) -> None:
        """Raise a ProgramError unless the numbers fit."""
        if len(self.of) != instructions:
            raise ProgramError(
                f"its provenance is that of {len(self.of)} instructions; it has {instructions}"
            )
        check_numbers("provenance", self.of, len(self.statements), least=0)

    def to_data(self) -> list[dict[str, Any]]:
        """Return the statements for a manifest."""
        return [statement.to_dict() for statement in self.statements]

    @classmethod
    def from_data(cls, data: object, numbers: bytes) -> Self:
        """Invert :meth:`to_data` and :func:`~accel.image.dram_references.numbers_to_bytes`.

        Raises:
            ProgramError: for damaged data.
        """
        statements = read_records("provenance", data, read_statement)
        return cls(statements=statements, of=numbers_from_bytes(numbers))
