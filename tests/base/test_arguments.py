"""Arguments of the public functions: numpy's integers and booleans pass, all else is named and refused."""

import json
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import accel
from accel import te
from accel.base.arguments import check_integer, plain_integer, plain_integers
from accel.base.errors import AccelError, ConfigError, ProgramError, ScheduleError, ShapeError, TensorizeError
from accel.compiler.schedule.schedule_files import load_steps
from accel.core.config import Config
from tests.expect import refused
from tests.programs import gemm_program

Make = Callable[..., Any]

GEMM = partial(accel.gemm, 3, 9, 5)
DENSE = partial(accel.dense, 3, 9, 5)
CONV = partial(accel.conv2d, 1, 4, 6, 7, 8, 3)
TRANSPOSED = partial(accel.conv2d_transpose, 1, 4, 6, 7, 8, 3)
MEANS = partial(accel.avg_pool2d, 1, 4, 5, 5, 3)
FLAGS = [
    *[(GEMM, name) for name in ("transpose_a", "transpose_b", "bias", "residual", "relu")],
    *[(make, name) for make in (DENSE, CONV, TRANSPOSED) for name in ("bias", "residual", "relu")],
    (MEANS, "count_padding"),
]


class Index:
    """An integer as Python's protocols know it."""

    def __index__(self) -> int:
        return 8


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (8, 8),
        (-3, -3),
        (np.int64(8), 8),
        (np.uint8(8), 8),
        (np.array(8), 8),
        (Index(), 8),
        (True, None),
        (np.bool_(True), None),
        (8.0, None),
        (np.float64(8), None),
        ("8", None),
        (None, None),
        (np.array([8, 9]), None),
        (np.array([8]), None),
    ],
)
def test_integers(value: object, plain: int | None) -> None:
    found = plain_integer(value)
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("values", "plain"),
    [
        ([1, np.int8(2)], (1, 2)),
        (np.array([3, 4]), (3, 4)),
        ((), ()),
        ([1, None], None),
        (3, None),
        ("12", None),
        (np.array([[1]]), None),
        (np.array(1), None),
    ],
)
def test_several_integers(values: object, plain: tuple[int, ...] | None) -> None:
    assert plain_integers(values) == plain


def test_bounds_are_said() -> None:
    assert check_integer("n", np.int8(31), least=0, most=31) == 31
    for value, bounds, right in (
        (0, {}, "a positive integer"),
        (-1, {"least": 0}, "an integer from 0 on"),
        (32, {"least": 0, "most": 31}, "in 0..31"),
        (True, {}, "a positive integer"),
    ):
        with refused(ShapeError, f"n is {value!r}; it must be {right}"):
            check_integer("n", value, **bounds)
    with refused(ScheduleError, "n is 'a'; it must be a positive integer"):
        check_integer("n", "a", error=ScheduleError)


# --- workloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "name"), FLAGS)
@pytest.mark.parametrize("value", ["yes", "no", 1, 0, 2, None, [True]])
def test_what_is_no_flag_is_refused(make: Make, name: str, value: object) -> None:
    with refused(ShapeError, f"{name} is {value!r}; it must be True or False"):
        make(**{name: value})


@pytest.mark.parametrize(("make", "name"), FLAGS)
@pytest.mark.parametrize("value", [True, False])
def test_flags_of_numpy_are_pythons(make: Make, name: str, value: bool) -> None:
    found = make(**{name: np.bool_(value)})
    assert found.parameters[name] is value
    assert found == make(**{name: value})


@pytest.mark.parametrize(
    ("make", "sizes", "options"),
    [
        (accel.gemm, (3, 9, 5), {"shift": 4, "clip": (-3, 90)}),
        (accel.dense, (3, 9, 5), {"shift": 0, "clip": [0, 9]}),
        (accel.conv2d, (1, 4, 6, 7, 8, 3), {"groups": 2, "stride": (2, 1), "padding": 1, "dilation": [1, 2]}),
        (accel.conv2d_transpose, (1, 4, 6, 7, 8, 3), {"stride": 2, "output_padding": (1, 0)}),
        (accel.avg_pool2d, (1, 4, 5, 5, 3), {"padding": (1, 0, 1, 0)}),
        (accel.max_pool2d, (1, 4, 5, 5, (3, 2)), {"stride": 1}),
        (accel.global_avg_pool2d, (1, 4, 5, 5), {}),
    ],
)
def test_integers_of_numpy_make_the_same_workload(
    make: Make, sizes: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """The parameters are plain, so that they can be saved as JSON."""
    found = make(*map(np.array, sizes), **{name: np.array(value) for name, value in options.items()})
    right = make(*sizes, **options)
    assert found == right
    assert json.dumps(found.parameters) == json.dumps(right.parameters)
    assert all(type(n) is int for n in found.output.shape)


@pytest.mark.parametrize("size", [True, 8.0, "8", 0, np.bool_(True), np.float32(8)])
def test_what_is_no_size_is_refused(size: object) -> None:
    with refused(ShapeError, f"M is {size!r}; it must be a positive integer"):
        accel.gemm(size, 9, 5)  # type: ignore[arg-type]


def test_a_program_of_numpys_integers_is_saved_as_any(tmp_path: Any) -> None:
    m = accel.machine("tiny", read_latency=np.int64(20))  # type: ignore[arg-type]
    program = accel.build(accel.gemm(np.int64(8), 8, np.uint8(8)), m, vthreads=np.int32(1))  # type: ignore[arg-type]
    program.save(tmp_path / "p.accel")
    assert accel.Program.load(tmp_path / "p.accel").config == m.config
    right = accel.build(accel.gemm(8, 8, 8), accel.machine("tiny", read_latency=20), vthreads=1)
    assert program.code == right.code
    result = program.run(seed=np.int64(3), max_cycles=np.int64(10**6), write_latency=np.int8(9))  # type: ignore[arg-type]
    assert result.cycles == right.run(seed=3, write_latency=9).cycles
    functional = program.run(backend="functional", order="random", seed=np.int64(3))  # type: ignore[arg-type]
    np.testing.assert_array_equal(functional.outputs["C"], result.outputs["C"])


def test_a_configurations_fields_are_pythons() -> None:
    assert type(Config(name="mine", batch=np.int64(2)).batch) is int  # type: ignore[arg-type]


def test_schedules_take_numpys_integers() -> None:
    A = te.placeholder((np.int64(16), 8), name="A")
    B = te.compute(np.array([16, 8]), lambda y, x: A[y, x] + np.int8(3), name="B")
    s = te.create_schedule(B)
    s[B].split("y", np.int64(4))
    s[B].tile("yi", "x", np.int64(2), np.int8(4))
    json.dumps(s.steps)
    with refused(ScheduleError, "the factor for yo of B is 2.0; it must be a positive integer"):
        s[B].split("yo", 2.0)  # type: ignore[arg-type]


# --- what is far from right ------------------------------------------------------------------------

INPUTS = "they must be arrays by name, as in a dict"
MACHINE = (
    "it must be a configuration's name, as 'vta', the path of a TOML or JSON file, a Config or a Machine"
)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: accel.build(3, "tiny"),  # type: ignore[arg-type]
            ScheduleError,
            "the target is 3; it must be a workload, as accel.gemm makes, or a schedule",
        ),
        (lambda: accel.build(GEMM(), 3), ConfigError, f"the machine is 3; {MACHINE}"),  # type: ignore[arg-type]
        (lambda: accel.machine(None), ConfigError, f"the machine is None; {MACHINE}"),  # type: ignore[arg-type]
        (lambda: accel.Session(3), ConfigError, f"the machine is 3; {MACHINE}"),  # type: ignore[arg-type]
        (lambda: PROGRAM.run([1, 2]), ShapeError, f"the inputs are a list; {INPUTS}"),
        (lambda: PROGRAM.run(np.zeros(3)), ShapeError, f"the inputs are a ndarray; {INPUTS}"),
        (lambda: PROGRAM.reference([1]), ShapeError, f"the inputs are a list; {INPUTS}"),
        (lambda: PROGRAM.run({1: 2}), ShapeError, "1 is not an input of the program; valid are A, B"),
        (
            lambda: accel.build(GEMM(), "tiny", constants=[1]),  # type: ignore[arg-type]
            ShapeError,
            f"the constants are a list; {INPUTS}",
        ),
        (lambda: PROGRAM.run(max_cycles="a"), AccelError, "max_cycles is 'a'; it must be a positive integer"),
        (lambda: PROGRAM.run(max_uops=0), AccelError, "max_uops is 0; it must be a positive integer"),
        (lambda: PROGRAM.run(seed=1.5), AccelError, "the seed is 1.5; it must be an integer from 0 on"),
        (lambda: PROGRAM.run(backend=3), AccelError, "the backend is 3; valid are functional, rtl, sim"),
        (
            lambda: PROGRAM.run(backend="rtl", wave=3),
            ProgramError,
            "the path of the wave file is 3; it must be a string or a path",
        ),
        (
            lambda: accel.Program.load(3),  # type: ignore[arg-type]
            ProgramError,
            "the path of the program is 3; it must be a string or a path",
        ),
        (
            lambda: PROGRAM.save(3),
            ProgramError,
            "the path of the program is 3; it must be a string or a path",
        ),
        (
            lambda: load_steps(3),  # type: ignore[arg-type]
            ProgramError,
            "the path of the schedule is 3; it must be a string or a path",
        ),
        (
            lambda: accel.build(GEMM(), "tiny", vthreads="2"),  # type: ignore[arg-type]
            ScheduleError,
            "the number of virtual threads is '2'; it must be a positive integer",
        ),
        (
            lambda: accel.Session("tiny").run(3),  # type: ignore[arg-type]
            ProgramError,
            "the argument is a int; it must be a program, as accel.build returns",
        ),
        (lambda: accel.Session("tiny").run(PROGRAM, [3]), ShapeError, f"the inputs are a list; {INPUTS}"),
        (
            lambda: accel.Program.load("a\0b"),
            ProgramError,
            "the path of the program is 'a\\x00b'; it must have no zero byte",
        ),
        (
            lambda: accel.build(GEMM(), "tiny", steps=3),  # type: ignore[arg-type]
            ScheduleError,
            "the steps are 3; they must be a list, as Schedule.steps is",
        ),
        (
            lambda: te.create_schedule([3]),  # type: ignore[list-item]
            ScheduleError,
            "an output is 3; it must be a tensor, as from te.compute",
        ),
        (
            lambda: te.compute((8,), 3, name="B"),  # type: ignore[arg-type]
            ShapeError,
            "the computation of B is 3; it must be a function of the indices",
        ),
        (
            lambda: te.sum(1, axis=3),  # type: ignore[arg-type]
            ShapeError,
            "sum runs over 3; it must be made by reduce_axis",
        ),
        (
            lambda: te.clip(1, "a", 3),  # type: ignore[arg-type]
            ShapeError,
            "clip has the range 'a'..3; it must be of two integers",
        ),
        (
            lambda: te.decl_tensor_intrin(3, None),  # type: ignore[arg-type]
            TensorizeError,
            "an intrinsic is declared by 3; it must be what te.compute makes",
        ),
        (
            lambda: te.evaluate([te.placeholder((1,), name="A")], [1]),  # type: ignore[arg-type]
            ShapeError,
            f"the inputs are a list; {INPUTS}",
        ),
        (
            lambda: te.evaluate([te.placeholder((1,), name="A")], {"A": np.ma.zeros(1, np.int8)}),
            ShapeError,
            "A is a masked array; fill in what is masked, as by filled(0)",
        ),
        (
            lambda: te.reduce_axis(5),  # type: ignore[arg-type]
            ShapeError,
            "the bounds of the reduce axis 'k' are 5; they must be two integers",
        ),
        (
            lambda: te.placeholder(5, name="A"),  # type: ignore[arg-type]
            ShapeError,
            "the shape of A is 5; it must be one or more positive integers",
        ),
        (lambda: te.placeholder((5,), name=3), ShapeError, "the name is 3; it must be an identifier"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_such_thing_is_refused(
    call: Callable[[], Any], kind: type[AccelError], message: str
) -> None:
    with refused(kind, message):
        call()


PROGRAM: Any = gemm_program()


def test_a_machine_is_a_machine() -> None:
    m = accel.machine("tiny")
    assert accel.machine(m) == m
    assert accel.machine(m, read_latency=5) == accel.machine("tiny", read_latency=5)


# --- arrays ----------------------------------------------------------------------------------------


def test_a_mask_is_not_ignored() -> None:
    masked = np.ma.masked_array(np.ones((3, 5), np.int8), mask=True)
    right = "fill in what is masked, as by filled(0)"
    with refused(ShapeError, f"A is a masked array; {right}"):
        PROGRAM.run({"A": masked})
    with refused(ShapeError, f"A is a masked array; {right}"):
        PROGRAM.reference({"A": masked, "B": np.ones((5, 9), np.int8)})
    session = accel.Session("tiny")
    with refused(ShapeError, f"A is a masked array; {right}"):
        session.run(PROGRAM, {"A": masked})
    with refused(ShapeError, f"the tensor's array is a masked array; {right}"):
        session.tensor(masked)


# --- equality --------------------------------------------------------------------------------------


def test_workloads_are_equal_if_they_compute_the_same() -> None:
    workload = CONV(bias=True, shift=3)
    for other in (CONV(bias=True, shift=3), pickle.loads(pickle.dumps(workload))):
        assert (other, hash(other)) == (workload, hash(workload))
    for other in (CONV(bias=True), CONV(bias=True, shift=4), CONV(shift=3), DENSE(), 3):
        assert other != workload


def test_repr_of_a_workload() -> None:
    assert repr(MEANS()) == (
        "Workload(avg_pool2d: N=1, C=4, H=5, W=5, kernel=[3, 3], stride=[3, 3], padding=[0, 0, 0, 0], "
        "dilation=[1, 1], count_padding=False)"
    )
