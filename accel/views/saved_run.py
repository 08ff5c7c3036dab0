"""Runs in files: ``accel run --save`` writes them and ``accel diff`` compares them.

``docs/reference/run-outputs.md`` describes the format.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_path
from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError, ProgramError
from accel.base.records import as_dict
from accel.core.config import Config, from_dict
from accel.core.isa import Unit
from accel.image.image import RUN_FORMAT, Image
from accel.image.manifest_entries import read_entry
from accel.image.zip_archive import Archive, damage, is_archive, write_archive
from accel.run.critical_path import Segment, shares
from accel.run.layer_record import Layer, layer_at
from accel.run.result import Result
from accel.views.activity_records import Activity
from accel.views.analyzed_run import analyze_run
from accel.views.dram_traffic import TensorTraffic, dram_traffic
from accel.views.saved_run_entries import (
    SEGMENT,
    SHARE,
    read_critical_path,
    read_digest,
    read_figures,
    read_layers,
    read_overrides,
    read_seed,
    read_states,
    read_text,
    read_traffic,
)
from accel.views.state_shares import state_shares
from accel.views.timeline_page import run_title

SUFFIX = ".accelrun"
VERSION = 2
"""Newest readable version. Version 1 has no layers."""
MAX_PARTS = 480
FIGURES: Mapping[str, str] = {
    "cycles": "cycles",
    "instructions": "instructions",
    "uops": "micro-ops",
    "utilization": "GEMM core used",
    "roofline_fraction": "of the roofline",
    "slot_utilization": "slots filled",
    "load_bytes": "bytes loaded",
    "store_bytes": "bytes stored",
    "largest_cause": "largest cause of the critical path",
}
"""Names in tables of the figures that comparisons show."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedRun:
    """A run without its tensors and events.

    Attributes:
        program: SHA-256 of instructions and DRAM contents.
        overrides: fields set for this run.
        figures: see :meth:`~accel.run.result.Result.to_dict`.
        states: uint16[units][parts][states], thousandths of each part.
        layers: of a network. Instructions are then numbered within their program.
    """

    name: str
    program: str
    config: Config
    overrides: Mapping[str, str]
    seed: int | None
    figures: Mapping[str, Any]
    critical: tuple[Segment, ...]
    traffic: tuple[TensorTraffic, ...]
    states: npt.NDArray[np.uint16]
    layers: tuple[Layer, ...] = ()

    @property
    def largest_cause(self) -> str | None:
        """For example ``compute slots 96%``, or None without a critical path."""
        found = shares(self.critical)
        cycles = self.figures["cycles"]
        return (
            f"{found[0].unit} {found[0].cause} {found[0].cycles / cycles:.0%}" if found and cycles else None
        )

    @classmethod
    def of(
        cls,
        result: Result,
        *,
        name: str | None = None,
        overrides: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> Self:
        """Convert a result.

        Args:
            name: title, instead of the workload.

        Raises:
            AccelError: the run has no cycles, or its events were not recorded.
        """
        run = analyze_run(result, name)
        return cls(
            name=run_title(run),
            program=program_hash(result.image),
            config=result.config,
            overrides=dict(overrides or {}),
            seed=seed,
            figures=result.to_dict(),
            critical=result.known_path or (),
            traffic=tuple(one for one in dram_traffic(run) if one.moved),
            states=state_thousandths(run.activity),
        )

    @property
    def cycles(self) -> int:
        """Length of the run."""
        return int(self.figures["cycles"])

    def layer_of(self, cycle: int) -> Layer | None:
        """Return the layer of a cycle, if any."""
        return layer_at(self.layers, cycle)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, all or nothing.

        Raises:
            AccelError: the name does not end in ``.accelrun``.
            ProgramError: the file cannot be written.
        """
        target = check_run_path(path)
        tensors = list(dict.fromkeys(one.tensor for one in self.critical if one.tensor is not None))
        causes = list(dict.fromkeys(str(one.cause) for one in self.critical))
        units = [unit.label for unit in Unit]
        segments = np.array(
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
            dtype=SEGMENT,
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
            "traffic": [as_dict(one) for one in self.traffic],
            "units": units,
            "causes": causes,
            "tensors": tensors,
            "segments": len(segments),
            "parts": self.states.shape[1],
        } | ({"layers": [as_dict(one) for one in self.layers]} if self.layers else {})
        content = json.dumps(manifest).encode()
        members = [("critical.bin", segments.tobytes()), ("states.bin", self.states.astype(SHARE).tobytes())]
        buffer = io.BytesIO()
        write_archive(buffer, content, members)
        write_atomically(target, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file, and check every entry.

        Raises:
            ProgramError: the file cannot be read, is not a saved run, is damaged, or is of a newer version.
        """
        source, name = check_path("run", path), f"run {os.fspath(path)!r}"
        try:
            with open(source, "rb") as file:
                if not is_archive(file):
                    raise ProgramError(f"{name} is not a saved run; 'accel run --save' writes such files")
                return cls._read(name, file)
        except OSError as error:
            raise ProgramError(f"{name} cannot be read: {error.strerror}") from None

    @classmethod
    def _read(cls, name: str, file: IO[bytes]) -> Self:
        try:
            archive = Archive(file)
            data = archive.manifest()
            if not isinstance(data, dict) or data.get("format") != RUN_FORMAT:
                raise ProgramError("it is not the file of a run")
            version = read_entry(data, "version", int)
            if not 1 <= version <= VERSION:
                raise ProgramError(f"its format version is {version}; this release reads up to {VERSION}")
            run = cls(
                name=read_text(data, "name"),
                program=read_digest(data, "program"),
                config=from_dict(read_entry(data, "config", dict)),
                overrides=read_overrides(data),
                seed=read_seed(data),
                figures=read_figures(data),
                critical=read_critical_path(data, archive),
                traffic=read_traffic(data),
                states=read_states(data, archive, MAX_PARTS),
                layers=read_layers(data) if version > 1 else (),
            )
            if run.cycles != sum(one.cycles for one in run.critical):
                raise ProgramError(f"its critical path does not take the {run.cycles} cycles of its figures")
            if run.layers and run.cycles != sum(one.cycles or 0 for one in run.layers):
                raise ProgramError(f"its layers do not take the {run.cycles} cycles of its figures")
            return run
        except AccelError as error:
            raise ProgramError(f"{name}: {error}") from None
        except Exception as error:  # zipfile raises many kinds for damaged archives
            raise ProgramError(f"{name} is damaged: {damage(error)}") from None


def check_run_path(path: str | os.PathLike[str]) -> Path:
    target = check_path("run", path)
    if target.suffix != SUFFIX:
        raise AccelError(f"the run is to be saved to {os.fspath(path)!r}; the name must end in {SUFFIX}")
    return target


def program_hash(image: Image) -> str:
    """Return :attr:`SavedRun.program`."""
    digest = hashlib.sha256(image.code)
    for offset, content in image.segments:
        digest.update(f"{offset}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def state_thousandths(activity: Activity) -> npt.NDArray[np.uint16]:
    """Return :attr:`SavedRun.states`."""
    parts = min(MAX_PARTS, max(1, activity.cycles))
    shares = [state_shares(activity.spans[unit], 0, activity.cycles, parts) for unit in Unit]
    return np.rint(np.stack(shares) * 1000).astype(np.uint16)
