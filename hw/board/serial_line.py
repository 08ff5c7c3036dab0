"""The host's end of the line to a board."""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from ctypes import POINTER, c_uint8, c_uint64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from accel.base.errors import EngineError
from accel.base.optional_extras import not_installed
from accel.core.config import Config
from accel.hw.engines import model_cache
from accel.hw.engines.open_engine import level
from accel.hw.engines.verilator import PACKAGES, includes, sources

SIMULATED_BIT_CYCLES = 2
"""The fewest that the receiver supports."""
_PATIENCE = 400_000
"""Cycles that a simulated reply may take."""
_TOP = "accel_board"
_ROOM = 4096


class Line(ABC):
    """Bytes to and from a board, in a ``with`` statement. ``name`` is for messages."""

    name: str

    @abstractmethod
    def send(self, data: bytes) -> None: ...

    @abstractmethod
    def receive(self) -> bytes:
        """Return at least one byte, or none after the timeout."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SerialLine(Line):
    """A serial port of ``pyserial``. ``rate`` is in bits per second."""

    def __init__(self, port: str, *, rate: int, patience: float = 1.0) -> None:
        try:
            import serial  # optional
        except ImportError:
            raise EngineError(not_installed("serial ports need pyserial", "fpga")) from None
        self.name = port
        self._gone = (serial.SerialException, OSError)
        try:
            self._port: Any = serial.Serial(port, rate, timeout=patience, write_timeout=patience)
        except (serial.SerialException, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EngineError(f"the port {port!r} cannot be opened: {reason}") from None

    def send(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._gone as error:
            raise EngineError(f"the port {self.name!r} takes nothing: {error}") from None

    def receive(self) -> bytes:
        try:
            first = self._port.read(1)
            return bytes(first + self._port.read(min(self._port.in_waiting, _ROOM)) if first else first)
        except self._gone as error:
            raise EngineError(f"the port {self.name!r} is gone: {error}") from None

    def close(self) -> None:
        self._port.close()


_FUNCTIONS = {
    "board_new": (c_void_p, []),
    "board_delete": (None, [c_void_p]),
    "board_reset": (None, [c_void_p]),
    "board_send": (None, [c_void_p, c_void_p, c_uint64]),
    "board_receive": (c_uint64, [c_void_p, POINTER(c_uint8), c_uint64, c_uint64]),
}


class SimulatedLine(Line):
    """The line to ``BoardTop`` in Verilator, which simulates while the host waits for a reply. ``size`` is in
    bytes."""

    name = "the simulated board"

    def __init__(self, config: Config, *, size: int, optimize: int | None = None) -> None:
        optimize = level(3) if optimize is None else optimize
        flags = [
            f"-O{optimize}",
            f"-DBOARD_CYCLES={SIMULATED_BIT_CYCLES}",
            f"-DBOARD_BYTES={size}",
            *includes(),
        ]

        def generate(config: Config, folder: Path) -> Sequence[model_cache.Source | Path]:
            from accel.hw.board.board_top import BoardTop  # Amaranth is needed to build only

            top = BoardTop(config, size=size, cycles=SIMULATED_BIT_CYCLES)
            return sources(top, _TOP, model_cache.NATIVE / "board.cpp", folder, flags)

        library = ctypes.CDLL(str(model_cache.model("board", config, flags, PACKAGES, generate)))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self._library = library
        self._board: int | None = library.board_new()
        library.board_reset(self._board)

    def send(self, data: bytes) -> None:
        self._library.board_send(self._board, data, len(data))

    def receive(self) -> bytes:
        room = (c_uint8 * _ROOM)()
        count = self._library.board_receive(self._board, room, _ROOM, _PATIENCE)
        return bytes(room[:count])

    def close(self) -> None:
        if self._board is not None:
            self._library.board_delete(self._board)
            self._board = None
