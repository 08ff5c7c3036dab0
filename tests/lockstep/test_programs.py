"""Compiled programs, the directed programs of ``tests/programs``, and vectors of other
compilers."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.base.records import replace
from accel.core.config import NAMED, RUN_FIELDS, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Unknown, classes_of
from accel.core.isa.field_widths import OPCODE_BITS
from accel.run.lockstep import Lockstep, Scope, lockstep
from accel.run.program import Program
from accel.run.replay import load_any, load_test, replay
from tests.lockstep.builds import BUILDS, THOROUGH, TINY, built, each, group, same_geometry
from tests.programs import handmade
from tests.thorough import also, grouped

FILES = sorted((Path(__file__).parents[1] / "programs").glob("*.s"))


def directed_parameter(path: Path) -> Any:
    """A directed program as a test parameter, in the group of its machine. If only builds for ``--thorough``
    run it, so does the program."""
    text = path.read_text(encoding="utf-8")
    (name, changes) = re.findall(r"^\.config (\S+)(.*)", text, re.MULTILINE)[0]
    config = NAMED[name].override(dict(change.split("=") for change in changes.split()))
    builds = same_geometry(config)
    return grouped(
        group(config), path, thorough=name == "gemm8x8" or (bool(builds) and THOROUGH.issuperset(builds))
    )


EACH = [directed_parameter(path) for path in FILES]


def assert_equal(program: Program, *, seed: int = 0, hostile: bool = False) -> Lockstep:
    found = lockstep(program, built(program.config), seed=seed, hostile=hostile)
    assert found.difference is None
    return found


def on(build: Config, program: Program) -> Program:
    """The program with the timing of a build and the program's own run settings."""
    own = {name: getattr(program.config, name) for name in RUN_FIELDS}
    return program.with_timing(replace(build, **own))


# --- compiled --------------------------------------------------------------------------------------


SHAPES = [
    grouped(group(NAMED[name]), name, shape, thorough=name == "gemm8x8")
    for name, shapes in {
        "vta": [(16, 16, 16), (64, 64, 64), (33, 50, 47)],
        "gemm8x8": [(8, 8, 8), (64, 64, 64), (13, 21, 9)],
        "tiny": [(1, 1, 1), (24, 40, 20)],
    }.items()
    for shape in shapes
]
"""The model of ``gemm8x8`` takes long to build, so only ``--thorough`` builds it."""
HOSTILE_SHAPES = [one for one in SHAPES if one.values[1] in {(33, 50, 47), (13, 21, 9), (24, 40, 20)}]


@cache
def gemm(config: str, shape: tuple[int, int, int], vthreads: int | None = None) -> Program:
    return accel.build(accel.gemm(*shape, bias=True, shift=6), config, vthreads=vthreads)


@pytest.mark.parametrize(("config", "shape"), SHAPES)
@pytest.mark.parametrize("timing", [{}, {"serial": 1}, {"read_latency": 2, "write_latency": 1}], ids=str)
def test_gemm(config: str, shape: tuple[int, int, int], timing: dict[str, int]) -> None:
    program = gemm(config, shape)
    found = assert_equal(program.with_timing(replace(program.config, **timing)))
    assert (found.cause, found.scope) == (Cause.NONE, Scope.EVERYTHING)


@pytest.mark.xdist_group(group(TINY))
@pytest.mark.parametrize("vthreads", [1, 2, 4])
@pytest.mark.parametrize("latency", [8, 200])
def test_virtual_threads(vthreads: int, latency: int) -> None:
    program = gemm("tiny", (32, 64, 32), vthreads)
    assert_equal(program.with_timing(replace(program.config, read_latency=latency)))


@pytest.mark.parametrize("build", each(same_geometry(NAMED["tiny"])))
def test_gemm_on_other_timings(build: str) -> None:
    assert_equal(on(BUILDS[build], gemm("tiny", (24, 40, 20), 1)))


@pytest.mark.parametrize("build", each())
def test_opcodes_that_a_machine_lacks(build: str) -> None:
    """Those between others, too: with own operations alone, 5 and 6 are missing and 7 is not."""
    config = BUILDS[build]
    for opcode in {*range(1 << OPCODE_BITS)} - classes_of(config).keys():
        found = assert_equal(handmade(Unknown(opcode=opcode), config=config))
        assert found.cause is Cause.OPCODE


@pytest.mark.parametrize("build", each(["npu"]))
@pytest.mark.parametrize("weight_dtype", ["int8", "uint8"])
def test_products_with_two_zero_points(build: str, weight_dtype: str) -> None:
    quantized = accel.Quantized(scale=0.003, input_zero=-9, weight_zero=77, weight_dtype=weight_dtype)
    workload = accel.gemm(9, 10, 11, batch=3, quantized=quantized)
    found = assert_equal(accel.build(workload, BUILDS[build]))
    assert (found.cause, found.scope) == (Cause.NONE, Scope.EVERYTHING)


@pytest.mark.parametrize(("config", "shape"), HOSTILE_SHAPES)
def test_hostile_memory(config: str, shape: tuple[int, int, int]) -> None:
    found = assert_equal(gemm(config, shape), hostile=True, seed=5)
    assert (found.scope, found.events) == (Scope.RESULT, None)


@pytest.mark.xdist_group(group(TINY))
@pytest.mark.parametrize(("hostile", "scope"), [(False, Scope.EVERYTHING), (True, Scope.END)])
def test_a_run_that_ends_by_its_limit(hostile: bool, scope: Scope) -> None:
    """A limit that ends the simulator's run also ends the hardware's."""
    program = gemm("tiny", (24, 40, 20))
    found = lockstep(program, built(program.config), max_cycles=300, hostile=hostile)
    assert found.difference is None
    assert (found.cause, found.scope, found.cycles) == (Cause.LIMIT, scope, 300)


# --- directed --------------------------------------------------------------------------------------


@cache
def directed(path: Path) -> Program:
    return load_test(path)


@pytest.fixture
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether the suite runs with ``--thorough``."""
    return bool(pytestconfig.getoption("--thorough"))


def alternatives(program: Program, *, thorough: bool = True) -> list[Program]:
    """The program on every build of its geometry whose counters hold the program's initial tokens.

    Args:
        thorough: also on builds that are for ``--thorough`` only.
    """
    if program.config.hardware in {NAMED["vta"].hardware, NAMED["gemm8x8"].hardware}:
        return [program]
    names = same_geometry(program.config)
    builds = [BUILDS[name] for name in names if thorough or name not in THOROUGH]
    found = [on(build, program) for build in builds if max(program.start.tokens) <= build.token_limit]
    assert found, "tests/lockstep/builds.py has no such build"
    return found


@pytest.mark.parametrize("path", EACH, ids=[path.stem for path in FILES])
def test_directed(path: Path, thorough: bool) -> None:
    for program in alternatives(directed(path), thorough=thorough):
        assert_equal(program)
        assert_equal(program, hostile=True)


@pytest.mark.parametrize("path", EACH, ids=[path.stem for path in FILES])
def test_directed_expectations(path: Path, thorough: bool) -> None:
    """Expectations that the simulator meets hold on the hardware too, including scratchpads
    and tokens."""
    met = 0
    for program in alternatives(directed(path), thorough=thorough):
        engine = built(program.config)
        wanted = replay(program, backend="sim").differences
        assert replay(program, backend="rtl", hardware=engine).differences == wanted
        met += not wanted
    assert met


def test_directed_programs_end_in_every_way() -> None:
    """Bus errors, stops and timeouts are in test_errors."""
    causes = {program.expected.cause for program in map(directed, FILES) if program.expected is not None}
    assert causes == set(Cause) - {Cause.BUS, Cause.STOPPED, Cause.TIMEOUT}


# --- other compilers' ------------------------------------------------------------------------------


@pytest.mark.parametrize("post", [0, also(1)])
def test_vectors(vector: Path, post: int) -> None:
    """Vectors run on their geometry, and on the same geometry with ``post=1``."""
    program = load_any(vector)
    program = replace(program, config=replace(program.config, post=post))
    assert assert_equal(program, seed=1).cause is Cause.NONE
    assert replay(program, backend="rtl", hardware=built(program.config)).differences == ()
