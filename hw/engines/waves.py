"""Save files for GTKWave: the signals of a wave file worth looking at, grouped by unit."""

import io
from collections.abc import Iterator
from pathlib import Path

from accel.config import Config
from accel.files import write_atomically

ROOTS = {"verilator": "TOP.accel_sim", "cxxrtl": "accel_sim", "pysim": "bench.top.accel_sim"}
"""Where the simulation top is in the wave files of each engine."""


def save_path(wave: Path) -> Path:
    """The save file that belongs to a wave file."""
    return wave.with_suffix(".gtkw")


def groups(config: Config) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
    """Groups of signals: name below the simulation top, width in bits, and how to show it."""
    from accel.hw.engines.shim import ports  # noqa: PLC0415  # brings Amaranth
    from accel.hw.names import named_signals  # noqa: PLC0415

    widths = {name: width for name, (_, width) in ports(config).items()}

    def of(prefix: str) -> list[tuple[str, int, str]]:
        return [
            (n, w, "dec" if n.endswith("index") else "hex") for n, w in widths.items() if n.startswith(prefix)
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
    """Write the save file of a wave file, unless there is one.

    Raises:
        ProgramError: it cannot be written.
    """
    from vcd.gtkw import GTKWSave  # noqa: PLC0415

    path = save_path(wave)
    if path.exists():
        return
    text = io.StringIO()
    save = GTKWSave(text)
    save.dumpfile(str(wave.absolute()))
    save.treeopen(f"{ROOTS[engine]}.")
    for name, signals in groups(config):
        with save.group(name, closed=name == "control"):
            for signal, width, shown in signals:
                bits = f"[{width - 1}:0]" if width > 1 else ""
                save.trace(f"{ROOTS[engine]}.{signal}{bits}", datafmt=shown)
    write_atomically(path, text.getvalue().encode())
