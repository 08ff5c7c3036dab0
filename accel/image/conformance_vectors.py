"""Conformance vectors: programs of other VTA compilers, with memory before and after.

A vector is a folder of ``config.json`` (VTA's keys), ``insn.bin``, ``dram_before.npz`` (``addr`` uint64[n] of
4096-byte pages, ``data`` uint8[n, 4096]) and ``expect.npz`` (``addr``, ``length`` uint64[m], ``data``
uint8[sum(length)]: bytes after the run). A ``meta.json`` may list ``tensors`` with ``name``, ``shape``,
``dtype`` and address ``phys``.
"""

import io
import json
import math
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.core.config import PAGE_BYTES, Config, load_config
from accel.core.isa import decode
from accel.image.address_allocation import free_address
from accel.image.image import Image, Region
from accel.image.test_scenario import Expected
from accel.image.zip_archive import Archive, damage, is_archive

_CONFIG = "config.json"
_INSTRUCTIONS = "insn.bin"
_BEFORE = "dram_before.npz"
_AFTER = "expect.npz"
_META = "meta.json"
FILES = (_CONFIG, _INSTRUCTIONS, _BEFORE, _AFTER, _META)
_LARGEST_META = 1 << 20

Content = npt.NDArray[np.uint8]


def is_vector(folder: Path) -> bool:
    return (folder / _INSTRUCTIONS).is_file()


def load_vector(path: str | Path) -> Image:
    """Read a vector's folder. Instructions lie in the first unused pages."""
    folder = Path(path)
    try:
        return _read(folder)
    except ProgramError as error:
        raise ProgramError(f"vector {str(folder)!r}: {error}") from None


def _read(folder: Path) -> Image:
    config = load_config(folder / _CONFIG)
    try:
        code = (folder / _INSTRUCTIONS).read_bytes()
    except OSError as error:
        raise ProgramError(f"{_INSTRUCTIONS} cannot be read: {error.strerror}") from None
    instructions = decode(code, config)
    before = _arrays(folder, _BEFORE, {"addr": (1, "u8"), "data": (2, "u1")})
    after = _arrays(folder, _AFTER, {"addr": (1, "u8"), "length": (1, "u8"), "data": (1, "u1")})
    if before["data"].shape != (len(before["addr"]), PAGE_BYTES):
        raise ProgramError(
            f"{_BEFORE} has data of shape {before['data'].shape}; "
            f"it must be {(len(before['addr']), PAGE_BYTES)}, one row for each addr"
        )
    odd = before["addr"][before["addr"] % PAGE_BYTES != 0].tolist()
    if odd:
        raise ProgramError(f"{_BEFORE} has a page at {odd[0]:#x}; addr must hold multiples of {PAGE_BYTES}")
    lengths = after["length"].tolist()
    if len(lengths) != len(after["addr"]) or sum(lengths) != len(after["data"]):
        raise ProgramError(
            f"{_AFTER} has {len(after['addr'])} addr, {len(lengths)} length and {len(after['data'])} "
            f"data; it must have one length for each addr, which add up to data's bytes"
        )
    ends = np.cumsum([0, *lengths]).tolist()
    regions = [after["data"][a:b] for a, b in pairwise(ends)]
    pages = _in_window(zip(before["addr"].tolist(), before["data"], strict=True), config)
    expected = _in_window(zip(after["addr"].tolist(), regions, strict=True), config)
    used = [(offset, offset + len(content)) for offset, content in (*pages, *expected)]
    address = free_address(config, instructions, used, len(code), "it")
    return Image(
        config=config,
        code=code,
        code_offset=address - config.mem_base,
        segments=_joined(pages),
        regions=tuple(_regions(folder / _META, config)),
        expected=Expected(memory=tuple(expected)),
    )


def _in_window(parts: Iterable[tuple[int, Content]], config: Config) -> list[tuple[int, bytes]]:
    found = []
    for address, content in parts:
        if not config.mem_base <= address <= config.mem_base + config.mem_size - content.size:
            raise ProgramError(
                f"it has {content.size} bytes at {address:#x}; the DRAM window is "
                f"{config.mem_base:#x}..{config.mem_base + config.mem_size - 1:#x}"
            )
        found.append((address - config.mem_base, content.tobytes()))
    return found


def _joined(pages: list[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """Merge consecutive pages. Of repeated pages the last one counts."""
    joined: list[tuple[int, list[bytes]]] = []
    for offset, content in sorted(dict(pages).items()):
        if joined and joined[-1][0] + sum(map(len, joined[-1][1])) == offset:
            joined[-1][1].append(content)
        else:
            joined.append((offset, [content]))
    return tuple((offset, b"".join(parts)) for offset, parts in joined)


def _regions(path: Path, config: Config) -> Iterable[Region]:
    """Skip malformed entries of ``meta.json``."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.loads(file.read(_LARGEST_META))
        tensors = data.get("tensors", []) if isinstance(data, dict) else []
    except (OSError, ValueError, RecursionError):
        return
    seen = set()
    for one in tensors if isinstance(tensors, list) else []:
        region = _region(one, config)
        if region is not None and region.name not in seen:
            seen.add(region.name)
            yield region


def _region(data: Any, config: Config) -> Region | None:
    try:
        name, shape, address = data["name"], data["shape"], data["phys"]
        nbytes = math.prod(shape) * np.dtype(data["dtype"]).itemsize
        if not all(isinstance(value, int) for value in (address, nbytes)) or not name.isidentifier():
            return None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    offset = address - config.mem_base
    fits = 0 <= offset < offset + nbytes <= config.mem_size
    return Region(name=name, offset=offset, nbytes=nbytes) if fits else None


def _array(archive: Archive, member: str) -> npt.NDArray[Any]:
    file = io.BytesIO(archive.content(member))
    try:
        found: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{member} in it is not an array of numbers: {error}") from None
    if file.read(1):
        raise ValueError(f"{member} in it is longer than its array")
    return found


def _arrays(folder: Path, name: str, wanted: dict[str, tuple[int, str]]) -> dict[str, npt.NDArray[Any]]:
    """Read arrays with the wanted dimensions and dtypes, without pickle."""
    try:
        with open(folder / name, "rb") as file:
            if not is_archive(file):
                raise ProgramError("it is no .npz file; numpy.savez writes what is needed")
            archive = Archive(file)
            members = {key: f"{key}.npy" for key in wanted if f"{key}.npy" in archive}
            found = {key: _array(archive, member) for key, member in members.items()}
    except OSError as error:
        raise ProgramError(f"{name} cannot be read: {error.strerror or error}") from None
    except ProgramError as error:
        raise ProgramError(f"{name}: {error}") from None
    except Exception as error:  # damaged data raise many types
        raise ProgramError(f"{name} is damaged: {damage(error)}") from None
    for key, (dimensions, dtype) in wanted.items():
        if key not in found:
            raise ProgramError(f"{name} has no array {key!r}; it must hold {', '.join(wanted)}")
        if found[key].ndim != dimensions or found[key].dtype != np.dtype(dtype):
            raise ProgramError(
                f"{key} in {name} is {found[key].dtype} with {found[key].ndim} dimensions; "
                f"it must be {np.dtype(dtype)} with {dimensions}"
            )
    return found
