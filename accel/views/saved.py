"""Runs in files: what ``accel run --save`` writes and ``accel diff`` compares.

A network's run is kept as one, its programs one behind the other, with the layers that its cycles went to.

An archive as a program's file is. Its manifest has the format ``accel-run``; ``critical.bin`` holds the
critical path, ``states.bin`` what the units did. Nothing in it is executed, and nothing larger is read than
the manifest says.
"""

import hashlib
import io
import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_path
from accel.base.errors import AccelError, ProgramError
from accel.base.files import write_atomically
from accel.core.config import Config, from_dict
from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.image.archive import Archive, damage, is_archive, write_archive
from accel.image.image import RUN_FORMAT, Image
from accel.image.manifest import read_entry, read_optional
from accel.run.critical import Segment
from accel.run.layers import Layer, layer_at
from accel.run.result import Result
from accel.run.waits import Wait
from accel.views.bins import shares
from accel.views.scene import scene
from accel.views.states import Activity, State
from accel.views.timeline import title
from accel.views.traffic import Traffic, traffic

SUFFIX = ".accelrun"
VERSION = 2
"""Of the file; newer ones are refused. Version 2 has layers; runs without them are written as 1."""
BINS = 480
"""Parts of a run, at most, of which it is kept what each unit did."""
FIGURES: Mapping[str, str] = {
    "cycles": "cycles",
    "instructions": "instructions",
    "uops": "micro-ops",
    "utilization": "GEMM core used",
    "roofline_fraction": "of the roofline",
    "slot_utilization": "slots filled",
    "load_bytes": "bytes loaded",
    "store_bytes": "bytes stored",
    "bound_by": "bound by",
}
"""Figures of a run that are compared, by their keys, in words."""
_MOST_SEGMENTS = 1 << 27
_SEGMENT = np.dtype(
    [("cycles", "<i8"), ("unit", "u1"), ("cause", "u1"), ("instruction", "<i4"), ("tensor", "<i4")]
)
"""One segment of ``critical.bin``; the numbers of unit, cause and tensor are places in the manifest's lists,
-1 for none."""
_SHARE = np.dtype("<u2")
"""Of ``states.bin``: by unit, part of the run and state, thousandths."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedRun:
    """A run without its tensors and events.

    Attributes:
        name: of program and machine, in words.
        program: SHA-256 of its instructions and of what lies in DRAM with it, in hexadecimal.
        config: the machine.
        overrides: fields of it that were set for this run.
        seed: of what was random; None if it is not known.
        figures: as :meth:`~accel.run.result.Result.to_dict` has them.
        critical: the critical path.
        traffic: what moved, by tensor.
        states: of each unit in each part of the run the thousandths that it spent in each state,
            uint16[units][parts][states].
        layers: of a network's run, in order; the cycles of those on the machine sum up to the run's.
            Instructions are numbered in their own program then.
    """

    name: str
    program: str
    config: Config
    overrides: Mapping[str, str]
    seed: int | None
    figures: Mapping[str, Any]
    critical: tuple[Segment, ...]
    traffic: tuple[Traffic, ...]
    states: npt.NDArray[np.uint16]
    layers: tuple[Layer, ...] = ()

    @classmethod
    def of(
        cls,
        result: Result,
        *,
        name: str | None = None,
        overrides: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> Self:
        """What is kept of a run.

        Args:
            result: of a run in which time was simulated.
            name: of the program, for the title; that of its workload goes first.
            overrides: fields of the machine that were set for this run.
            seed: of what was random.

        Raises:
            AccelError: nothing is known of when things happened.
        """
        seen = scene(result, name)
        return cls(
            name=title(seen),
            program=program_hash(result.image),
            config=result.config,
            overrides=dict(overrides or {}),
            seed=seed,
            figures=result.to_dict(),
            critical=result.critical_path() or (),
            traffic=tuple(one for one in traffic(seen) if one.moved),
            states=states_of(seen.seen),
        )

    @property
    def cycles(self) -> int:
        """Length of the run."""
        return int(self.figures["cycles"])

    def layer_of(self, cycle: int) -> Layer | None:
        """The layer that a cycle went to; None if this is no network's run."""
        return layer_at(self.layers, cycle)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file; on an error nothing is left behind.

        Raises:
            AccelError: the name does not end in ``.accelrun``.
            ProgramError: it cannot be written.
        """
        target = check_run_path(path)
        tensors = list(dict.fromkeys(one.tensor for one in self.critical if one.tensor is not None))
        causes = list(dict.fromkeys(str(one.cause) for one in self.critical))
        units = [unit.label for unit in Unit]
        table = np.array(
            [
                (
                    one.cycles,
                    units.index(one.unit),
                    causes.index(one.cause),
                    -1 if one.instruction is None else one.instruction,
                    -1 if one.tensor is None else tensors.index(one.tensor),
                )
                for one in self.critical
            ],
            dtype=_SEGMENT,
        )
        manifest = {
            "format": RUN_FORMAT,
            "version": VERSION if self.layers else 1,
            "name": self.name,
            "program": self.program,
            "config": self.config.to_dict(),
            "overrides": dict(self.overrides),
            "seed": self.seed,
            "figures": dict(self.figures),
            "traffic": [asdict(one) for one in self.traffic],
            "units": units,
            "causes": causes,
            "tensors": tensors,
            "segments": len(table),
            "parts": self.states.shape[1],
        } | ({"layers": [asdict(one) for one in self.layers]} if self.layers else {})
        members = [("critical.bin", table.tobytes()), ("states.bin", self.states.astype(_SHARE).tobytes())]
        buffer = io.BytesIO()
        write_archive(buffer, json.dumps(manifest).encode(), members)
        write_atomically(target, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file.

        Raises:
            ProgramError: it cannot be read, is damaged, no run's file, or from a newer version.
        """
        source, name = check_path("run", path), f"run {os.fspath(path)!r}"
        try:
            with open(source, "rb") as file:
                if not is_archive(file):
                    raise ProgramError(f"{name} is no saved run; 'accel run --save' writes such files")
                return cls._read(name, file)
        except OSError as error:
            raise ProgramError(f"{name} cannot be read: {error.strerror}") from None

    @classmethod
    def _read(cls, name: str, file: IO[bytes]) -> Self:
        try:
            archive = Archive(file)
            data = archive.manifest()
            if not isinstance(data, dict) or data.get("format") != RUN_FORMAT:
                raise ProgramError("it holds no run")
            version = read_entry(data, "version", int)
            if not 1 <= version <= VERSION:
                raise ProgramError(f"its format version is {version}; this release reads up to {VERSION}")
            figures, changed = (read_entry(data, key, dict) for key in ("figures", "overrides"))
            cycles = _check_figures(figures)
            run = cls(
                name=read_entry(data, "name", str),
                program=read_entry(data, "program", str),
                config=from_dict(read_entry(data, "config", dict)),
                overrides={name: read_entry(changed, name, str) for name in changed},
                seed=read_optional(data, "seed", int),
                figures=figures,
                critical=_critical(data, archive),
                traffic=tuple(_traffic(one) for one in read_entry(data, "traffic", list)),
                states=_read_states(data, archive),
                layers=tuple(_layer(one) for one in read_entry(data, "layers", list)) if version > 1 else (),
            )
            if cycles != sum(one.cycles for one in run.critical):
                raise ProgramError(f"its critical path does not take the {cycles} cycles of its figures")
            if run.layers and cycles != sum(one.cycles or 0 for one in run.layers):
                raise ProgramError(f"its layers do not take the {cycles} cycles of its figures")
            return run
        except AccelError as error:
            raise ProgramError(f"{name}: {error}") from None
        except Exception as error:  # what is read fails at damage in too many ways to list
            raise ProgramError(f"{name} is damaged: {damage(error)}") from None


def check_run_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a file whose name does not say that it holds a run.

    Raises:
        AccelError: it ends otherwise.
    """
    target = check_path("run", path)
    if target.suffix != SUFFIX:
        raise AccelError(f"the run is to be saved to {os.fspath(path)!r}; the name must end in {SUFFIX}")
    return target


def program_hash(image: Image) -> str:
    """SHA-256 of a program's instructions, and of what lies in DRAM with it and where."""
    digest = hashlib.sha256(image.code)
    for offset, content in image.segments:
        digest.update(f"{offset}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def states_of(seen: Activity) -> npt.NDArray[np.uint16]:
    """What units did, as :attr:`SavedRun.states`."""
    parts = min(BINS, max(1, seen.cycles))
    found = [shares(seen.spans[unit], 0, seen.cycles, parts) for unit in Unit]
    return np.rint(np.stack(found) * 1000).astype(np.uint16)


def _critical(data: dict[str, Any], archive: Archive) -> tuple[Segment, ...]:
    count = read_entry(data, "segments", int)
    if not 0 <= count <= _MOST_SEGMENTS:
        raise ProgramError(f"segments is {count} in its manifest; it must be 0..{_MOST_SEGMENTS}")
    size = count * _SEGMENT.itemsize
    table = np.frombuffer(archive.member("critical.bin", size, size), dtype=_SEGMENT)
    units, tensors = (_texts(data, key) for key in ("units", "tensors"))
    causes = [Wait(text) for text in _texts(data, "causes")]
    found, start = [], 0
    for cycles, unit, cause, instruction, tensor in table.tolist():
        if cycles <= 0 or not -1 <= tensor < len(tensors) or instruction < -1:
            raise ProgramError("its critical path is damaged")
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


def _check_figures(figures: dict[str, Any]) -> int:
    """Refuse figures that a comparison cannot use; returns the cycles."""
    for key in FIGURES:
        if not isinstance(figures.get(key), int | float | str | None):
            raise ProgramError(f"{key} is {reprlib.repr(figures[key])} in its figures; it must be a value")
    stalls = read_entry(figures, "stalls", dict)
    cycles = read_entry(figures, "cycles", int)
    for unit in Unit:
        own = read_entry(stalls, unit.label, dict)
        if sum(read_entry(own, one.name, int) for one in fields(UnitCycles)) != cycles:
            raise ProgramError(f"the {unit.label} unit's cycles in its figures are not those of the run")
    return cycles


def _texts(data: dict[str, Any], key: str) -> Sequence[str]:
    found = read_entry(data, key, list)
    if not all(isinstance(one, str) for one in found):
        raise ProgramError(f"{key} in its manifest must be a list of texts")
    return found


def _traffic(data: Any) -> Traffic:
    return Traffic(
        name=read_entry(data, "name", str),
        role=read_entry(data, "role", str),
        size=read_optional(data, "size", int),
        **{key: read_entry(data, key, int) for key in ("read", "written", "bus", "bursts")},
    )


def _layer(data: Any) -> Layer:
    program, cycles = (read_optional(data, key, int) for key in ("program", "cycles"))
    if (program is None) is not (cycles is None) or (program or 1) < 1 or (cycles or 0) < 0:
        raise ProgramError("one of its layers is damaged")
    return Layer(
        **{key: read_entry(data, key, str) for key in ("name", "operator", "where", "mapping")},
        program=program,
        cycles=cycles,
    )


def _read_states(data: dict[str, Any], archive: Archive) -> npt.NDArray[np.uint16]:
    parts = read_entry(data, "parts", int)
    if not 1 <= parts <= BINS:
        raise ProgramError(f"parts is {parts} in its manifest; it must be 1..{BINS}")
    shape = len(Unit), parts, len(State)
    size = int(np.prod(shape)) * _SHARE.itemsize
    return np.frombuffer(archive.member("states.bin", size, size), dtype=_SHARE).reshape(shape)
