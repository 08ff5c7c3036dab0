"""The engines by name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.errors import EngineError, ProgramError, nearest
from accel.base.run_choices import ENGINE_NAMES
from accel.core.config import Config
from accel.hw.engines.wave_files import discard, write_save_file

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine


def _pysim(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.pysim import PysimEngine  # brings Amaranth

    return PysimEngine(config, wave=wave, reuses=True)


def _cxxrtl(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.cxxrtl import cxxrtl

    return cxxrtl(config, optimize=optimize, wave=wave)


def _verilator(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.verilator import verilator

    return verilator(config, optimize=optimize, wave=wave)


ENGINES: dict[str, Callable[[Config, int, Path | None], "Engine"]] = dict(
    zip(ENGINE_NAMES, (_verilator, _cxxrtl, _pysim), strict=True)
)
"""The engines, fastest first."""
DEFAULT_ENGINE = ENGINE_NAMES[0]
WAVES = {"verilator": (".vcd", ".fst"), "cxxrtl": (".vcd",), "pysim": (".vcd",)}
"""Suffixes of each engine's wave files."""


OPTIMIZE = "ACCEL_OPTIMIZE"
"""Environment variable with the default optimization level."""
_LEVELS = range(4)


def level(default: int) -> int:
    """Return the optimization level that the environment sets.

    Raises:
        EngineError: the value is not a level.
    """
    text = os.environ.get(OPTIMIZE, str(default))
    if text not in map(str, _LEVELS):
        raise EngineError(f"{OPTIMIZE} is {text!r}; it may be {_LEVELS.start} to {_LEVELS.stop - 1}")
    return int(text)


def open_engine(
    config: Config, name: str | None = None, *, optimize: int | None = None, wave: Path | None = None
) -> "Engine":
    """Open a simulated machine after reset.

    Args:
        name: by default the first engine that can write the wave file.
        optimize: the C++ compiler's optimization level, by default ``$ACCEL_OPTIMIZE``, or 3, or 2 with
            waves.
        wave: a VCD or FST file to write, with a save file for GTKWave next to it, unless one exists.

    Raises:
        EngineError: no such engine or level, it cannot write such waves, or the model cannot be built.
        ProgramError: the wave file or its save file cannot be written.
    """
    if name is None:
        name = DEFAULT_ENGINE
    if name not in ENGINES:
        raise EngineError(f"the engine is {name!r}; {nearest(name, ENGINES)}")
    if wave is not None and wave.suffix not in WAVES[name]:
        raise EngineError(
            f"the wave file is {str(wave)!r}; the engine {name} writes {' and '.join(WAVES[name])} files"
        )
    if optimize is None:
        optimize = level(3 if wave is None else 2)
    engine = ENGINES[name](config, optimize, wave)
    if wave is not None:
        try:
            write_save_file(wave, name, config)
        except ProgramError:
            engine.close()
            discard(wave)
            raise
    return engine
