"""Wave files and their save files for GTKWave."""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from accel.base.atomic_files import unwritable, write_atomically
from accel.base.errors import ProgramError
from accel.core.config import Config

ROOTS = {"verilator": "TOP.accel_sim", "cxxrtl": "accel_sim", "pysim": "bench.top.accel_sim"}
"""Path of the simulation top in each engine's wave files."""


_CONSTANT = re.compile(r"_axi_\w+(id|size|burst|cache|prot|qos)$")

_FST_HEADER = bytes([0, *(329).to_bytes(8, "big")])
"""Kind and length of an FST file's first block, which is written last."""


def lost_wave(wave: Path, error: int) -> ProgramError:
    """Delete an incomplete wave file, and return its error. ``error`` is an ``errno``, or 0 if unknown."""
    discard(wave)
    return unwritable(wave, os.strerror(error) if error else "not all of it found room")


def discard(wave: Path) -> None:
    """Delete a wave file, but no device or pipe."""
    if wave.is_file():
        wave.unlink()


def is_whole(wave: Path) -> bool:
    """Return whether a closed FST file is complete, or True for others."""
    if wave.suffix != ".fst" or not wave.is_file():
        return True
    with wave.open("rb") as file:
        return file.read(len(_FST_HEADER)) == _FST_HEADER


def save_path(wave: Path) -> Path:
    return wave.with_suffix(".gtkw")


def groups(config: Config) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
    """Return groups of signals: name below the simulation top, width in bits, display format."""
    from accel.hw.datapath.wave_names import named_signals
    from accel.hw.engines.model_header import ports  # brings Amaranth

    widths = {name: width for name, (_, width) in ports(config).items()}

    def of(prefix: str) -> list[tuple[str, int, str]]:
        return [
            (name, width, "dec" if name.endswith("index") else "hex")
            for name, width in widths.items()
            if name.startswith(prefix) and not _CONSTANT.search(name)
        ]

    yield "run", [(name, widths[name], "dec") for name in ("running", "halted", "cycle")]
    for unit, events in (
        ("fetch", of("ev_push")),
        ("load", of("ev_load_")),
        ("compute", of("ev_compute_")),
        ("store", of("ev_store_")),
    ):
        texts = [(f"names.{n}", w, "ascii") for n, w in named_signals() if n.startswith(f"{unit}_")]
        yield unit, texts + events
    yield "reads", of("ev_read_") + of("m_axi_ar") + of("m_axi_r")
    yield "writes", of("ev_write_") + of("m_axi_aw") + of("m_axi_w") + of("m_axi_b")
    yield "control", of("s_axi_") + of("irq")


def write_save_file(wave: Path, engine: str, config: Config) -> None:
    """Write a wave file's save file, unless one exists, which may be the user's."""
    from vcd.gtkw import GTKWSave

    path = save_path(wave)
    text = io.StringIO()
    save = GTKWSave(text)
    save.dumpfile(str(wave.absolute()))
    if path.is_file():
        there = path.read_text(encoding="utf-8", errors="replace")
        if text.getvalue() in there and f"\n{ROOTS[engine]}." in there:
            return
    save.treeopen(f"{ROOTS[engine]}.")
    for name, signals in groups(config):
        with save.group(name, closed=name == "control"):
            for signal, width, shown in signals:
                bits = f"[{width - 1}:0]" if width > 1 else ""
                save.trace(f"{ROOTS[engine]}.{signal}{bits}", datafmt=shown)
    write_atomically(path, text.getvalue().encode())
