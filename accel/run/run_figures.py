"""Figures of a run, in the order of the JSON output."""

from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct

from accel.base.errors import MachineError, ProgramFault
from accel.base.records import as_dict, field_names
from accel.core.events import UnitCycles
from accel.core.fault_causes import Cause

SCHEMA_VERSION = 1


class ErrorFigures(Struct, frozen=True, kw_only=True):
    """An error in a program, with instruction and cycle if known."""

    cause: str
    instruction: int | None
    cycle: int | None
    message: str

    @classmethod
    def of(cls, error: ProgramFault) -> Self:
        cause = type(error).__name__.removesuffix("Error").lower()
        index: int | None = None
        cycle: int | None = None
        if isinstance(error, MachineError):
            index, cycle = error.index, error.cycle
            if isinstance(error.cause, Cause):
                cause = error.cause.label
        return cls(cause=cause, instruction=index, cycle=cycle, message=str(error))


class RunFigures(Struct, frozen=True, kw_only=True):
    """The figures of a run. Most are None after an error."""

    schema_version: int = SCHEMA_VERSION
    backend: str
    config: str
    cycles: int | None = None
    macs: int | None = None
    padding_macs: int | None = None
    ideal_cycles: float | None = None
    roofline_cycles: float | None = None
    utilization: float | None = None
    roofline_fraction: float | None = None
    slot_bound_cycles: float | None = None
    slot_utilization: float | None = None
    slot_roofline_fraction: float | None = None
    bound_by: str | None = None
    mapping: str | None = None
    packed_bytes: int | None = None
    packing_factor: float | None = None
    load_bytes: int | None = None
    store_bytes: int | None = None
    bytes_by_kind: Mapping[str, int] | None = None
    instructions: int
    carriers: int | None = None
    uops: int | None = None
    mismatches: int | None = None
    stalls: Mapping[str, UnitCycles] | None = None
    compile_seconds: float | None = None
    pack_seconds: float | None = None
    simulate_seconds: float | None = None
    error: ErrorFigures | None = None

    def to_dict(self) -> dict[str, Any]:
        return as_dict(self)


RESULT_KEYS = tuple(one for one in field_names(RunFigures))


def error_dict(error: ProgramFault) -> dict[str, Any]:
    return as_dict(ErrorFigures.of(error))
