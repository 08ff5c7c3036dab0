"""Damaged real programs end with a clean result or a typed error, in bounded time.

    python -m tests.campaign [--count 10000] [--seed 0] [--jobs 1] [--vectors DIR]
                             [--backends functional,sim] [--json]

Hypothesis draws a program (compiled here, one of ``tests/programs``, or a vector of another compiler)
and its damage: bits flipped, the end cut off, instructions duplicated, deleted, exchanged, moved, fields
set to extreme values, tokens added or lost, micro-ops and data changed. Each is checked and run on every
backend, from the same scratchpad contents. The run must end within its limits, by itself or with an
error of the machine. No other exception may be raised. If the check finds no race, all backends must
agree with each other and with the check. Simulator and hardware (``--backends sim,rtl``) must also agree
on errors, to the cycle, and be equal in lockstep. If micro-ops are unknown before the run, the check
cannot see their races, and memory may differ. A program that fails this is left in
``campaign-failure.s``.
"""

import argparse
import collections
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

import accel
from accel.assembly import disassemble
from accel.base.errors import nearest
from accel.base.records import replace
from accel.base.run_choices import BACKENDS, DEFAULT_MAX_UOPS
from accel.core.config import INSTRUCTION_BYTES, NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Transfer, class_slots
from accel.image.dram import Dram
from accel.proof.token_check import TokenReport
from accel.run.lockstep import Scope, lockstep, scope_of
from accel.run.program import Program
from accel.run.replay import find_programs, load_any
from accel.sim.functional.scratchpads import Scratchpads
from tests.finishing import finishing_program
from tests.lockstep.builds import built, hardware

BACKENDS_TRIED = ("functional", "sim")
MAX_CYCLES = 1_000_000
MAX_CYCLES_ON_HARDWARE = 200_000
MAX_UOPS = 200_000
MAX_UOPS_BESIDE_HARDWARE = 5_000_000
"""It does not count them, so that the simulator has to get as far as the limit of cycles."""
FAILURE = Path("campaign-failure.s")
SECONDS = 20.0
"""Limit of processor time in seconds for one program on all backends, with the check."""
_APART = 1 << 32
"""Seeds between two processes: each draws programs of its own."""
_TOKENS = ("pop_prev", "pop_next", "push_prev", "push_next")


# --- programs --------------------------------------------------------------------------------------


@cache
def sources(vectors: str | None = None) -> dict[str, Program]:
    """The programs that are damaged, by name."""
    gemms: list[tuple[str, tuple[int, int, int], dict[str, Any]]] = [
        ("tiny", (9, 17, 30), {"bias": True, "relu": True, "shift": 2}),
        ("tiny", (40, 24, 24), {"transpose_a": True}),
        ("tiny", (1, 1, 1), {}),
        ("gemm8x8", (40, 50, 60), {"shift": 3}),
        ("vta", (20, 40, 50), {"bias": True, "shift": 1}),
        ("ecp5", (17, 20, 40), {"transpose_b": True}),
        ("tiny-int8", (9, 17, 30), {"bias": True, "shift": 2}),
    ]
    found = {
        f"{config}-{n}": accel.build(accel.gemm(*size, **options), config)
        for n, (config, size, options) in enumerate(gemms)
    }
    conv = accel.conv2d(1, 9, 6, 5, 10, (3, 2), padding=(1, 0, 2, 1), bias=True, residual=True, shift=4)
    pools = accel.max_pool2d(1, 9, 7, 7, 3, stride=2, padding=1), accel.avg_pool2d(1, 9, 6, 6, 3, padding=1)
    found |= {f"tiny-{one.name}": accel.build(one, "tiny") for one in (conv, *pools)}
    residual = accel.QuantizedResidual(
        result_scale=0.027183, scale=0.045914, zero=3, sum_scale=0.033391, sum_zero=-5
    )
    scales = [0.001 + 0.0003 * n for n in range(10)]
    added = accel.Quantized(scale=scales, input_zero=-7, output_zero=5, residual=residual)
    product = accel.Quantized(scale=0.003, input_zero=120, input_dtype="uint8", output_dtype="uint8")
    quantized = (
        accel.conv2d(1, 9, 6, 5, 10, (3, 2), padding=(1, 0, 2, 1), bias=True, quantized=added),
        accel.gemm(9, 17, 10, bias=True, quantized=product),
    )
    found |= {f"tiny-int8-quantized-{one.name}": accel.build(one, "tiny-int8") for one in quantized}
    finishing = [NAMED[name] for name in ("tiny-int8", "tiny-int8", "ecp5-int8", "gemm8x8-int8", "tiny-npu")]
    found |= {f"{one.name}-store-{n}": finishing_program(one, n) for n, one in enumerate(finishing)}
    paths = [Path(__file__).parent / "programs", *([Path(vectors)] if vectors else [])]
    return found | {str(path): load_any(path) for path in find_programs(paths)}


# --- damage ----------------------------------------------------------------------------------------


def flip(draw: Callable[..., Any], program: Program) -> Program:
    """Some bits of the instructions."""
    raw = bytearray(program.code)
    for _ in range(draw(st.integers(1, 4)) if raw else 0):
        bit = draw(st.integers(0, 8 * len(raw) - 1))
        raw[bit // 8] ^= 1 << bit % 8
    return replace(program, code=bytes(raw))


def truncate(draw: Callable[..., Any], program: Program) -> Program:
    """Fewer instructions."""
    count = draw(st.integers(0, len(program.code) // INSTRUCTION_BYTES))
    return replace(program, code=program.code[: count * INSTRUCTION_BYTES])


def _words(program: Program) -> list[bytes]:
    code = program.code
    return [code[at : at + INSTRUCTION_BYTES] for at in range(0, len(code), INSTRUCTION_BYTES)]


def _places(draw: Callable[..., Any], words: Sequence[bytes]) -> tuple[int, int]:
    place = st.integers(0, len(words) - 1)
    return draw(place), draw(place)


def duplicate(draw: Callable[..., Any], program: Program) -> Program:
    """An instruction stands at another place, too."""
    words = _words(program)
    if words:
        origin, target = _places(draw, words)
        words.insert(target, words[origin])
    return replace(program, code=b"".join(words))


def delete(draw: Callable[..., Any], program: Program) -> Program:
    """An instruction is missing."""
    words = _words(program)
    if words:
        del words[draw(st.integers(0, len(words) - 1))]
    return replace(program, code=b"".join(words))


def reorder(draw: Callable[..., Any], program: Program) -> Program:
    """Two instructions change places, or one goes elsewhere."""
    words = _words(program)
    if words:
        a, b = _places(draw, words)
        if draw(st.booleans()):
            words[a], words[b] = words[b], words[a]
        else:
            words.insert(b, words.pop(a))
    return replace(program, code=b"".join(words))


def _changed(program: Program, index: int, **values: Any) -> Program:
    """With other values in fields of an instruction, whatever instruction that makes it."""
    words = _words(program)
    word = int.from_bytes(words[index], "little")
    for slot in class_slots(type(program.instructions[index]), program.config):
        if slot.name in values:
            ones = (1 << slot.width) - 1
            word = word & ~(ones << slot.offset) | (int(values[slot.name]) & ones) << slot.offset
    words[index] = word.to_bytes(INSTRUCTION_BYTES, "little")
    return replace(program, code=b"".join(words))


def extreme(draw: Callable[..., Any], program: Program) -> Program:
    """Fields of an instruction at their ends, or anywhere."""
    instructions = program.instructions
    if not instructions:
        return program
    index = draw(st.integers(0, len(instructions) - 1))
    slots = class_slots(type(instructions[index]), program.config)[1:]
    chosen = draw(st.lists(st.sampled_from(slots), min_size=1, max_size=3, unique_by=lambda slot: slot.name))
    values = {}
    for slot in chosen:
        value = draw(st.sampled_from([slot.low, slot.high, 1]) | st.integers(slot.low, slot.high))
        values[slot.name] = (
            bool(value) if isinstance(getattr(instructions[index], slot.name), bool) else value
        )
    return _changed(program, index, **values)


def wild_address(draw: Callable[..., Any], program: Program) -> Program:
    """A transfer reaches elsewhere: near the end of its memory, or far away."""
    moving = [n for n, one in enumerate(program.instructions) if isinstance(one, Transfer)]
    if not moving:
        return program
    address = st.integers(0, (1 << 32) - 1) | st.integers(0, program.config.mem_size // 4)
    sram = st.integers(0, 200) | st.integers(0, (1 << 16) - 1)
    values = draw(
        st.fixed_dictionaries({}, optional={"dram_base": address, "sram_base": sram, "x_stride": sram})
    )
    return _changed(program, draw(st.sampled_from(moving)), **values)


def tokens(draw: Callable[..., Any], program: Program) -> Program:
    """Token flags added or lost."""
    if not program.instructions:
        return program
    index = draw(st.integers(0, len(program.instructions) - 1))
    flags = draw(st.lists(st.sampled_from(_TOKENS), min_size=1, max_size=2, unique=True))
    return _changed(program, index, **{f: not getattr(program.instructions[index], f) for f in flags})


def data(draw: Callable[..., Any], program: Program) -> Program:
    """Bits of micro-ops and constants."""
    if not program.segments:
        return program
    number = draw(st.integers(0, len(program.segments) - 1))
    offset, content = program.segments[number]
    raw = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        raw[draw(st.integers(0, min(len(raw), 256) - 1))] ^= 1 << draw(st.integers(0, 7))
    changed = (*program.segments[:number], (offset, bytes(raw)), *program.segments[number + 1 :])
    return replace(program, segments=changed)


DAMAGE: dict[str, Callable[[Callable[..., Any], Program], Program]] = {
    one.__name__: one
    for one in (flip, truncate, duplicate, delete, reorder, extreme, wild_address, tokens, data)
}


# --- outcomes --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: without an error, or its cause and instruction; its cycles, if they are known; and
    memory after it."""

    cause: Cause
    index: int | None
    cycles: int | None
    dram: Dram
    pads: Scratchpads

    def same_memory(self, other: "Outcome") -> bool:
        """Whether DRAM and scratchpads hold the same."""
        return self.dram == other.dram and all(
            np.array_equal(self.pads.of(pad), other.pads.of(pad)) for pad in self.pads.present
        )


def outcome(program: Program, backend: str, seed: int, *, max_cycles: int, max_uops: int) -> Outcome:
    """Run a program; anything but an error of the machine goes through."""
    dram, pads = program.dram(), Scratchpads.random(program.config, seed)
    found = program.execute(
        dram,
        pads,
        backend=backend,
        hardware=built(program.config) if backend == "rtl" else None,
        max_cycles=max_cycles,
        max_uops=DEFAULT_MAX_UOPS if backend == "rtl" else max_uops,
    )
    cycles = None if found.timing is None else found.timing.cycles
    assert cycles is None or cycles <= max_cycles
    assert found.uops is None or found.uops <= max_uops
    cause = Cause.NONE if found.error is None else found.error.cause
    index = None if found.error is None else found.error.index
    assert isinstance(cause, Cause)
    assert (index is None) is (cause is Cause.NONE)
    return Outcome(cause=cause, index=index, cycles=cycles, dram=dram, pads=pads)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The outcome of one damaged program: the verdict of the token check, the cause on each backend, and
    whether simulator and hardware were compared. They are not compared with too many micro-ops, for
    which the simulator has no cycles."""

    verdict: str
    causes: dict[str, str]
    compared: bool
    seconds: float


def trial(program: Program, seed: int = 0, backends: Sequence[str] = BACKENDS_TRIED) -> Trial:
    """Check and run a program on all backends, and hold them against one another."""
    begin = time.process_time()
    report = program.check()
    cycles, uops = MAX_CYCLES, MAX_UOPS
    if "rtl" in backends:
        cycles, uops = MAX_CYCLES_ON_HARDWARE, MAX_UOPS_BESIDE_HARDWARE
        program = replace(program, start=replace(program.start, max_uops=None))  # the hardware counts none
    found = {one: outcome(program, one, seed, max_cycles=cycles, max_uops=uops) for one in backends}
    compared = {"sim", "rtl"} <= found.keys() and found["sim"].cycles is not None
    if compared:
        side_by_side(program, report, found["sim"], found["rtl"])
        both = lockstep(program, built(program.config), seed=seed, max_cycles=cycles, max_uops=uops)
        assert both.difference is None
    seconds = time.process_time() - begin
    assert seconds < SECONDS
    ends = {one.cause for one in found.values()}
    if report.ok:
        assert ends <= {Cause.NONE, Cause.LIMIT}
    elif report.faults or report.deadlock is not None:
        assert (
            Cause.NONE not in ends or report.race_count or report.faults[0][1].cause is Cause.TOKEN_OVERFLOW
        )
    if not (report.race_count or report.unknown_uops) and ends == {Cause.NONE}:
        first, *others = found.values()
        assert all(first.same_memory(other) for other in others)
    if not report.race_count and not report.faults and Cause.LIMIT not in ends:
        assert len({(one.cause, one.index) for one in found.values()}) == 1
        assert len({one.cycles for one in found.values()} - {None}) <= 1
    verdict = "refuted"
    if report.ok or report.race_count or report.unknown_uops:
        verdict = "proven" if report.ok else "race" if report.race_count else "unknown"
    return Trial(
        verdict=verdict,
        causes={
            backend: "done" if one.cause is Cause.NONE else one.cause.label for backend, one in found.items()
        },
        compared=compared,
        seconds=seconds,
    )


def side_by_side(program: Program, report: TokenReport, sim: Outcome, rtl: Outcome) -> None:
    """Compare simulator and hardware if the check has found no race. It stops at a fault, so memory is
    compared only without races after the fault: see :func:`~accel.run.lockstep.scope_of`."""
    if not report.race_count:
        assert (sim.cause, sim.index, sim.cycles) == (rtl.cause, rtl.index, rtl.cycles)
    if scope_of(program) is Scope.EVERYTHING:
        assert sim.dram == rtl.dram


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """A program, its damage, and the damaged program."""

    name: str
    kinds: tuple[str, ...]
    program: Program

    def __str__(self) -> str:
        return f"{self.name} after {', '.join(self.kinds)}"

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """The short form that Hypothesis prints, since programs are long."""
        printer.text(str(self))


@st.composite
def damaged(draw: Callable[..., Any], programs: dict[str, Program]) -> Damaged:
    """Any of the programs, with one to three kinds of damage."""
    name = draw(st.sampled_from(sorted(programs)))
    program = programs[name]
    kinds = draw(st.lists(st.sampled_from(sorted(DAMAGE)), min_size=1, max_size=3))
    for kind in kinds:
        program = DAMAGE[kind](draw, program)
    return Damaged(name=name, kinds=tuple(kinds), program=program)


def campaign(
    count: int,
    *,
    seed: int = 0,
    vectors: str | None = None,
    backends: Sequence[str] = BACKENDS_TRIED,
    builds: Collection[Config] | None = None,
    jobs: int = 1,
) -> dict[str, Any]:
    """Try ``count`` damaged programs, and return the tally of their outcomes.

    Args:
        count: programs.
        seed: seed of the draws.
        vectors: a folder with more programs.
        backends: to run on.
        builds: only programs of this hardware.
        jobs: number of processes, each with a part of them. The draws depend on this number.
    """
    programs = _sources(vectors, builds)
    if "rtl" in backends:
        for number, config in enumerate(sorted({one.config.hardware for one in programs.values()}, key=str)):
            if sys.stderr.isatty():
                print(f"\rbuilding {number + 1}", end="", file=sys.stderr)
            hardware(config)
    begin = time.perf_counter()
    part = partial(_part, vectors=vectors, backends=backends, builds=builds)
    if jobs == 1:
        tally = part(count, seed)
    else:
        counts = [count // jobs + (number < count % jobs) for number in range(jobs)]
        seeds = [seed + number * _APART for number in range(jobs)]
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            tally = Tally.together(backends, pool.map(part, counts, seeds))
    return {
        "programs": tally.done,
        "sources": len(programs),
        "compared": tally.compared,
        "outcomes": {backend: dict(found.most_common()) for backend, found in tally.outcomes.items()},
        "token_check": dict(tally.verdicts.most_common()),
        "damage": dict(tally.damage.most_common()),
        "slowest_seconds": round(tally.slowest, 3),
        "seconds": round(time.perf_counter() - begin, 1),
    }


class Tally:
    """The outcomes of some programs.

    Attributes:
        outcomes: by backend, the number of programs with each cause.
        verdicts: the number of programs with each verdict of the token check.
        damage: the number of programs with each kind of damage.
        done: number of programs.
        compared: number of programs on which simulator and hardware were compared.
        slowest: largest time of a program in seconds.
    """

    def __init__(self, backends: Sequence[str]) -> None:
        self.outcomes = {backend: collections.Counter[str]() for backend in backends}
        self.verdicts, self.damage = collections.Counter[str](), collections.Counter[str]()
        self.done = self.compared = 0
        self.slowest = 0.0

    def note(self, kinds: Sequence[str], result: Trial) -> None:
        """One more."""
        self.verdicts[result.verdict] += 1
        self.damage.update(kinds)
        for backend, cause in result.causes.items():
            self.outcomes[backend][cause] += 1
        self.slowest = max(self.slowest, result.seconds)
        self.done += 1
        self.compared += result.compared

    @classmethod
    def together(cls, backends: Sequence[str], parts: Iterable["Tally"]) -> "Tally":
        """Of all parts."""
        whole = cls(backends)
        for part in parts:
            for backend, found in part.outcomes.items():
                whole.outcomes[backend] += found
            whole.verdicts += part.verdicts
            whole.damage += part.damage
            whole.done += part.done
            whole.compared += part.compared
            whole.slowest = max(whole.slowest, part.slowest)
        return whole


def _sources(vectors: str | None, builds: Collection[Config] | None) -> dict[str, Program]:
    """Those of some hardware; None: of any."""
    return {
        name: program
        for name, program in sources(vectors).items()
        if builds is None or program.config.hardware in builds
    }


def _part(
    count: int,
    seed: int,
    *,
    vectors: str | None,
    backends: Sequence[str],
    builds: Collection[Config] | None,
) -> Tally:
    """Try some programs, in this process."""
    tally = Tally(backends)

    @hypothesis_seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(_sources(vectors, builds)), st.integers(0, 3))
    def attack(victim: Damaged, pads_seed: int) -> None:
        try:
            result = trial(victim.program, pads_seed, backends)
        except BaseException:
            FAILURE.write_text(
                f"# {victim}, seed {pads_seed}\n{disassemble(victim.program)}", encoding="utf-8"
            )
            raise
        tally.note(victim.kinds, result)
        if sys.stderr.isatty() and tally.done % 100 == 0:
            print(f"\r{tally.done} of {count}", end="", file=sys.stderr)

    if count:
        attack()
    return tally


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="damaged programs to try (10000)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with its part (1)")
    parser.add_argument(
        "--vectors", metavar="DIR", default=os.environ.get("ACCEL_VECTORS"), help="other programs"
    )
    parser.add_argument(
        "--backends", default=",".join(BACKENDS_TRIED), help="those to run on, separated by commas"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    if chosen.jobs < 1:
        parser.error("--jobs is at least 1")
    backends = tuple(chosen.backends.split(","))
    for backend in backends:
        if backend not in BACKENDS:
            parser.error(f"the backend is {backend!r}; {nearest(backend, BACKENDS)}")
    found = campaign(
        chosen.count, seed=chosen.seed, vectors=chosen.vectors, backends=backends, jobs=chosen.jobs
    )
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"{found['programs']:,} damaged programs from {found['sources']} sources, {found['seconds']} s;",
        end=" ",
    )
    print(f"the slowest took {found['slowest_seconds']} s")
    if "rtl" in backends:
        print(f"simulator and hardware compared on every cycle: {found['compared']:,}")
    for title, tally in [
        *found["outcomes"].items(),
        ("token check", found["token_check"]),
        ("damage", found["damage"]),
    ]:
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in tally.items()))


if __name__ == "__main__":
    main()
