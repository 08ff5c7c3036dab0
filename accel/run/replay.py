"""Conformance vectors and tests in assembly."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from accel.assembly import load_assembly
from accel.base.errors import MachineError, MismatchError, ProgramError
from accel.base.records import replace
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS, UNTIMED
from accel.core.fault_causes import Cause
from accel.core.token_rules import Counter
from accel.image.conformance_vectors import is_vector, load_vector
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.test_scenario import Expected
from accel.run.backends.open_backend import open_backend
from accel.run.execute_program import launch
from accel.run.program import Program, as_program
from accel.run.run_figures import ErrorFigures, RunFigures
from accel.run.run_options import RunOptions
from accel.sim.functional.executor import Order
from accel.sim.functional.scratchpads import Scratchpads

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine

TEXT_SUFFIX = ".s"
PROGRAM_SUFFIX = ".accel"


class Replay(Struct, frozen=True, kw_only=True):
    """The outcome of one program. ``passed`` is None if this backend does not determine it."""

    name: str
    path: str
    passed: bool | None
    error: str | None
    differences: tuple[str, ...]
    figures: RunFigures

    def to_dict(self) -> dict[str, Any]:
        known = {"name": self.name, "path": self.path, "passed": self.passed}
        return known | {"differences": list(self.differences)} | self.figures.to_dict()


def load_any(path: str | Path) -> Program:
    """Load a program file, an assembly text (``.s``) or a vector's folder."""
    source = Path(path)
    if source.is_dir() and is_vector(source):
        return as_program(load_vector(source))
    if source.suffix == TEXT_SUFFIX:
        return as_program(load_assembly(source))
    return Program.load(source)


def program_name(path: Path) -> str:
    return path.stem if path.suffix in (TEXT_SUFFIX, PROGRAM_SUFFIX) else path.name


def find_programs(paths: list[Path]) -> list[Path]:
    """Find programs in files and folders, in order, without duplicates."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ProgramError(f"{str(path)!r} does not exist; give programs, or folders that contain some")
        here = list(_programs_in(path)) if path.is_dir() else [path]
        if not here:
            raise ProgramError(
                f"{str(path)!r} contains no program; programs are {PROGRAM_SUFFIX} files, "
                f"{TEXT_SUFFIX} files, and folders with insn.bin"
            )
        found += here
    return list(dict.fromkeys(found))


def _programs_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (TEXT_SUFFIX, PROGRAM_SUFFIX) and path.is_file():
            yield path
        elif path.name == "insn.bin":
            yield path.parent


def load_test(path: str | Path) -> Program:
    program = load_any(path)
    if program.expected is None:
        raise ProgramError(f"program {str(path)!r} has no expected results; .expect gives them in a test")
    return program


def load_tests(paths: list[Path]) -> list[tuple[Path, Program]]:
    """Load programs. Those in folders without expected results are skipped."""
    found = []
    for path in find_programs(paths):
        program = load_test(path) if path in paths else load_any(path)
        if program.expected is not None:
            found.append((path, program))
    if not found:
        raise ProgramError(
            f"no program in {str(paths[0])!r} has expected results; .expect gives them in a test"
        )
    return found


def replay(
    program: Program,
    *,
    name: str = "",
    path: str = "",
    backend: str = "functional",
    hardware: "Engine | None" = None,
    seed: int = 0,
    order: Order = "program",
    max_cycles: int = DEFAULT_MAX_CYCLES,
    max_uops: int = DEFAULT_MAX_UOPS,
) -> Replay:
    """Run a program from random scratchpads, apart from presets, and compare."""
    expected = program.expected or Expected()
    options = RunOptions(seed=seed, order=order, max_cycles=max_cycles, max_uops=max_uops, look=True)
    begin = time.perf_counter()
    dram = program.dram()
    pads = Scratchpads.random(program.config, seed)
    pack_seconds = time.perf_counter() - begin
    with open_backend(backend, program.config, options, hardware=hardware) as opened:
        done = launch(program, dram, pads, opened, options)
    stopped = done.error
    differences = [] if stopped is None and expected.cause is Cause.NONE else _outcome(expected, stopped)
    if not differences:
        differences += _memory(program, expected, dram) + _scratchpads(expected, pads)
        left = done.execution.tokens
        if expected.tokens is not None and left != expected.tokens:
            found = dict(zip((c.label for c in Counter), left, strict=True))
            differences.append("tokens left: " + ", ".join(f"{n} {label}" for label, n in found.items()))
        if expected.racy and not program.check().race_count:
            differences.append("a race is expected; the token check finds none")
    figures = done.result({}, pack_seconds=pack_seconds).figures()
    if stopped is None and expected.memory:
        wrong = sum(len(_differing(program, dram, *region)) for region in expected.memory)
        figures = replace(figures, mismatches=wrong)
    if stopped is None and differences:
        figures = replace(figures, error=ErrorFigures.of(MismatchError(differences[0])))
    applies = backend != UNTIMED or expected.cause is not Cause.LIMIT or program.start.max_cycles is None
    return Replay(
        name=name,
        path=path,
        passed=not differences if applies else None,
        error=None if stopped is None else str(stopped),
        differences=tuple(differences) if applies else (),
        figures=figures,
    )


def _outcome(expected: Expected, stopped: MachineError | None) -> list[str]:
    at = "" if expected.instruction is None else f" at instruction {expected.instruction}"
    wanted = "" if expected.cause is Cause.NONE else f"; {expected.cause.label}{at} is expected"
    if stopped is None:
        return [f"the run ends without an error{wanted}"]
    same = stopped.cause is expected.cause and expected.instruction in (None, stopped.index)
    return [] if same else [f"{stopped}{wanted}"]


def _differing(program: Image, dram: Dram, offset: int, content: bytes) -> list[int]:
    address = program.config.mem_base + offset
    found = dram.read(address, len(content))
    wrong = np.flatnonzero(found != np.frombuffer(content, dtype=np.uint8))
    return [address + at for at in wrong.tolist()]


def _memory(program: Image, expected: Expected, dram: Dram) -> list[str]:
    count, first = 0, ""
    for offset, content in expected.memory:
        wrong = _differing(program, dram, offset, content)
        if wrong and not count:
            at = wrong[0]
            wanted = content[at - program.config.mem_base - offset]
            first = f"{at:#x} holds {int(dram.read(at, 1)[0]):#04x} instead of {wanted:#04x}"
        count += len(wrong)
    return [f"{count} bytes differ; the first, {first}"] if count else []


def _scratchpads(expected: Expected, pads: Scratchpads) -> list[str]:
    found = []
    for one in expected.contents:
        wrong = pads.differing(one)
        if len(wrong):
            at = int(wrong[0])
            array = getattr(pads, one.scratchpad)
            wanted = np.frombuffer(one.data, dtype=array.dtype.newbyteorder("<"))
            wanted = wanted.reshape(-1, *array.shape[1:])[at - one.element]
            found.append(
                f"{len(wrong)} elements of {one.scratchpad} differ; the first, {one.scratchpad}[{at}] "
                f"holds {array[at].tolist()} instead of {wanted.tolist()}"
            )
    return found
