"""Where each instruction of a program comes from."""

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.image.dram_references import check_numbers, numbers_from_bytes, read_records

Kind = Literal["load", "store", "intrinsic", "alu", "clear", "micro-ops", "tokens", "finish"]
"""Kinds of statements: a copy from or to DRAM, a declared intrinsic, an ALU operation, a buffer set to
zero. Instructions outside the nest have kinds, too: LOADs of micro-ops, token carriers, FINISH."""
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The origin of instructions.

    Attributes:
        text: as the stage ``threads`` prints it, or empty outside the nest.
        stage: its stage of the schedule, or empty.
        step: number of the schedule step that shaped it.
        tensor: the tensor that it moves or computes, preferably in DRAM.
        reads: other tensors that it reads.
        loops: names of the loops around it, outermost first.
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
        ValueError: a value is of the wrong type, or unknown.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Provenance:
    """The statements of a program's instructions.

    Attributes:
        statements: by first instruction.
        of: int32[instructions], the number of a statement.
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
        """Raise a ProgramError unless the references fit a program."""
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
            ProgramError: they are damaged.
        """
        statements = read_records("provenance", data, read_statement)
        return cls(statements=statements, of=numbers_from_bytes(numbers))
