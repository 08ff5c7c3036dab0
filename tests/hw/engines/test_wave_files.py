"""Wave files, read with a library: names as text, save files for GTKWave, and full disks."""

import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
import pywellen

from accel.base.errors import HardwareError, ProgramError
from accel.core.isa import Unit
from accel.core.token_rules import WORKERS
from accel.hw.datapath.wave_names import NOTHING, STATES
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.open_engine import WAVES
from accel.hw.engines.wave_files import ROOTS, is_whole, save_path, write_save_file
from accel.run.result import Result
from tests.programs import TINY, gemm_program
from tests.thorough import also, grouped
from tests.tools import needs

KINDS = [(engine, suffix) for engine, suffixes in WAVES.items() for suffix in suffixes]
EACH = [
    grouped(f"waves {''.join(kind)}", kind, thorough=kind in {("cxxrtl", ".vcd"), ("verilator", ".vcd")})
    for kind in KINDS
]
"""The combinations marked `thorough` take long to compile. VCD is tested with pysim, and
FST with Verilator."""
TOOLS = {"verilator": ["verilator"], "cxxrtl": ["g++"], "pysim": []}


class Waves:
    """A wave file below the simulation top."""

    def __init__(self, path: Path, engine: str) -> None:
        self.signals = {v.full_name: v for v in pywellen.Waveform(str(path)).all_vars()}
        self._root = ROOTS[engine]

    def texts(self, name: str) -> Iterator[str]:
        """The values of a text signal in order, without the initial empty ones and without
        trailing blanks."""
        variable = self.signals[f"{self._root}.{name}"]
        for value in dict(variable.signal).values():  # the last value of each time
            if value:
                yield value.to_bytes(variable.bitwidth // 8, "big").decode("ascii").rstrip()


@pytest.fixture(scope="module", params=EACH, ids=map("".join, KINDS))
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Waves, Result, Path]:
    engine, suffix = request.param
    for tool in TOOLS[engine]:
        needs(tool)
    path = tmp_path_factory.mktemp("waves") / f"gemm{suffix}"
    result = gemm_program().run(backend="rtl", engine=engine, wave=path)
    return Waves(path, engine), result, path


def test_instructions_are_text(seen: tuple[Waves, Result, Path]) -> None:
    """Each unit's instructions appear in order. Two equal names in a row make no change."""
    waves, result, _ = seen
    for unit in WORKERS:
        expected = [i.mnemonic for i in result.instructions if i.unit is unit]
        assert list(waves.texts(f"names.{unit.label}_last")) == [name for name, _ in groupby(expected)]
        heads = [name for name in waves.texts(f"names.{unit.label}_next") if name != NOTHING]
        assert [name for name, _ in groupby(heads)] == [name for name, _ in groupby(expected)]


def test_states_are_text(seen: tuple[Waves, Result, Path]) -> None:
    waves, result, _ = seen
    assert result.stalls is not None
    for unit in Unit:
        cycles = result.stalls[unit.label]
        spent = dict(
            zip(STATES, (cycles.idle, cycles.busy, cycles.memory_stall, cycles.token_stall), strict=True)
        )
        found = set(waves.texts(f"names.{unit.label}_state"))
        assert found == {"idle"} | {state for state, count in spent.items() if count}


def test_save_files_name_signals_that_are_there(seen: tuple[Waves, Result, Path]) -> None:
    waves, _, path = seen
    text = save_path(path).read_text(encoding="utf-8")
    assert f'[dumpfile] "{path}"' in text
    for name in ("run", *(unit.label for unit in Unit), "reads", "writes", "control"):
        assert text.count(f"\n-{name}\n") == 2, name
    signals = re.findall(r"^([a-zA-Z_]\S*\.\w+)(?:\[(\d+):0\])?$", text, re.MULTILINE)
    assert len(signals) > 50
    for name, highest in signals:
        assert waves.signals[name].bitwidth == int(highest or 0) + 1


def test_save_files_of_the_user_stay(tmp_path: Path) -> None:
    """A user's save file stays if it belongs to this wave file and this engine."""
    wave = tmp_path / "gemm.vcd"
    write_save_file(wave, "pysim", TINY)
    own = "[*] mine\n" + save_path(wave).read_text(encoding="utf-8")
    save_path(wave).write_text(own, encoding="utf-8")
    write_save_file(wave, "pysim", TINY)
    assert save_path(wave).read_text(encoding="utf-8") == own
    write_save_file(wave, "verilator", TINY)
    assert ROOTS["verilator"] in save_path(wave).read_text(encoding="utf-8")
    write_save_file(wave.with_suffix(".fst"), "verilator", TINY)
    assert "gemm.fst" in save_path(wave).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", EACH, ids=map("".join, KINDS))
@pytest.mark.parametrize("size", [1, also(100_000)])
def test_a_full_disk_is_an_error(kind: tuple[str, str], size: int, tmp_path: Path) -> None:
    """The disk is full from the first bytes on, or later. No file remains."""
    engine, suffix = kind
    for tool in TOOLS[engine]:
        needs(tool)
    program, wave = tmp_path / "gemm.accel", tmp_path / f"gemm{suffix}"
    gemm_program(16, 16, 16).save(program)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "accel",
            "run",
            program,
            "--backend",
            "rtl",
            "--engine",
            engine,
            "--wave",
            wave,
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(rf"accel: '{wave.with_suffix('')}\.\w+' cannot be written: .+\n", done.stderr)
    assert not wave.exists()


def test_the_error_of_a_run_precedes_that_of_its_wave_file() -> None:
    """An incomplete wave file must not hide it."""

    def close() -> None:
        raise ProgramError("lost")

    engine = SimpleNamespace(close=close)
    error = HardwareError("broken")
    Engine.__exit__(engine, HardwareError, error, None)
    with pytest.raises(ProgramError, match="lost"):
        Engine.__exit__(engine, None, None, None)


def test_fst_files_that_are_not_whole_are_known(tmp_path: Path) -> None:
    assert is_whole(tmp_path / "no.fst")
    (tmp_path / "some.vcd").write_bytes(b"")
    assert is_whole(tmp_path / "some.vcd")
    (tmp_path / "some.fst").write_bytes(bytes(400))
    assert not is_whole(tmp_path / "some.fst")
