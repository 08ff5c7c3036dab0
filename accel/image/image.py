"""The program image and its file.

An image is all that a run needs: configuration, instructions, and what must lie in DRAM before it; with
the tensors' places and layouts, and, as data, where the program came from. Its file is a zip archive of
``program.json`` and the raw instructions and segments; the archive's checksums guard every byte. Nothing
in it is ever executed. Optional parts, which older releases pass over: which part of DRAM each instruction
means (``references`` and ``references.bin``, :mod:`accel.image.references`), and where it comes from
(``provenance`` and ``provenance.bin``, :mod:`accel.image.provenance`).
"""

import io
import json
import math
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_path
from accel.base.errors import AccelError, ProgramError
from accel.base.files import write_atomically
from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, SPECS, Config, from_dict
from accel.core.faults import dram_span, instruction_fault
from accel.core.isa import Instruction, Transfer, check_encodable, decode
from accel.image.archive import Archive, write_archive
from accel.image.dram import Dram
from accel.image.layout import BlockDiagonal, PackedLayout, Preparation
from accel.image.provenance import Provenance
from accel.image.references import NUMBER_BYTES, References, numbers_to_bytes
from accel.image.scenario import Expected, Start, check_scenario
from accel.image.source import Source

FORMAT = "accel-program"
FORMAT_VERSION = 1
"""Older files load, newer ones are refused."""

Role = Literal["input", "output", "constant"]
_INSTRUCTIONS = "instructions.bin"
_REFERENCES = "references.bin"
_PROVENANCE = "provenance.bin"
_MAGIC = b"PK\x03\x04"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ImageTensor:
    """A packed tensor in DRAM. An input that is used in two layouts stands twice.

    Attributes:
        offset: of its first byte from the start of the window.
        dtype: of its values in DRAM, ``int8`` or ``int32``.
        layout: of the packed tensor; of a widened one its plain array is the wide one.
        preparation: how the host changes the values of an int32 input before it packs them.
        widening: how the host widens an input before it packs it.
    """

    name: str
    role: Role
    dtype: str
    offset: int
    layout: PackedLayout
    preparation: Preparation | None = None
    widening: BlockDiagonal | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor as users know it."""
        return self.layout.shape if self.widening is None else self.widening.narrow_shape(self.layout.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.layout.packed) * np.dtype(self.dtype).itemsize

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role,
            "dtype": self.dtype,
            "offset": self.offset,
            "layout": self.layout.to_dict(),
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "widening": None if self.widening is None else self.widening.to_dict(),
        }

    def pack(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """The bytes of the tensor in DRAM.

        Raises:
            ShapeError: a value that the program cannot take.
        """
        if self.preparation is not None:
            values = self.preparation.apply(self.name, values)
        if self.widening is not None:
            values = self.widening.widen(values)
        return array_bytes(self.layout.pack(values))

    def unpack(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """The plain values of the tensor's bytes in DRAM."""
        packed = raw.view(np.dtype(self.dtype).newbyteorder("<")).reshape(self.layout.packed)
        values = self.layout.unpack(packed)
        if self.widening is not None:
            values = self.widening.narrow(values)
        return values if self.preparation is None else self.preparation.undo(values)


@dataclass(frozen=True, kw_only=True)
class Region:
    """A named part of DRAM; ``offset`` counts from the start of the window."""

    name: str
    offset: int
    nbytes: int

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "offset": self.offset, "bytes": self.nbytes}


@dataclass(frozen=True, kw_only=True)
class Image:
    """A compiled program.

    Attributes:
        config: geometry and timing it was compiled for; the timing may be replaced for a run.
        code: the instructions, 16 bytes each.
        code_offset: of the first instruction from the start of the window.
        segments: offset and content of what must lie in DRAM besides: micro-ops, packed constants.
        tensors: inputs, outputs and constants.
        regions: parts of DRAM that have names and are no tensors.
        start: what a run starts from besides DRAM.
        expected: what must come of a run, if the program is a test.
        source: what it was compiled from, or None if unknown.
        compile_seconds: what compilation took, or None if unknown.
        references: which part of DRAM each instruction means, or None if only its address is known.
        provenance: where each instruction comes from, or None if that is not known.
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
    compile_seconds: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    references: References | None = None
    provenance: Provenance | None = None

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The decoded program."""
        return decode(self.code, self.config)

    @property
    def size(self) -> int:
        """Bytes of DRAM from the start of the window that the image occupies."""
        return max(stop for _, stop in self.spans())

    def with_timing(self, config: Config) -> Self:
        """The same program for a run with another timing.

        Raises:
            ProgramError: what it starts from or expects does not fit.
        """
        values = {f: getattr(self, f) for f in self.__dataclass_fields__}
        changed = type(self)(**(values | {"config": config.with_geometry_of(self.config)}))
        changed.check_scenario()
        return changed

    def check_scenario(self) -> None:
        """Refuse what the program starts from or expects where it does not fit.

        Raises:
            ProgramError: naming what does not fit.
        """
        check_scenario(self.start, self.expected, self.config, len(self.code) // INSTRUCTION_BYTES)

    def dram(self) -> Dram:
        """A fresh DRAM window that holds instructions, micro-ops and constants.

        Raises:
            ProgramError: the configured window is too small for the image.
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
        """Start and stop of everything that has a place in DRAM, from the start of the window."""
        yield self.code_offset, self.code_offset + len(self.code)
        for offset, content in self.segments:
            yield offset, offset + len(content)
        for tensor in self.tensors:
            yield tensor.offset, tensor.offset + tensor.nbytes
        for region in self.regions:
            yield region.offset, region.offset + region.nbytes

    def __repr__(self) -> str:
        """What it is in a line; the content is in its attributes."""
        options = None if self.source is None else self.source.options
        workload = None if options is None else options.workload
        tensors = ", ".join(f"{t.role} {t.name} {t.dtype}{list(t.shape)}" for t in self.tensors)
        return (
            f"{type(self).__name__}({'' if workload is None else f'{workload} '}for {self.config.label}, "
            f"{len(self.code) // INSTRUCTION_BYTES} instructions, {self.size} bytes of DRAM"
            f"{f'; {tensors}' if tensors else ''})"
        )

    # --- file ------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the program file; on an error nothing is left behind.

        Raises:
            ProgramError: it cannot be written.
        """
        target = check_path("program", path)
        buffer = io.BytesIO()
        members = [(_INSTRUCTIONS, self.code)]
        members += [(_segment_name(number), content) for number, (_, content) in enumerate(self.segments)]
        if self.references is not None:
            members.append((_REFERENCES, numbers_to_bytes(self.references.of)))
        if self.provenance is not None:
            members.append((_PROVENANCE, numbers_to_bytes(self.provenance.of)))
        write_archive(buffer, json.dumps(self._manifest(), indent=1).encode(), members)
        write_atomically(target, buffer.getvalue())

    def _manifest(self) -> dict[str, Any]:
        tables = {"references": self.references, "provenance": self.provenance}
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "config": self.config.to_dict(),
            "code_offset": self.code_offset,
            "code_bytes": len(self.code),
            "segments": [{"offset": offset, "bytes": len(content)} for offset, content in self.segments],
            "tensors": [tensor.to_dict() for tensor in self.tensors],
            "regions": [region.to_dict() for region in self.regions],
            "start": self.start.to_dict(),
            "expected": None if self.expected is None else self.expected.to_dict(),
            "source": None if self.source is None else self.source.to_data(),
            "compile_seconds": self.compile_seconds,
            "notes": self.notes,
            **{name: table.to_data() for name, table in tables.items() if table is not None},
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a program file.

        Raises:
            ProgramError: it cannot be read, is damaged, no program file, or from a newer version.
        """
        source = check_path("program", path)
        name = f"program {str(path)!r}"
        try:
            with open(source, "rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    raise ProgramError(f"{name} is no program file; 'accel compile' writes such files")
                return cls._read(name, file if file.seekable() else io.BytesIO(_MAGIC + file.read()))
        except OSError as error:
            raise ProgramError(f"{name} cannot be read: {error.strerror}") from None

    @classmethod
    def _read(cls, name: str, file: IO[bytes]) -> Self:
        try:
            return cls._parse(file)
        except AccelError as error:
            raise ProgramError(f"{name}: {error}") from None
        except Exception as error:  # zipfile, zlib and json fail at damaged data in too many ways to list
            raise ProgramError(f"{name} is damaged: {error or type(error).__name__}") from None

    @classmethod
    def _parse(cls, file: IO[bytes]) -> Self:
        archive = Archive(file)
        manifest = archive.manifest()
        _check_format(manifest)
        config = _config(_entry(manifest, "config", dict))
        code = archive.member(_INSTRUCTIONS, _entry(manifest, "code_bytes", int), config.mem_size)
        segments = tuple(
            (
                _offset(entry),
                archive.member(_segment_name(n), _entry(entry, "bytes", int), config.mem_size),
            )
            for n, entry in enumerate(_entry(manifest, "segments", list))
        )
        numbers = len(code) // INSTRUCTION_BYTES * NUMBER_BYTES
        references = None
        if "references" in manifest:
            table = archive.member(_REFERENCES, numbers, numbers)
            references = References.from_data(manifest["references"], table)
        provenance = None
        if "provenance" in manifest:
            table = archive.member(_PROVENANCE, numbers, numbers)
            provenance = Provenance.from_data(manifest["provenance"], table)
        image = cls(
            config=config,
            code=code,
            code_offset=_offset(manifest, "code_offset"),
            segments=segments,
            tensors=tuple(map(read_tensor, _entry(manifest, "tensors", list))),
            regions=tuple(map(_region, _optional(manifest, "regions", list) or [])),
            start=Start()
            if manifest.get("start") is None
            else Start.from_dict(_entry(manifest, "start", dict)),
            expected=None
            if manifest.get("expected") is None
            else Expected.from_dict(_entry(manifest, "expected", dict)),
            source=None
            if manifest.get("source") is None
            else Source.from_data(_entry(manifest, "source", dict)),
            compile_seconds=_seconds(manifest.get("compile_seconds")),
            notes=_optional(manifest, "notes", dict) or {},
            references=references,
            provenance=provenance,
        )
        check_image(image)
        return image


# --- reading, with every value checked ------------------------------------------------------------


def _entry(data: Any, key: str, kind: type[T]) -> T:
    """A value of the manifest, of the type that it must have."""
    if not isinstance(data, dict) or key not in data:
        raise ProgramError(f"its manifest has no {key!r} where one is needed")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ProgramError(
            f"{key} is {reprlib.repr(value)} in its manifest; it must be of type {kind.__name__}"
        )
    return value


def _optional(data: Any, key: str, kind: type[T]) -> T | None:
    return None if data.get(key) is None else _entry(data, key, kind)


def _check_format(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ProgramError("it is an archive, but no program file")
    version = _entry(manifest, "version", int)
    if version < 1:
        raise ProgramError(f"its format version is {version}; versions start at 1")
    if version > FORMAT_VERSION:
        raise ProgramError(
            f"its format version is {version}; this release reads up to {FORMAT_VERSION}, "
            f"so a newer release of accel is needed"
        )


def _config(data: dict[str, Any]) -> Config:
    """The configuration; timing fields that an older release did not have take their defaults."""
    for name, spec in SPECS.items():
        if spec.kind == "geometry":
            _entry(data, name, int)
    config = from_dict(data)
    check_encodable(config)
    return config


def _offset(data: Any, key: str = "offset") -> int:
    value = _entry(data, key, int)
    if value < 0:
        raise ProgramError(f"{key} is {value} in its manifest; it must not be negative")
    return value


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float) and 0 <= value < math.inf:
        return float(value)
    raise ProgramError(f"compile_seconds is {reprlib.repr(value)} in its manifest; it must be a duration")


def _region(data: Any) -> Region:
    name, nbytes = _entry(data, "name", str), _entry(data, "bytes", int)
    if not name.isidentifier():
        raise ProgramError(f"the name of a region is {reprlib.repr(name)}; it must be an identifier")
    if nbytes < 0:
        raise ProgramError(
            f"region {name!r} has {nbytes} bytes in its manifest; it cannot have less than none"
        )
    return Region(name=name, offset=_offset(data), nbytes=nbytes)


def read_tensor(data: Any) -> ImageTensor:
    """A tensor from what its ``to_dict`` gives.

    Raises:
        ProgramError: a value is missing, of the wrong type or out of range.
    """
    name, role, dtype = (_entry(data, key, str) for key in ("name", "role", "dtype"))
    if not name.isidentifier():
        raise ProgramError(f"the name of a tensor is {reprlib.repr(name)}; it must be an identifier")
    if role not in ("input", "output", "constant"):
        raise ProgramError(f"the role of tensor {name!r} is {role!r}; it must be input, output or constant")
    if dtype not in ("int8", "int32"):
        raise ProgramError(f"the dtype of tensor {name!r} is {dtype!r}; it must be int8 or int32")
    preparation, widening = (_optional(data, key, dict) for key in ("preparation", "widening"))
    tensor = ImageTensor(
        name=name,
        role=cast(Role, role),
        dtype=dtype,
        offset=_offset(data),
        layout=PackedLayout.from_dict(_entry(data, "layout", dict)),
        preparation=None if preparation is None else _preparation(name, dtype, preparation),
        widening=None
        if widening is None
        else BlockDiagonal(rows=_entry(widening, "rows", int), merged=_entry(widening, "merged", int)),
    )
    if widening is not None and role == "output":
        raise ProgramError(f"output {name!r} is widened; only what is packed before a run can be")
    return tensor


def _preparation(name: str, dtype: str, data: dict[str, Any]) -> Preparation:
    ranges = {key: _entry(data, key, list) for key in ("accepted", "bounds")}
    numbers = [*ranges["accepted"], *ranges["bounds"], _entry(data, "offset", int)]
    if (
        dtype != "int32"
        or list(map(len, ranges.values())) != [2, 2]
        or any(type(n) is not int for n in numbers)
    ):
        raise ProgramError(f"the preparation of tensor {name!r} does not hold together")
    return Preparation.from_dict(data)


def check_image(image: Image) -> None:
    """Refuse parts that do not fit together.

    Raises:
        ProgramError: naming what does not fit.
    """
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
        plain = math.prod(tensor.layout.extents) * np.dtype(tensor.dtype).itemsize
        if plain > window:
            raise ProgramError(f"tensor {tensor.name!r} takes {plain} bytes; the DRAM window has {window}")
        if tensor.role == "constant" and segments.get(tensor.offset) != tensor.nbytes:
            raise ProgramError(f"it does not hold the {tensor.nbytes} bytes of constant {tensor.name!r}")
        if tensor.role == "output" and (tensor.layout.repeats or tensor.name in known):
            raise ProgramError(f"output {tensor.name!r} stands in DRAM more than once")
        kind = (tensor.role, tensor.dtype, tensor.shape)
        if known.setdefault(tensor.name, kind) != kind:
            raise ProgramError(f"tensor {tensor.name!r} stands twice, as {known[tensor.name]} and as {kind}")


def free_address(
    config: Config,
    instructions: Iterable[Instruction],
    used: Iterable[tuple[int, int]],
    nbytes: int,
    name: str,
) -> int:
    """Where instructions can be put: the first page from which on nothing is used.

    What the program only reads counts as used too: it is zero, and must stay so.

    Args:
        config: the window.
        instructions: the program.
        used: start and stop of other bytes in use, from the start of the window.
        nbytes: of the instructions.
        name: of the program in errors.

    Raises:
        ProgramError: there is no room.
    """
    base = config.mem_base
    taken = [(base + start, base + stop) for start, stop in used]
    taken += [
        dram_span(one, config)
        for one in instructions
        if isinstance(one, Transfer) and one.x_size and instruction_fault(one, config) is None
    ]
    address = base
    for start, stop in sorted(taken):
        if start >= address + nbytes:
            break
        address = max(address, -(-stop // PAGE_BYTES) * PAGE_BYTES)
    if address + nbytes > base + config.mem_size:
        raise ProgramError(f"{name} leaves no room for its instructions in the DRAM window")
    return address


def _segment_name(number: int) -> str:
    return f"segments/{number}.bin"


def array_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of a packed array as DRAM holds them, little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)
