"""The entries of a saved run's file, each checked for type and range.

A file may be hostile. Texts become printable, numbers have at most 63 bits, and a wrong entry raises a
ProgramError.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.base.json_types import shown
from accel.base.records import field_names
from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.image.manifest_entries import read_entry
from accel.image.zip_archive import Archive
from accel.run.critical_path import Segment
from accel.run.layer_record import Layer
from accel.run.run_figures import ErrorFigures, RunFigures
from accel.run.wait_causes import Wait
from accel.views.dram_traffic import TensorTraffic

_MAX_INTEGER = (1 << 63) - 1
_MAX_SEED_BITS = 1024
_MAX_SEGMENTS = 1 << 27
_DIGEST = re.compile("[0-9a-f]{64}")
_PLACEMENTS = ("machine", "host")
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
SEGMENT = np.dtype(
    [("cycles", "<i8"), ("unit", "u1"), ("cause", "u1"), ("instruction", "<i4"), ("tensor", "<i4")]
)
"""Unit, cause and tensor are indices of the manifest's lists, or -1."""
SHARE = np.dtype("<u2")
"""Thousandths, by unit, part of the run and state."""
_WHOLE = 1000
_ROUNDING = 2


def read_text(data: Any, key: str) -> str:
    """Return text without control characters."""
    return _printable(read_entry(data, key, str))


def read_count(data: Any, key: str, part: str = "manifest") -> int:
    value = _present(data, key)
    if type(value) is not int or not 0 <= value <= _MAX_INTEGER:
        raise _wrong(key, value, "an integer in 0..2**63-1", part)
    return value


def read_optional_count(data: Any, key: str) -> int | None:
    return None if data.get(key) is None else read_count(data, key)


def read_number(data: Any, key: str, part: str = "manifest") -> float:
    value = _present(data, key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MAX_INTEGER:  # false for NaN, too
        raise _wrong(key, value, "a number in 0..2**63-1", part)
    return float(value) if isinstance(value, float) else value


def read_seed(data: Any) -> int | None:
    value = data.get("seed")
    if value is not None and (type(value) is not int or value < 0 or value.bit_length() > _MAX_SEED_BITS):
        raise _wrong("seed", value, f"an integer from 0 on, of at most {_MAX_SEED_BITS} bits, or null")
    return value


def read_digest(data: Any, key: str) -> str:
    text = read_entry(data, key, str)
    if not _DIGEST.fullmatch(text):
        raise _wrong(key, text, "a SHA-256 digest of 64 hexadecimal digits")
    return text


def read_overrides(data: Any) -> dict[str, str]:
    overrides = read_entry(data, "overrides", dict)
    return {_printable(name): read_text(overrides, name) for name in overrides}


def read_traffic(data: Any) -> tuple[TensorTraffic, ...]:
    return tuple(
        TensorTraffic(
            name=read_text(one, "name"),
            role=read_text(one, "role"),
            size=read_optional_count(one, "size"),
            **{key: read_count(one, key) for key in ("read", "written", "bus", "bursts")},
        )
        for one in read_entry(data, "traffic", list)
    )


def read_layers(data: Any) -> tuple[Layer, ...]:
    return tuple(_layer(one) for one in read_entry(data, "layers", list))


def _layer(data: Any) -> Layer:
    texts = {key: read_text(data, key) for key in ("name", "operator", "where", "mapping")}
    if texts["where"] not in _PLACEMENTS:
        raise _wrong("where", texts["where"], " or ".join(_PLACEMENTS))
    program, cycles = (read_optional_count(data, key) for key in ("program", "cycles"))
    if (program is None) is not (cycles is None) or program == 0:
        raise ProgramError(
            f"a layer has program {shown(program)} and cycles {shown(cycles)} in its manifest; "
            f"programs count from 1, and on the host both are null"
        )
    return Layer(**texts, program=program, cycles=cycles)


_Reader = Callable[[Any, str], Any]
_PART = "figures"


def read_figures(data: Any) -> dict[str, Any]:
    figures = read_entry(data, "figures", dict)
    found = {
        key: None if figures[key] is None else reader(figures, key)
        for key, reader in _figure_readers().items()
        if key in figures
    }
    stalls, cycles = read_entry(found, "stalls", dict), read_count(found, "cycles", _PART)
    for unit in Unit:
        if sum(stalls[unit.label].values()) != cycles:
            raise ProgramError(f"the {unit.label} unit's cycles in its figures are not those of the run")
    return found


def _figure_readers() -> dict[str, _Reader]:
    hints = get_type_hints(RunFigures)
    return {one: _reader_of(hints[one]) for one in field_names(RunFigures)}


def _reader_of(hint: Any) -> _Reader:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    (kind,) = (one for one in kinds if one is not NoneType)
    if get_origin(kind) is Mapping:
        return _read_stalls if get_args(kind)[1] is UnitCycles else _read_counts
    readers: dict[Any, _Reader] = {
        str: _read_figure_text,
        int: lambda data, key: read_count(data, key, _PART),
        float: lambda data, key: read_number(data, key, _PART),
        ErrorFigures: _read_error,
    }
    return readers[kind]


def _read_figure_text(data: Any, key: str) -> str:
    if not isinstance(data[key], str):
        raise _wrong(key, data[key], "text", _PART)
    return _printable(data[key])


def _read_counts(data: Any, key: str) -> dict[str, int]:
    counts = read_entry(data, key, dict)
    return {_printable(name): read_count(counts, name, _PART) for name in counts}


def _read_stalls(data: Any, key: str) -> dict[str, dict[str, int]]:
    stalls = read_entry(data, key, dict)
    return {
        unit.label: {
            state.figure: read_count(read_entry(stalls, unit.label, dict), state.figure, _PART)
            for state in State
        }
        for unit in Unit
    }


def _read_error(data: Any, key: str) -> dict[str, Any]:
    error = read_entry(data, key, dict)
    return {
        "cause": read_text(error, "cause"),
        "instruction": read_optional_count(error, "instruction"),
        "cycle": read_optional_count(error, "cycle"),
        "message": read_text(error, "message"),
    }


def read_critical_path(data: Any, archive: Archive) -> tuple[Segment, ...]:
    """Return the critical path."""
    count = read_entry(data, "segments", int)
    if not 0 <= count <= _MAX_SEGMENTS:
        raise _wrong("segments", count, f"in 0..{_MAX_SEGMENTS}")
    size = count * SEGMENT.itemsize
    table = np.frombuffer(archive.member("critical.bin", size, size), dtype=SEGMENT)
    units = _known_texts(data, "units", [unit.label for unit in Unit])
    causes = [Wait(text) for text in _known_texts(data, "causes", list(Wait))]
    tensors = _texts(data, "tensors")
    _check_column(table, "cycles", 1, _MAX_INTEGER)
    _check_column(table, "unit", 0, len(units) - 1)
    _check_column(table, "cause", 0, len(causes) - 1)
    _check_column(table, "instruction", -1, _MAX_INTEGER)
    _check_column(table, "tensor", -1, len(tensors) - 1)
    found, start = [], 0
    for cycles, unit, cause, instruction, tensor in table.tolist():
        found.append(
            Segment(
                start=start,
                cycles=cycles,
                unit=units[unit],
                cause=causes[cause],
                instruction=None if instruction < 0 else instruction,
                tensor=None if tensor < 0 else tensors[tensor],
            )
        )
        start += cycles
    return tuple(found)


def _check_column(table: npt.NDArray[np.void], name: str, low: int, high: int) -> None:
    values = table[name].astype(np.int64)
    wrong = np.flatnonzero((values < low) | (values > high))
    if len(wrong):
        number = int(wrong[0])
        raise ProgramError(
            f"its critical path is damaged: {name} of segment {number} is {values[number]}; "
            f"it must be in {low}..{high}"
        )


def read_states(data: Any, archive: Archive, max_parts: int) -> npt.NDArray[np.uint16]:
    """Return :attr:`SavedRun.states`."""
    parts = read_entry(data, "parts", int)
    if not 1 <= parts <= max_parts:
        raise _wrong("parts", parts, f"in 1..{max_parts}")
    shape = len(Unit), parts, len(State)
    size = int(np.prod(shape)) * SHARE.itemsize
    shares = np.frombuffer(archive.member("states.bin", size, size), dtype=SHARE).reshape(shape)
    sums = shares.sum(axis=2, dtype=np.int64)
    wrong = np.argwhere(abs(sums - _WHOLE) > _ROUNDING)
    if len(wrong):
        unit, part = wrong[0].tolist()
        raise ProgramError(
            f"states.bin is damaged: the states of the {Unit(unit).label} unit in part {part} of the run sum "
            f"up to {sums[unit, part]} thousandths; it must be {_WHOLE}"
        )
    return shares


def _texts(data: Any, key: str) -> Sequence[str]:
    found = read_entry(data, key, list)
    if not all(isinstance(one, str) for one in found):
        raise ProgramError(f"{key} in its manifest must be a list of texts")
    return list(map(_printable, found))


def _known_texts(data: Any, key: str, known: Sequence[str]) -> Sequence[str]:
    found = _texts(data, key)
    for text in found:
        if text not in known:
            raise ProgramError(f"{key} is damaged in its manifest: it holds {shown(text)}, which is unknown")
    return found


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else _UNPRINTABLE for c in text)


def _present(data: Any, key: str) -> Any:
    if not isinstance(data, dict) or key not in data:
        raise ProgramError(f"its manifest has no {key!r} where one is needed")
    return data[key]


def _wrong(key: str, value: object, right: str, part: str = "manifest") -> ProgramError:
    return ProgramError(f"{key} is {shown(value)} in its {part}; it must be {right}")
