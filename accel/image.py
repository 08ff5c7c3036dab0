"""The program image and its file.

An image is all that a run needs: configuration, instructions, and what must lie in DRAM before it; with
the tensors' places and layouts, and, as data, where the program came from. Its file is a zip archive of
``program.json`` and the raw instructions and segments; the archive's checksums guard every byte. Nothing
in it is ever executed.
"""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from accel.config import INSTRUCTION_BYTES, Config, from_dict
from accel.dram import Dram
from accel.errors import AccelError, ProgramError
from accel.isa import Instruction, decode
from accel.layout import PackedLayout, Preparation

FORMAT = "accel-program"
FORMAT_VERSION = 1
"""Older files load, newer ones are refused."""

Role = Literal["input", "output", "constant"]
_MANIFEST = "program.json"
_INSTRUCTIONS = "instructions.bin"
_LARGEST_MANIFEST = 64 << 20


@dataclass(frozen=True, kw_only=True)
class ImageTensor:
    """A packed tensor in DRAM. An input that is used in two layouts stands twice.

    Attributes:
        offset: of its first byte from the start of the window.
        dtype: of its values in DRAM, ``int8`` or ``int32``.
        preparation: how the host changes the values of an int32 input before it packs them.
    """

    name: str
    role: Role
    dtype: str
    offset: int
    layout: PackedLayout
    preparation: Preparation | None = None

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.layout.packed, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role,
            "dtype": self.dtype,
            "offset": self.offset,
            "layout": self.layout.to_dict(),
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
        }

    def pack(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """The bytes of the tensor in DRAM.

        Raises:
            ShapeError: a value that the program cannot take.
        """
        if self.preparation is not None:
            values = self.preparation.apply(self.name, values)
        return array_bytes(self.layout.pack(values))

    def unpack(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """The plain values of the tensor's bytes in DRAM."""
        packed = raw.view(np.dtype(self.dtype).newbyteorder("<")).reshape(self.layout.packed)
        values = self.layout.unpack(packed)
        return values if self.preparation is None else self.preparation.undo(values)


@dataclass(frozen=True, kw_only=True)
class Image:
    """A compiled program.

    Attributes:
        config: geometry and timing it was compiled for; the timing may be replaced for a run.
        code: the instructions, 16 bytes each.
        code_offset: of the first instruction from the start of the window.
        segments: offset and content of what must lie in DRAM besides: micro-ops, packed constants.
        tensors: inputs, outputs and constants.
        source: tensor expression, schedule and options as data, or None if unknown.
        compile_seconds: what compilation took, or None if unknown.
    """

    config: Config
    code: bytes
    code_offset: int
    segments: tuple[tuple[int, bytes], ...] = ()
    tensors: tuple[ImageTensor, ...] = ()
    source: dict[str, Any] | None = None
    compile_seconds: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The decoded program."""
        return decode(self.code, self.config)

    @property
    def size(self) -> int:
        """Bytes of DRAM from the start of the window that the image occupies."""
        return max(stop for _, stop in self._spans())

    def with_timing(self, config: Config) -> Self:
        """The same program for a run with another timing."""
        values = {f: getattr(self, f) for f in self.__dataclass_fields__}
        return type(self)(**(values | {"config": config.with_geometry_of(self.config)}))

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
        memory.reserve((base + start, base + stop) for start, stop in self._spans() if start < stop)
        memory.write(base + self.code_offset, self.code)
        for offset, content in self.segments:
            memory.write(base + offset, content)
        return memory

    def _spans(self) -> Iterator[tuple[int, int]]:
        yield self.code_offset, self.code_offset + len(self.code)
        for offset, content in self.segments:
            yield offset, offset + len(content)
        for tensor in self.tensors:
            yield tensor.offset, tensor.offset + tensor.nbytes

    # --- file ------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the program file; on an error nothing is left behind.

        Raises:
            ProgramError: it cannot be written.
        """
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            _add(archive, _MANIFEST, json.dumps(self._manifest(), indent=1).encode())
            _add(archive, _INSTRUCTIONS, self.code)
            for number, (_, content) in enumerate(self.segments):
                _add(archive, _segment_name(number), content)
        write_atomically(Path(path), buffer.getvalue())

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "config": self.config.to_dict(),
            "code_offset": self.code_offset,
            "code_bytes": len(self.code),
            "segments": [{"offset": offset, "bytes": len(content)} for offset, content in self.segments],
            "tensors": [tensor.to_dict() for tensor in self.tensors],
            "source": self.source,
            "compile_seconds": self.compile_seconds,
            "notes": self.notes,
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a program file.

        Raises:
            ProgramError: it cannot be read, is damaged, no program file, or from a newer version.
        """
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise ProgramError(f"program {str(path)!r} cannot be read: {error.strerror}") from None
        try:
            return cls._from_bytes(raw)
        except ProgramError as error:
            raise ProgramError(f"program {str(path)!r}: {error}") from None
        except AccelError as error:
            raise ProgramError(f"program {str(path)!r} is damaged: {error}") from None
        except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile, OSError) as error:
            raise ProgramError(f"program {str(path)!r} is damaged or no program file: {error}") from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ProgramError(
                f"program {str(path)!r} is damaged: its manifest does not hold together ({what})"
            ) from None
        except (RuntimeError, RecursionError, MemoryError, OverflowError) as error:
            raise ProgramError(f"program {str(path)!r} is damaged: {error}") from None

    @classmethod
    def _from_bytes(cls, raw: bytes) -> Self:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            manifest = json.loads(_member(archive, _MANIFEST, _LARGEST_MANIFEST))
            if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
                raise ProgramError("it is an archive, but no program file")
            version = manifest["version"]
            if not isinstance(version, int) or version < 1:
                raise ProgramError(f"its format version is {version!r}; it must be 1 or more")
            if version > FORMAT_VERSION:
                raise ProgramError(
                    f"its format version is {version}; this release reads up to {FORMAT_VERSION}"
                )
            config = from_dict(manifest["config"])
            code = _sized_member(archive, _INSTRUCTIONS, manifest["code_bytes"], config)
            segments = tuple(
                (_offset(entry["offset"]), _sized_member(archive, _segment_name(n), entry["bytes"], config))
                for n, entry in enumerate(manifest["segments"])
            )
        source = manifest.get("source")
        image = cls(
            config=config,
            code=code,
            code_offset=_offset(manifest["code_offset"]),
            segments=segments,
            tensors=tuple(_tensor(entry) for entry in manifest["tensors"]),
            source=source if isinstance(source, dict) else None,
            compile_seconds=manifest.get("compile_seconds"),
            notes=dict(manifest.get("notes") or {}),
        )
        if image.code_offset % INSTRUCTION_BYTES or len(code) % INSTRUCTION_BYTES:
            raise ProgramError(f"its instructions are not aligned to {INSTRUCTION_BYTES} bytes")
        return image


def _segment_name(number: int) -> str:
    return f"segments/{number}.bin"


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise ProgramError(f"it has no {name}; it is no program file") from None
    if info.file_size > limit:
        raise ProgramError(f"its {name} has {info.file_size} bytes; at most {limit} are expected")
    return archive.read(info)


def _sized_member(archive: zipfile.ZipFile, name: str, size: Any, config: Config) -> bytes:
    content = _member(archive, name, config.mem_size)
    if len(content) != size:
        raise ProgramError(f"its {name} has {len(content)} bytes; the manifest says {size}")
    return content


def _offset(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ProgramError(f"an offset is {value!r}; it must be a non-negative integer")
    return value


def _tensor(entry: dict[str, Any]) -> ImageTensor:
    role, dtype = entry["role"], entry["dtype"]
    if role not in ("input", "output", "constant"):
        raise ProgramError(
            f"the role of tensor {entry['name']!r} is {role!r}; it must be input, output or constant"
        )
    if dtype not in ("int8", "int32"):
        raise ProgramError(f"the dtype of tensor {entry['name']!r} is {dtype!r}; it must be int8 or int32")
    preparation = entry.get("preparation")
    return ImageTensor(
        name=str(entry["name"]),
        role=role,
        dtype=dtype,
        offset=_offset(entry["offset"]),
        layout=PackedLayout.from_dict(entry["layout"]),
        preparation=None if preparation is None else Preparation.from_dict(preparation),
    )


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        ProgramError: it cannot be written.
    """
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise ProgramError(f"{str(path)!r} cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def array_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of a packed array as DRAM holds them, little-endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)
