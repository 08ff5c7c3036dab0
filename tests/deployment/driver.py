"""The C driver of a package, compiled and called from Python, with an engine or the
functional model."""

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.fault_causes import Cause
from accel.core.registers import REGISTERS, constants
from accel.deployment.binary_files import content_of
from accel.deployment.deployment_steps import Deployment
from accel.deployment.package_folder import write_package
from accel.graph.graph_tensor import Array
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.hardware_run import Behaviour
from accel.image.dram import Dram
from accel.run.program import Program
from accel.sim.functional.scratchpads import Scratchpads

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
"""Flags with which the sources compile without warnings."""
BASE = 0x40000
"""Base of memory in the tests of packages."""


def build(folder: Path, *flags: str, compiler: str = "cc", target: str = "package.so") -> Path:
    """Compile the C sources below a folder, by default as a shared library. Copies of the driver are compiled
    once."""
    path = folder / target
    sources = {one.name: one for one in sorted(folder.rglob("*.c"))}
    folders = {f"-I{one.parent}" for one in sources.values()}
    wanted = flags or ("-O1", "-shared", "-fPIC")
    command = [compiler, *STRICT, *sorted(folders), *wanted, "-o", path, *sources.values()]
    subprocess.run(list(map(str, command)), check=True)
    return path


def library(folder: Path, *deployments: Deployment) -> ctypes.CDLL:
    for one in deployments:
        write_package(one, folder / one.name)
    return ctypes.CDLL(str(build(folder)))


class Model:
    """Registers of a machine with the functional model and its own memory."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.memory = bytearray(1 << 22)
        self.words = {REGISTERS[name].offset: value for name, value in constants(config).items()}
        self.refused: set[int] = set()
        """Offsets of registers that answer with an error."""
        self.forced_cause: int | None = None
        """If set, each run ends with an error and this value of the cause register."""
        self.starts = 0
        self.hangs: Literal["", "unanswered", "offering", "busy"] = ""
        """Reason why a run does not end: it is busy, or memory does not answer or accepts no address."""

    def read(self, offset: int) -> int | None:
        if offset in self.refused:
            return None
        return self.words.get(offset, 0)

    def write(self, offset: int, word: int) -> bool:
        if offset in self.refused:
            return False
        if offset != REGISTERS["control"].offset:
            self.words[offset] = word
        elif word & REGISTERS["control"].bit("start"):
            self._start()
        elif word & REGISTERS["control"].bit("stop"):
            self._stop()
        elif self.hangs == "offering" and self.value("status"):
            return False
        else:
            self.words[REGISTERS["status"].offset] = 0
        return True

    def _stop(self) -> None:
        bits = ("done", "error") if self.hangs == "busy" else ("running", "draining")
        self.words[REGISTERS["status"].offset] = sum(REGISTERS["status"].bit(bit) for bit in bits)
        self.words[REGISTERS["cause"].offset] = int(Cause.STOPPED)

    def value(self, name: str) -> int:
        words = REGISTERS[name].words
        return sum(self.words.get(REGISTERS[name].offset + 4 * n, 0) << 32 * n for n in range(words))

    def _start(self) -> None:
        self.starts += 1
        status = REGISTERS["status"]
        if self.hangs:
            self.words[status.offset] = status.bit("running")
            return
        base, size = self.value("mem_base"), self.value("mem_size")
        config = self.config.override({"mem_base": base, "mem_size": size})
        dram = Dram.of(config)
        dram.write(base, bytes(self.memory[base : base + size]))
        address, length = self.value("program_address"), self.value("program_length")
        code = bytes(self.memory[address : address + INSTRUCTION_BYTES * length])
        program = Program(config=config, code=code, code_offset=address - base)
        done = program.execute(dram, Scratchpads.random(config, self.starts), backend="functional")
        self.memory[base : base + size] = dram.read(base, size).tobytes()
        self.words[status.offset] = status.bit("done")
        if done.error is not None:
            self.words[status.offset] |= status.bit("error")
            self.words[REGISTERS["cause"].offset] = int(done.error.cause)  # type: ignore[call-overload]
            self.words[REGISTERS["fault_index"].offset] = done.error.index or 0
        self.words[REGISTERS["cycles"].offset] = 7
        if self.forced_cause is not None:
            self.words[status.offset] |= status.bit("error")
            self.words[REGISTERS["cause"].offset] = self.forced_cause

    def read_memory(self, address: int, count: int) -> bytes:
        return bytes(self.memory[address : address + count])

    def write_memory(self, address: int, content: bytes) -> None:
        self.memory[address : address + len(content)] = content

    def pause(self) -> None:
        pass


class Hardware:
    """The hardware in an engine, accessed through its AXI4-Lite and AXI4 ports."""

    def __init__(self, engine: Engine, config: Config, base: int, size: int) -> None:
        placed = config.override({"mem_base": base, "mem_size": size})
        self._engine = engine
        self._dram = Dram.of(placed)
        engine.configure(placed, Behaviour())
        self._changed = False
        """Whether the engine's memory is out of date."""

    def read(self, offset: int) -> int | None:
        return self._engine.read(offset)

    def write(self, offset: int, word: int) -> bool:
        if offset == REGISTERS["control"].offset and self._changed:
            self._engine.load_memory(self._dram)
            self._changed = False
        return self._engine.write(offset, word)

    def read_memory(self, address: int, count: int) -> bytes:
        if not self._changed:
            self._engine.save_memory(self._dram)
        return self._dram.read(address, count).tobytes()

    def write_memory(self, address: int, content: bytes) -> None:
        if not self._changed:
            self._engine.save_memory(self._dram)
        self._dram.write(address, content)
        self._changed = True

    def pause(self) -> None:
        self._engine.advance(1000)


Port = Model | Hardware

_READ_REGISTER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)
)
_WRITE_REGISTER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_MEMORY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)
_PAUSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _Device(ctypes.Structure):
    """``accel_device``."""

    _fields_ = [
        ("context", ctypes.c_void_p),
        ("read_register", _READ_REGISTER),
        ("write_register", _WRITE_REGISTER),
        ("read_memory", _MEMORY),
        ("write_memory", _MEMORY),
        ("pause", _PAUSE),
        ("base", ctypes.c_uint64),
        ("max_cycles", ctypes.c_uint64),
        ("max_polls", ctypes.c_uint64),
        ("bus_timeout", ctypes.c_uint32),
        ("cycles", ctypes.c_uint64),
        ("fault_index", ctypes.c_uint32),
    ]


class Driver:
    """A package with its driver.

    Args:
        compiled: the :func:`library` that holds it.
        port: the machine that the driver controls.
        base: address of the package's memory.
    """

    def __init__(
        self, deployment: Deployment, compiled: ctypes.CDLL, port: Port, *, base: int = BASE
    ) -> None:
        self._deployment = deployment
        self._library = compiled
        self._library.accel_message.restype = ctypes.c_char_p
        self._network = ctypes.byref(ctypes.c_char.in_dll(compiled, f"{deployment.name}_network"))
        self.device = self._device(port, base)

    def _device(self, port: Port, base: int) -> _Device:
        def read_register(_: Any, offset: int, word: Any) -> int:
            found = port.read(offset)
            word[0] = found or 0
            return int(found is None)

        def write_register(_: Any, offset: int, word: int) -> int:
            return int(not port.write(offset, word))

        def read_memory(_: Any, address: int, target: int, count: int) -> int:
            ctypes.memmove(target, port.read_memory(address, count), count)
            return 0

        def write_memory(_: Any, address: int, source: int, count: int) -> int:
            port.write_memory(address, ctypes.string_at(source, count))
            return 0

        def pause(_: Any) -> int:
            port.pause()
            return 0

        return _Device(
            read_register=_READ_REGISTER(read_register),
            write_register=_WRITE_REGISTER(write_register),
            read_memory=_MEMORY(read_memory),
            write_memory=_MEMORY(write_memory),
            pause=_PAUSE(pause),
            base=base,
        )

    def message(self, status: int) -> str:
        return str(self._library.accel_message(status).decode())

    def load(self) -> int:
        contents = content_of(self._deployment).files.values()
        files = (ctypes.c_char_p * len(contents))(*contents)
        return int(self._library.accel_network_load(ctypes.byref(self.device), self._network, files))

    def check(self) -> int:
        return int(self._library.accel_network_check(ctypes.byref(self.device), self._network))

    def without(self, callback: str) -> None:
        """Set one callback to NULL."""
        setattr(self.device, callback, dict(_Device._fields_)[callback]())

    def stop(self) -> int:
        return int(self._library.accel_stop(ctypes.byref(self.device), ctypes.c_uint64(1)))

    def run(self, inputs: Mapping[str, Array]) -> tuple[int, dict[str, Array]]:
        """Run the package; return the status and the outputs by name."""
        given = [np.ascontiguousarray(inputs[one.name]) for one in self._deployment.inputs]
        for one, array in zip(self._deployment.inputs, given, strict=True):
            assert (array.dtype, array.shape) == (one.dtype, one.shape)
        outputs = [np.zeros(one.shape, dtype=one.dtype) for one in self._deployment.outputs]
        workspace = (ctypes.c_uint8 * (self._deployment.workspace_bytes + 1))()
        status = self._library.accel_network_run(
            ctypes.byref(self.device),
            self._network,
            _pointers(given),
            _pointers(outputs),
            ctypes.byref(workspace, 1),  # a workspace without alignment
        )
        names = [one.name for one in self._deployment.outputs]
        return int(status), dict(zip(names, outputs, strict=True))


def _pointers(arrays: list[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
