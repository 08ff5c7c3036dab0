"""Compiled engines: a model of the core in C++, driven by the code in ``native/``."""

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.atomic_files import unwritable
from accel.base.errors import EngineError, HardwareError
from accel.core.access_names import access_names
from accel.core.config import PAGE_BYTES, Config
from accel.core.token_rules import Counter
from accel.hw.engines.engine_driver import CLOSED, Contents, Engine, empty_contents, in_words
from accel.hw.engines.hardware_run import RECORD, Behaviour, Records
from accel.hw.engines.wave_files import is_whole, lost_wave
from accel.image.dram import Dram
from accel.image.test_scenario import Tokens

_OKAY = 0
_ENDED = 1
_VIOLATION = 2


class _Behaviour(ctypes.Structure):
    _fields_ = [
        (name, c_uint64)
        for name in (
            "mem_base",
            "mem_size",
            "read_latency",
            "write_latency",
            "hostile",
            "seed",
            "bad_read",
            "bad_beat",
            "bad_write",
            "short_read",
            "surplus_read",
        )
    ]


_FUNCTIONS = {
    "accel_new": (c_void_p, []),
    "accel_delete": (None, [c_void_p]),
    "accel_configure": (None, [c_void_p, POINTER(_Behaviour)]),
    "accel_reset": (None, [c_void_p]),
    "accel_record": (None, [c_void_p, c_int]),
    "accel_records": (c_uint64, [c_void_p, POINTER(c_void_p)]),
    "accel_violation": (c_char_p, [c_void_p]),
    "accel_empty": (None, [c_void_p]),
    "accel_fill": (None, [c_void_p, c_uint64, c_void_p]),
    "accel_dirty": (c_uint64, [c_void_p, c_void_p, c_uint64]),
    "accel_fetch": (None, [c_void_p, c_uint64, c_void_p]),
    "accel_write": (c_uint64, [c_void_p, c_uint64, c_uint64]),
    "accel_read": (c_uint64, [c_void_p, c_uint64, POINTER(c_uint32)]),
    "accel_preload": (None, [c_void_p, POINTER(c_void_p), POINTER(c_uint64)]),
    "accel_peek": (None, [c_void_p, POINTER(c_void_p), POINTER(c_uint64)]),
    "accel_tokens": (None, [c_void_p, POINTER(c_uint64)]),
    "accel_accesses": (None, [c_void_p, POINTER(c_uint64), c_uint64]),
    "accel_run": (c_int, [c_void_p, c_uint64]),
    "accel_cycle": (c_uint64, [c_void_p]),
    "accel_wave": (c_int, [c_void_p, c_char_p]),
    "accel_wave_error": (c_int, [c_void_p]),
    "accel_close_wave": (None, [c_void_p]),
}


def _addresses_and_sizes(arrays: Sequence[npt.NDArray[Any]]) -> tuple[Any, Any]:
    addresses = (c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    return addresses, (c_uint64 * len(arrays))(*map(len, arrays))


class NativeEngine(Engine):
    """A machine in a shared library, built for ``config``, with ``wave`` also to write waves."""

    def __init__(self, library: Path, config: Config, *, wave: Path | None = None) -> None:
        self.config = config
        self._library = ctypes.CDLL(str(library))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._machine: int | None = self._library.accel_new()
        self._wave: Path | None = None
        if wave is not None:
            if self._library.accel_wave(self._machine, os.fsencode(wave)):
                self.close()
                raise unwritable(wave, "it cannot be opened")
            self._wave = wave
        self.reset()

    @property
    def _handle(self) -> int:
        if self._machine is None:
            raise EngineError(CLOSED)
        return self._machine

    def configure(self, config: Config, behaviour: Behaviour) -> None:
        given = _Behaviour(
            mem_base=config.mem_base,
            mem_size=config.mem_size,
            read_latency=config.read_latency,
            write_latency=config.write_latency,
            hostile=behaviour.hostile,
            seed=behaviour.seed,
            bad_read=behaviour.bad_read,
            bad_beat=behaviour.bad_beat,
            bad_write=behaviour.bad_write,
            short_read=behaviour.short_read,
            surplus_read=behaviour.surplus_read,
        )
        self._library.accel_configure(self._handle, byref(given))

    def reset(self) -> None:
        self._library.accel_reset(self._handle)

    def preload(self, contents: Contents) -> None:
        arrays = in_words(contents, self.config)
        self._library.accel_preload(self._handle, *_addresses_and_sizes(arrays))

    def peek(self) -> Contents:
        found = empty_contents(self.config)
        self._library.accel_peek(self._handle, *_addresses_and_sizes(found))
        return found

    def tokens(self) -> Tokens:
        counts = (c_uint64 * len(Counter))()
        self._library.accel_tokens(self._handle, counts)
        return counts[0], counts[1], counts[2], counts[3]

    def accesses(self) -> dict[str, int]:
        names = access_names(self.config)
        counts = (c_uint64 * len(names))()
        self._library.accel_accesses(self._handle, counts, len(names))
        return dict(zip(names, counts, strict=True))

    def load_memory(self, dram: Dram) -> None:
        self._library.accel_empty(self._handle)
        for address, page in dram.pages():
            self._library.accel_fill(self._handle, address, page.ctypes.data)

    def save_memory(self, dram: Dram) -> None:
        count = self._library.accel_dirty(self._handle, None, 0)
        addresses = np.empty(count, dtype=np.uint64)
        self._library.accel_dirty(self._handle, addresses.ctypes.data, count)
        page = np.empty(PAGE_BYTES, dtype=np.uint8)
        for address in sorted(addresses.tolist()):
            self._library.accel_fetch(self._handle, address, page.ctypes.data)
            inside = min(PAGE_BYTES, dram.base + dram.size - address)
            dram.write(address, page[:inside])

    def write(self, address: int, word: int) -> bool:
        return bool(self._library.accel_write(self._handle, address, word) == _OKAY)

    def read(self, address: int) -> int | None:
        word = c_uint32()
        answer = self._library.accel_read(self._handle, address, byref(word))
        return word.value if answer == _OKAY else None

    def advance(self, cycles: int) -> bool:
        state = self._library.accel_run(self._handle, cycles)
        self._check_wave(self._library.accel_wave_error(self._handle))
        if state == _VIOLATION:
            raise HardwareError(self._library.accel_violation(self._handle).decode())
        return bool(state == _ENDED)

    def cycle(self) -> int:
        return int(self._library.accel_cycle(self._handle))

    def record(self, on: bool) -> None:
        self._library.accel_record(self._handle, int(on))

    def records(self) -> Records:
        place = c_void_p()
        count = self._library.accel_records(self._handle, byref(place))
        if not count:
            return np.empty(0, dtype=RECORD)
        raw = ctypes.cast(place, POINTER(c_uint8 * (count * RECORD.itemsize))).contents
        return np.frombuffer(raw, dtype=RECORD).copy()

    def close(self) -> None:
        if self._machine is not None:
            self._library.accel_close_wave(self._machine)
            error = self._library.accel_wave_error(self._machine)
            self._library.accel_delete(self._machine)
            self._machine = None
            self._check_wave(error, closed=True)

    def _check_wave(self, error: int, *, closed: bool = False) -> None:
        if self._wave is not None and (error or (closed and not is_whole(self._wave))):
            wave, self._wave = self._wave, None
            raise lost_wave(wave, error)
