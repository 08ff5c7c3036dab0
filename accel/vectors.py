"""Conformance vectors: programs of other VTA compilers, with memory before and after.

A vector is a folder of ``config.json`` (VTA's keys), ``insn.bin``, ``dram_before.npz`` (``addr``
uint64[n] of 4096-byte pages, ``data`` uint8[n, 4096]) and ``expect.npz`` (``addr``, ``length`` uint64[m],
``data`` uint8[sum(length)]: bytes that must be in DRAM when the program has finished).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.config import PAGE_BYTES, Config, load_config
from accel.dram import Dram
from accel.errors import MachineError, ProgramError
from accel.faults import dram_span
from accel.isa import Instruction, Transfer, decode
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Order
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

_INSTRUCTIONS = "insn.bin"


@dataclass(frozen=True, kw_only=True)
class Vector:
    """One vector, read and checked.

    Attributes:
        pages: address and content of each page that is not all zero before the run.
        expected: address and content of each region that is compared after it.
    """

    path: Path
    config: Config
    code: bytes
    pages: tuple[tuple[int, npt.NDArray[np.uint8]], ...]
    expected: tuple[tuple[int, npt.NDArray[np.uint8]], ...]

    @property
    def name(self) -> str:
        return self.path.name

    def instructions(self) -> list[Instruction]:
        """The decoded program."""
        return decode(self.code, self.config)

    def dram(self) -> Dram:
        """Memory before the run, without the instructions."""
        memory = Dram.of(self.config)
        for address, page in self.pages:
            memory.write(address, page)
        return memory

    def free_address(self) -> int:
        """Where the instructions can be put: the first page from which on nothing is used.

        Pages that the program only reads count as used too: they are zero, and must stay so.

        Raises:
            ProgramError: there is no room.
        """
        used = [(a, a + content.size) for a, content in (*self.pages, *self.expected)]
        used += [
            dram_span(i, self.config) for i in self.instructions() if isinstance(i, Transfer) and i.x_size
        ]
        address = self.config.mem_base
        for start, stop in sorted(used):
            if start >= address + len(self.code):
                break
            address = max(address, -(-stop // PAGE_BYTES) * PAGE_BYTES)
        if address + len(self.code) > self.config.mem_base + self.config.mem_size:
            raise ProgramError(f"vector {self.name!r} leaves no room for its instructions in the DRAM window")
        return address


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The outcome of running one vector."""

    name: str
    path: str
    passed: bool
    instructions: int
    uops: int | None
    cycles: int | None
    mismatches: int | None
    error: str | None
    """What stopped the machine or where memory first differs; None if the vector passed."""

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def find_vectors(folders: Iterable[str | Path]) -> list[Path]:
    """The vectors in the folders given, themselves included, in order of their paths.

    Raises:
        ProgramError: a folder does not exist or holds none.
    """
    found: list[Path] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise ProgramError(
                f"{str(folder)!r} is no folder; give a vector's folder or one that holds vectors"
            )
        here = sorted(path.parent for path in folder.rglob(_INSTRUCTIONS))
        if not here:
            raise ProgramError(f"{str(folder)!r} holds no vector; a vector is a folder with {_INSTRUCTIONS}")
        found.extend(here)
    return list(dict.fromkeys(found))


def load_vector(path: str | Path) -> Vector:
    """Read a vector's folder.

    Raises:
        ConfigError, ProgramError: a file is missing, unreadable or not of the format.
    """
    folder = Path(path)
    try:
        return _read(folder)
    except ProgramError as error:
        raise ProgramError(f"vector {str(folder)!r}: {error}") from None


def _read(folder: Path) -> Vector:
    config = load_config(folder / "config.json")
    try:
        code = (folder / _INSTRUCTIONS).read_bytes()
    except OSError as error:
        raise ProgramError(f"{_INSTRUCTIONS} cannot be read: {error.strerror}") from None
    decode(code, config)
    before = _arrays(folder, "dram_before.npz", {"addr": (1, "u8"), "data": (2, "u1")})
    after = _arrays(folder, "expect.npz", {"addr": (1, "u8"), "length": (1, "u8"), "data": (1, "u1")})
    if before["data"].shape != (len(before["addr"]), PAGE_BYTES):
        raise ProgramError(
            f"dram_before.npz has data of shape {before['data'].shape}; "
            f"it must be {(len(before['addr']), PAGE_BYTES)}, one row for each addr"
        )
    lengths = after["length"].tolist()
    if len(lengths) != len(after["addr"]) or sum(lengths) != len(after["data"]):
        raise ProgramError(
            f"expect.npz has {len(after['addr'])} addr, {len(lengths)} length and {len(after['data'])} "
            f"data; it must have one length for each addr, which add up to data's bytes"
        )
    ends = np.cumsum([0, *lengths]).tolist()
    regions = [after["data"][a:b] for a, b in pairwise(ends)]
    vector = Vector(
        path=folder,
        config=config,
        code=code,
        pages=tuple(zip(before["addr"].tolist(), before["data"], strict=True)),
        expected=tuple(zip(after["addr"].tolist(), regions, strict=True)),
    )
    for address, content in (*vector.pages, *vector.expected):
        if not config.mem_base <= address <= config.mem_base + config.mem_size - content.size:
            raise ProgramError(
                f"it has {content.size} bytes at {address:#x}; the DRAM window is "
                f"{config.mem_base:#x}..{config.mem_base + config.mem_size - 1:#x}"
            )
    return vector


def _arrays(folder: Path, name: str, wanted: dict[str, tuple[int, str]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file, of the dimensions and dtypes wanted; nothing in it is executed."""
    try:
        with open(folder / name, "rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
            found = {key: archive[key] for key in wanted if key in archive}
    except OSError as error:
        raise ProgramError(f"{name} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # zipfile, zlib and numpy fail at damaged data in too many ways to list
        raise ProgramError(f"{name} is damaged: {error or type(error).__name__}") from None
    for key, (dimensions, dtype) in wanted.items():
        if key not in found:
            raise ProgramError(f"{name} has no array {key!r}; it must hold {', '.join(wanted)}")
        if found[key].ndim != dimensions or found[key].dtype != np.dtype(dtype):
            raise ProgramError(
                f"{key} in {name} is {found[key].dtype} with {found[key].ndim} dimensions; "
                f"it must be {np.dtype(dtype)} with {dimensions}"
            )
    return found


def replay(
    vector: Vector,
    *,
    timed: bool = False,
    seed: int = 0,
    order: Order = "program",
    max_cycles: int = DEFAULT_MAX_CYCLES,
    max_uops: int = DEFAULT_MAX_UOPS,
) -> Replay:
    """Run a vector from random scratchpad contents and zero tokens, and compare memory.

    Args:
        vector: what to run.
        timed: simulate cycles too; the instructions are then fetched from free memory.
        seed: of the scratchpad contents, and of a random order.
        order: of functional execution.
        max_cycles, max_uops: limits.
    """
    instructions = vector.instructions()
    dram = vector.dram()
    address = vector.free_address()
    dram.write(address, vector.code)
    simulation = simulate(
        instructions,
        vector.config,
        dram,
        Scratchpads.random(vector.config, seed),
        address=address,
        timed=timed,
        order=order,
        seed=seed,
        max_cycles=max_cycles,
        max_uops=max_uops,
    )
    error, mismatches = None, None
    try:
        simulation.raise_if_bad()
    except MachineError as caught:
        error = str(caught)
    else:
        mismatches, error = _compare(vector, dram)
    return Replay(
        name=vector.name,
        path=str(vector.path),
        passed=error is None,
        instructions=len(instructions),
        uops=simulation.functional.uops,
        cycles=simulation.timing.cycles if simulation.timing is not None else None,
        mismatches=mismatches,
        error=error,
    )


def _compare(vector: Vector, dram: Dram) -> tuple[int, str | None]:
    """How many bytes differ from what is expected, and the first of them in words."""
    count = 0
    first: str | None = None
    for address, expected in vector.expected:
        found = dram.read(address, expected.size)
        differing = np.flatnonzero(found != expected)
        count += len(differing)
        if len(differing) and first is None:
            at = int(differing[0])
            first = f"{address + at:#x} holds {found[at]:#04x} instead of {expected[at]:#04x}"
    return count, None if first is None else f"{count} bytes differ; the first, {first}"
