"""The program image and its file, see docs/reference/program-file.md."""

import io
import json
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from accel.base.arguments import check_path
from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError, ProgramError
from accel.base.html_summary import Bar, html_summary
from accel.core.config import INSTRUCTION_BYTES, SPECS, Config, from_dict
from accel.core.isa import Instruction, check_encodable, decode
from accel.image.dram import Dram
from accel.image.dram_references import NUMBER_BYTES, References, numbers_to_bytes
from accel.image.image_tensor import ImageTensor, Region, read_region, read_tensor
from accel.image.manifest_entries import read_entry, read_object, read_offset, read_optional
from accel.image.program_source import PLAIN, Source
from accel.image.provenance import Provenance
from accel.image.test_scenario import Expected, Start, check_scenario
from accel.image.zip_archive import MAGIC, Archive, damage, is_archive, write_archive

__all__ = ["FORMAT", "FORMAT_VERSION", "Image", "ImageTensor", "Region", "check_image"]

FORMAT = "accel-program"
NETWORK_FORMAT = "accel-network"
"""For several programs and a graph."""
RUN_FORMAT = "accel-run"
"""For the figures of a run."""
MODEL_SUFFIXES = (".onnx", ".tflite")
"""Models of ``accel compile onnx``."""
FORMAT_VERSION = 3
"""Programs have the oldest possible version."""


def format_version(config: Config, tensors: Iterable[ImageTensor] = ()) -> int:
    """Return 3 with a view of a tensor, else 2 for ``post=1``, else 1."""
    if any(tensor.view is not None for tensor in tensors):
        return 3
    return 2 if config.post else 1


_INSTRUCTIONS = "instructions.bin"
_REFERENCES = "references.bin"
_PROVENANCE = "provenance.bin"


def is_network(path: str | Path) -> bool:
    """Whether a readable file contains a compiled network."""
    try:
        with open(path, "rb") as file:
            if not is_archive(file) or not file.seekable():
                return False
            manifest = Archive(file).manifest()
    except Exception:  # readers of programs report the error
        return False
    return isinstance(manifest, dict) and manifest.get("format") == NETWORK_FORMAT


@dataclass(frozen=True, kw_only=True)
class Image:
    """A compiled program.

    Attributes:
        config: its timing may be replaced for a run.
        code_offset: offset of the first instruction in the window.
        segments: offsets and contents of micro-ops and packed constants.
        start: initial state, except DRAM.
        expected: results of a test program.
        compile_seconds: if known. Only files of older releases have it.
        references: DRAM part of each instruction, if known.
        provenance: origin of each instruction, if known.
    """

    config: Config
    code: bytes
    code_offset: int
    segments: tuple[tuple[int, bytes], ...] = ()
    tensors: tuple[ImageTensor, ...] = ()
    regions: tuple[Region, ...] = ()
    start: Start = field(default_factory=Start)
    expected: Expected | None = None
    source: Source | None = None
    compile_seconds: float | None = field(default=None, compare=False)
    notes: dict[str, Any] = field(default_factory=dict)
    references: References | None = None
    provenance: Provenance | None = None

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The decoded program."""
        return decode(self.code, self.config)

    @property
    def size(self) -> int:
        """Bytes of DRAM, from the window's start."""
        return max(stop for _, stop in self.spans())

    @property
    def mapping(self) -> str:
        """The name of the mapping."""
        return PLAIN if self.source is None or self.source.mapped is None else self.source.mapped.name

    @property
    def packed_bytes(self) -> int:
        """Bytes of packed inputs."""
        return sum(tensor.nbytes for tensor in self.tensors if tensor.role == "input")

    @property
    def packing_factor(self) -> float | None:
        """Packed bytes per byte of the inputs: more than 1 with filled elements or repeated data."""
        inputs = {tensor.name: tensor for tensor in self.tensors if tensor.role == "input"}.values()
        given = sum(math.prod(one.shape) * np.dtype(one.dtype).itemsize for one in inputs)
        return self.packed_bytes / given if given else None

    def with_timing(self, config: Config) -> Self:
        """Return the program with another timing.

        Raises:
            ProgramError: initial state or expectations do not fit.
        """
        values = {f: getattr(self, f) for f in self.__dataclass_fields__}
        changed = type(self)(**(values | {"config": config.with_geometry_of(self.config)}))
        changed.check_scenario()
        return changed

    def check_scenario(self) -> None:
        """Raise a ProgramError if initial state or expectations do not fit."""
        check_scenario(self.start, self.expected, self.config, len(self.code) // INSTRUCTION_BYTES)

    def dram(self) -> Dram:
        """Return a new window with instructions, micro-ops and constants.

        Raises:
            ProgramError: the window is too small.
        """
        if self.size > self.config.mem_size:
            raise ProgramError(
                f"the program occupies {self.size} bytes of DRAM; "
                f"the window has mem_size={self.config.mem_size}"
            )
        memory = Dram.of(self.config)
        base = self.config.mem_base
        memory.reserve((base + start, base + stop) for start, stop in self.spans() if start < stop)
        memory.write(base + self.code_offset, self.code)
        for offset, content in self.segments:
            memory.write(base + offset, content)
        return memory

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield start and stop of everything in the window."""
        yield self.code_offset, self.code_offset + len(self.code)
        for offset, content in self.segments:
            yield offset, offset + len(content)
        for tensor in self.tensors:
            yield tensor.offset, tensor.offset + tensor.nbytes
        for region in self.regions:
            yield region.offset, region.offset + region.nbytes

    @property
    def passes_off(self) -> tuple[str, ...]:
        """Disabled reorder passes."""
        options = None if self.source is None else self.source.options
        return () if options is None else options.without

    def __repr__(self) -> str:
        options = None if self.source is None else self.source.options
        workload = None if options is None else options.workload
        tensors = ", ".join(f"{t.role} {t.name} {t.dtype}{list(t.shape)}" for t in self.tensors)
        return (
            f"{type(self).__name__}({'' if workload is None else f'{workload} '}for {self.config.label}, "
            f"{len(self.code) // INSTRUCTION_BYTES} instructions, {self.size} bytes of DRAM"
            f"{f'; {tensors}' if tensors else ''})"
        )

    def _repr_html_(self) -> str:
        options = None if self.source is None else self.source.options
        workload = None if options is None else options.workload
        rows = [("machine", self.config.label)]
        if workload is not None:
            rows.append(("workload", str(workload)))
        rows.append(("instructions", f"{len(self.instructions):,}"))
        rows.append(("bytes of DRAM", f"{self.size:,}"))
        rows += [(f"{t.role} {t.name}", f"{t.dtype}{list(t.shape)}") for t in self.tensors]
        counts = Counter(one.unit.label for one in self.instructions)
        total = max(1, len(self.instructions))
        bars = [Bar(unit, n / total, f"{n:,} instructions") for unit, n in counts.most_common()]
        return html_summary(type(self).__name__, rows, bars)

    def save(self, path: str | Path) -> None:
        """Write the program file, all or nothing.

        Raises:
            ProgramError: the file cannot be written.
        """
        target = check_path("program", path)
        buffer = io.BytesIO()
        manifest, members = self.contents()
        write_archive(buffer, json.dumps(manifest, indent=1).encode(), members)
        write_atomically(target, buffer.getvalue())

    def contents(self) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
        """Return manifest and members."""
        members = [(_INSTRUCTIONS, self.code)]
        members += [(_segment_name(number), content) for number, (_, content) in enumerate(self.segments)]
        if self.references is not None:
            members.append((_REFERENCES, numbers_to_bytes(self.references.of)))
        if self.provenance is not None:
            members.append((_PROVENANCE, numbers_to_bytes(self.provenance.of)))
        return self._manifest(), members

    def _manifest(self) -> dict[str, Any]:
        tables = {"references": self.references, "provenance": self.provenance}
        return {
            "format": FORMAT,
            "version": format_version(self.config, self.tensors),
            "config": self.config.to_dict(),
            "code_offset": self.code_offset,
            "code_bytes": len(self.code),
            "segments": [{"offset": offset, "bytes": len(content)} for offset, content in self.segments],
            "tensors": [tensor.to_dict() for tensor in self.tensors],
            "regions": [region.to_dict() for region in self.regions],
            "start": self.start.to_dict(),
            "expected": None if self.expected is None else self.expected.to_dict(),
            "source": None if self.source is None else self.source.to_data(),
            "notes": self.notes,
            **{name: table.to_data() for name, table in tables.items() if table is not None},
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a program file.

        Raises:
            ProgramError: the file is unreadable, damaged, newer, or no program file.
        """
        source = check_path("program", path)
        name = f"program {str(path)!r}"
        try:
            with open(source, "rb") as file:
                if not is_archive(file):
                    maker = "compile onnx" if source.suffix in MODEL_SUFFIXES else "compile"
                    raise ProgramError(f"{name} is not a program file; 'accel {maker}' writes such files")
                return cls._read(name, file if file.seekable() else io.BytesIO(MAGIC + file.read()))
        except OSError as error:
            raise ProgramError(f"{name} cannot be read: {error.strerror}") from None

    @classmethod
    def _read(cls, name: str, file: IO[bytes]) -> Self:
        try:
            return cls._parse(file)
        except AccelError as error:
            raise ProgramError(f"{name}: {error}") from None
        except Exception as error:  # damaged data raise many types
            raise ProgramError(f"{name} is damaged: {damage(error)}") from None

    @classmethod
    def _parse(cls, file: IO[bytes]) -> Self:
        archive = Archive(file)
        return cls.from_contents(archive.manifest(), archive)

    @classmethod
    def from_contents(cls, manifest: Any, archive: Archive, prefix: str = "") -> Self:
        """Invert :meth:`contents`.

        Args:
            prefix: before each member's name.

        Raises:
            ProgramError: a missing, damaged or newer part.
        """
        version = _checked_version(manifest)
        config = _config(read_entry(manifest, "config", dict))
        if version < format_version(config):
            raise ProgramError(
                f"its format version is {version}; a program for post={config.post} has "
                f"version {format_version(config)}"
            )
        tensors = tuple(map(read_tensor, read_entry(manifest, "tensors", list)))
        if version < format_version(config, tensors):
            raise ProgramError(f"its format version is {version}; one with views has version 3")
        code = archive.member(
            prefix + _INSTRUCTIONS, read_entry(manifest, "code_bytes", int), config.mem_size
        )
        segments = tuple(
            (
                read_offset(entry),
                archive.member(prefix + _segment_name(n), read_entry(entry, "bytes", int), config.mem_size),
            )
            for n, entry in enumerate(read_entry(manifest, "segments", list))
        )
        numbers = len(code) // INSTRUCTION_BYTES * NUMBER_BYTES
        references = None
        if "references" in manifest:
            table = archive.member(prefix + _REFERENCES, numbers, numbers)
            references = References.from_data(manifest["references"], table)
        provenance = None
        if "provenance" in manifest:
            table = archive.member(prefix + _PROVENANCE, numbers, numbers)
            provenance = Provenance.from_data(manifest["provenance"], table)
        image = cls(
            config=config,
            code=code,
            code_offset=read_offset(manifest, "code_offset"),
            segments=segments,
            tensors=tensors,
            regions=tuple(map(read_region, read_optional(manifest, "regions", list) or [])),
            start=read_object(manifest, "start", Start.from_dict) or Start(),
            expected=read_object(manifest, "expected", Expected.from_dict),
            source=read_object(manifest, "source", Source.from_data),
            compile_seconds=_seconds(manifest.get("compile_seconds")),
            notes=read_optional(manifest, "notes", dict) or {},
            references=references,
            provenance=provenance,
        )
        check_image(image)
        return image


def _checked_version(manifest: Any) -> int:
    if isinstance(manifest, dict) and manifest.get("format") == NETWORK_FORMAT:
        raise ProgramError("it holds a network; 'accel run' and 'accel show' take it")
    if isinstance(manifest, dict) and manifest.get("format") == RUN_FORMAT:
        raise ProgramError("it holds what a run took; 'accel diff' compares it with another run")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ProgramError("it is an archive, but no program file")
    version = read_entry(manifest, "version", int)
    if version < 1:
        raise ProgramError(f"its format version is {version}; versions start at 1")
    if version > FORMAT_VERSION:
        raise ProgramError(
            f"its format version is {version}; this release reads up to {FORMAT_VERSION}, "
            f"so a newer release of accel is needed"
        )
    return version


def _config(data: dict[str, Any]) -> Config:
    """Fields unknown to an older release have defaults."""
    for name, spec in SPECS.items():
        if spec.kind == "geometry" and (data.get("post") or not spec.post) and not spec.optional:
            read_entry(data, name, int)
    config = from_dict(data)
    check_encodable(config)
    return config


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float) and 0 <= value < math.inf:
        return float(value)
    raise ProgramError(f"compile_seconds is {reprlib.repr(value)} in its manifest; it must be a duration")


def check_image(image: Image) -> None:
    """Raise a ProgramError for parts that do not fit together."""
    if image.code_offset % INSTRUCTION_BYTES or len(image.code) % INSTRUCTION_BYTES:
        raise ProgramError(f"its instructions are not aligned to {INSTRUCTION_BYTES} bytes")
    window = image.config.mem_size
    if image.size > window:
        raise ProgramError(f"it occupies {image.size} bytes of DRAM; its window has {window}")
    code_end = image.code_offset + len(image.code)
    for offset, content in image.segments:
        if max(offset, image.code_offset) < min(offset + len(content), code_end):
            raise ProgramError(f"its data at {offset:#x} overlaps its instructions at {image.code_offset:#x}")
    if image.references is not None:
        image.references.check(len(image.code) // INSTRUCTION_BYTES, window)
    if image.provenance is not None:
        image.provenance.check(len(image.code) // INSTRUCTION_BYTES)
    image.check_scenario()
    segments = {offset: len(content) for offset, content in image.segments}
    known: dict[str, tuple[object, ...]] = {}
    for tensor in image.tensors:
        arrays = [tensor.layout.extents, *([] if tensor.view is None else [tensor.view.extents])]
        plain = max(map(math.prod, arrays)) * np.dtype(tensor.dtype).itemsize
        if plain > window:
            raise ProgramError(f"tensor {tensor.name!r} takes {plain} bytes; the DRAM window has {window}")
        if tensor.role == "constant" and segments.get(tensor.offset) != tensor.nbytes:
            raise ProgramError(f"it does not hold the {tensor.nbytes} bytes of constant {tensor.name!r}")
        apart = tensor.view is None or tensor.role != "output" or tensor.view.is_one_to_one
        if tensor.role == "output" and (tensor.layout.repeats or tensor.name in known or not apart):
            raise ProgramError(f"output {tensor.name!r} stands in DRAM more than once")
        kind = (tensor.role, tensor.dtype, tensor.shape)
        if known.setdefault(tensor.name, kind) != kind:
            raise ProgramError(f"tensor {tensor.name!r} stands twice, as {known[tensor.name]} and as {kind}")


def _segment_name(number: int) -> str:
    return f"segments/{number}.bin"
