import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError, MismatchError
from accel.cli.shared_options import config_file, load_program, machine_row, machine_text, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.core.config import PAGE_BYTES, Config, load_config
from accel.core.isa import check_encodable
from accel.hw.board.block_ram_memory import READ_LATENCY, WRITE_LATENCY
from accel.hw.board.board_defaults import SIMULATED
from accel.hw.board.board_engine import Board
from accel.hw.board.serial_line import Line, SerialLine, SimulatedLine
from accel.hw.board.serial_link import Link
from accel.hw.board.ulx3s import MEMORY_BYTES, build
from accel.hw.export.nextpnr import AVAILABLE, NAMES
from accel.image.image import is_network
from accel.network.digits import INPUT, as_images, digits_network, digits_pictures
from accel.network.network_file import load_network
from accel.network.network_program import NetworkProgram
from accel.run.program import Program
from accel.run.result import SCHEMA_VERSION


def board(
    file: Path | None,
    port: str | None,
    bitstream: Path | None,
    config: str,
    settings: tuple[str, ...],
    clock: float,
    rate: int,
    count: int,
    seed: int,
    as_json: bool,
) -> int:
    if (port is None) == (bitstream is None):
        raise AccelError("accel board takes either --port, to run something, or --bitstream")
    if file is not None and bitstream is not None:
        raise AccelError(f"{str(file)!r} is given with --bitstream; programs run with --port")
    if file is not None and (settings or _given("config")):
        raise AccelError(f"{str(file)!r} is given with a machine; a file has its own")
    for name, other, unused, why in (
        ("clock", "--port", port is not None, "the bitstream says how fast the board is"),
        ("rate", f"--port {SIMULATED}", port == SIMULATED, "that line has no rate"),
        ("count", "--bitstream", bitstream is not None, "nothing runs"),
        ("seed", "--bitstream", bitstream is not None, "nothing runs"),
        ("count", repr(str(file)), file is not None, "it runs once"),
    ):
        if unused and _given(name):
            raise AccelError(f"--{name} is given with {other}; {why}")
    machine = load_config(config).variant(parse_settings(settings))
    if bitstream is not None:
        check_targets({"--bitstream": bitstream}, config_file(config))
        return _build(machine, bitstream, clock, rate, as_json=as_json)
    assert port is not None
    return _compare(file, machine, port, rate, count, seed, as_json=as_json)


def _given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def _build(machine: Config, bitstream: Path, clock: float, rate: int, *, as_json: bool) -> int:
    check_encodable(machine)
    with tempfile.TemporaryDirectory() as folder, busy("building") as note:
        built = build(machine, Path(folder), mhz=clock, rate=rate, note=note)
    write_atomically(bitstream, built.content)
    figures = {
        "config": machine.name,
        "mhz": clock,
        "reached_mhz": built.mhz,
        "rate": rate,
        "memory_bytes": MEMORY_BYTES,
        "resources": built.resources,
    }
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, **figures, "output": str(bitstream)})
        return 0
    rows = [
        machine_row(machine),
        ("clock", f"{clock:g} MHz, of {built.mhz:.1f} MHz that it reaches"),
        ("serial line", f"{rate:,} bits per second"),
        ("memory", f"{MEMORY_BYTES // 1024} KiB"),
        *((NAMES[kind], f"{count:,} of {AVAILABLE[kind]:,}") for kind, count in built.resources.items()),
    ]
    show(FiguresTable(rows))
    wrote(bitstream)
    return 0


def _compare(
    file: Path | None, machine: Config, port: str, rate: int, count: int, seed: int, *, as_json: bool
) -> int:
    with busy("compiling"):
        program = _program(file, machine)
    with busy("connecting"), _line(port, rate, program.config) as line:
        link = Link(line)
        there = Board(link, program.config)
        timing = {
            "mem_base": 0,
            "mem_size": _window(program, link.info.memory_bytes),
            "read_latency": READ_LATENCY,
            "write_latency": WRITE_LATENCY,
        }
        with busy("running") as note:
            rows = []
            for number, inputs in enumerate(_inputs(program, file, count, seed)):
                note(f"run {number + 1}")
                rows.append(_run(program, inputs, timing, there, seed))
    figures = {
        "schema_version": SCHEMA_VERSION,
        "port": line.name,
        "config": program.config.name,
        "memory_bytes": link.info.memory_bytes,
        "runs": rows,
        "mismatches": sum(row["mismatches"] for row in rows),
    }
    if as_json:
        print_json(figures)
        return 1 if figures["mismatches"] else 0
    _show(figures, str(program.config) if file is not None else machine_text(machine))
    if figures["mismatches"]:
        raise MismatchError(f"{figures['mismatches']} values on the board are not the simulator's")
    return 0


def _program(file: Path | None, machine: Config) -> Program | NetworkProgram:
    if file is None:
        return digits_network().build(machine)
    return load_network(file) if is_network(file) else load_program(file)


def _window(program: Program | NetworkProgram, size: int) -> int:
    if isinstance(program, NetworkProgram):
        return size
    return min(size, -(-program.size // PAGE_BYTES) * PAGE_BYTES)


@contextmanager
def _line(port: str, rate: int, config: Config) -> Iterator[Line]:
    simulated = port == SIMULATED
    with SimulatedLine(config, size=MEMORY_BYTES) if simulated else SerialLine(port, rate=rate) as line:
        yield line


def _inputs(
    program: Program | NetworkProgram, file: Path | None, count: int, seed: int
) -> Iterator[dict[str, Any]]:
    if file is None:
        pictures, _ = digits_pictures()
        chosen = np.random.default_rng(seed).permutation(len(pictures))[:count]
        for image in as_images(pictures[chosen]):
            yield {INPUT: image[None]}
    else:
        yield dict(program.random_inputs(seed))


def _run(
    program: Program | NetworkProgram,
    inputs: Mapping[str, Any],
    timing: Mapping[str, int],
    machine: Board,
    seed: int,
) -> dict[str, Any]:
    if isinstance(program, NetworkProgram):
        network = program.with_timing(timing)
        simulated = network.run(inputs, seed=seed, check=False)
        real = network.run(inputs, seed=seed, check=False, backend="rtl", hardware=machine)
        wanted, found = simulated.tensors, real.tensors
        cycles, expected = real.cycles, simulated.cycles
    else:
        machine.reset()
        single = program.with_timing(program.config.override(timing, kinds=("timing",)))
        expectation = single.run(inputs, seed=seed, check=False)
        run = single.run(inputs, seed=seed, check=False, backend="rtl", hardware=machine)
        wanted, found = expectation.outputs, run.outputs
        cycles, expected = run.cycles, expectation.cycles
    return {
        "cycles": cycles,
        "simulated_cycles": expected,
        "mismatches": sum(int((found[name] != wanted[name]).sum()) for name in found),
        "values": sum(array.size for array in found.values()),
    }


def _show(figures: Mapping[str, Any], machine: str) -> None:
    runs = figures["runs"]
    cycles = sorted({row["cycles"] for row in runs})
    values = sum(row["values"] for row in runs)
    rows = [
        ("board", f"{figures['port']}, {figures['memory_bytes'] // 1024} KiB"),
        ("machine", machine),
        ("runs", f"{len(runs):,}"),
        ("cycles", " ".join(f"{one:,}" for one in cycles)),
        ("simulator", " ".join(f"{one:,}" for one in sorted({row["simulated_cycles"] for row in runs}))),
        ("compared", f"{values:,} values, {figures['mismatches'] or 'all equal'}"),
    ]
    show(FiguresTable(rows))
