"""The engines by name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from accel.base.errors import EngineError, ProgramError, nearest
from accel.core.config import Config
from accel.hw.engines.waves import discard, write_save_file

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine


def _pysim(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.pysim import PysimEngine  # noqa: PLC0415  # brings Amaranth

    return PysimEngine(config, wave=wave)


def _cxxrtl(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.cxxrtl import cxxrtl  # noqa: PLC0415

    return cxxrtl(config, optimize=optimize, wave=wave)


def _verilator(config: Config, optimize: int, wave: Path | None) -> "Engine":
    from accel.hw.engines.verilator import verilator  # noqa: PLC0415

    return verilator(config, optimize=optimize, wave=wave)


ENGINES: dict[str, Callable[[Config, int, Path | None], "Engine"]] = {
    "verilator": _verilator,
    "cxxrtl": _cxxrtl,
    "pysim": _pysim,
}
"""What simulates the hardware; the first is the fastest."""
DEFAULT_ENGINE = next(iter(ENGINES))
WAVES = {"verilator": (".vcd", ".fst"), "cxxrtl": (".vcd",), "pysim": (".vcd",)}
"""The wave files that each can write."""


OPTIMIZE = "ACCEL_OPTIMIZE"
"""The environment variable with the level of optimization where none is given."""
_LEVELS = range(4)


def level(default: int) -> int:
    """The level of optimization that the environment asks for.

    Raises:
        EngineError: it asks for one that there is not.
    """
    text = os.environ.get(OPTIMIZE, str(default))
    if text not in map(str, _LEVELS):
        raise EngineError(f"{OPTIMIZE} is {text!r}; it may be {_LEVELS.start} to {_LEVELS.stop - 1}")
    return int(text)


def open_engine(
    config: Config, name: str | None = None, *, optimize: int | None = None, wave: Path | None = None
) -> "Engine":
    """The machine in simulation, after a reset.

    Args:
        config: what it is built from.
        name: of the engine; the first that can write the wave file if not given.
        optimize: the C++ compiler's level of optimization; if not given, ``$ACCEL_OPTIMIZE``, or 3, or 2
            where waves take the time.
        wave: a VCD or FST file to write; a save file for GTKWave comes with it, unless there is one.

    Raises:
        EngineError: no such engine or level, it cannot write such a wave file, or it cannot be built.
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
