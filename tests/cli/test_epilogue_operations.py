"""Declared operations on the command line: ``accel compile OPERATOR --operation``."""

from pathlib import Path

import numpy as np
import pytest

import accel as package
from accel.run.program import Program
from tests.cli.conftest import Shell
from tests.compiler.convs import any_inputs, expected
from tests.own_operations import OWN

GAP, PRODUCT = OWN[:2]
MACHINE = ["--config", "tiny", "--set", "alu_ops=+t_gap,t_product"]
SIZES = {
    "gemm": ["-m", 9, "-n", 20, "-k", 7],
    "dense": ["-n", 3, "--ic", 7, "--oc", 20],
    "conv2d": ["--ic", 4, "--oc", 20, "--size", 5, "--kernel", 3],
    "conv2d-transpose": ["--ic", 4, "--oc", 20, "--size", 3, "--kernel", 2, "--stride", 2],
}


@pytest.mark.parametrize("operator", SIZES)
def test_the_options_are_those_of_python(operator: str, accel: Shell) -> None:
    """Each in an option of its own, or all in one."""
    sizes = {
        "gemm": (9, 20, 7),
        "dense": (3, 7, 20),
        "conv2d": (1, 4, 5, 5, 20, 3),
        "conv2d-transpose": (1, 4, 3, 3, 20, 2),
    }[operator]
    more = {"stride": 2} if operator == "conv2d-transpose" else {}
    steps = [(GAP, -7), (PRODUCT, "channel"), ("add", "channel")]
    make = getattr(package, operator.replace("-", "_"))
    machine = package.machine("tiny", alu_ops="+t_gap,t_product")
    program = package.build(make(*sizes, bias=True, shift=2, operations=steps, **more), machine)
    several = [
        word for step in ("t_gap=-7", "t_product=channel", "add=channel") for word in ("--operation", step)
    ]
    for words in (several, ["--operations", "t_gap=-7, t_product=channel,add=channel"]):
        accel(
            "compile", operator, *SIZES[operator], *MACHINE, "--bias", "--shift", 2, *words, "-o", "p.accel"
        )
        assert Program.load("p.accel").code == program.code


def test_a_program_runs_with_inputs(accel: Shell, tmp_path: Path) -> None:
    """The operand has its own name among the inputs, and the report the predicted cycles."""
    words = ["--operation", "t_gap=7", "--operation", "t_product=channel", "--bias", "--shift", 1]
    figures = accel("compile", "conv2d", *SIZES["conv2d"], *MACHINE, *words, "-o", "p.accel", "--json").json
    workload = package.conv2d(
        1, 4, 5, 5, 20, 3, bias=True, shift=1, operations=[(GAP, 7), (PRODUCT, "channel")]
    )
    inputs = any_inputs(workload, 1)
    given = list[str]()
    for name, values in inputs.items():
        np.save(tmp_path / f"{name}.npy", values)
        given += ["--input", f"{name}={name}.npy"]
    run = accel("run", "p.accel", *given, "--output", "out=out.npy", "--json").json
    assert run["mismatches"] == 0
    assert run["cycles"] == pytest.approx(figures["plan"]["predicted_cycles"], rel=0.05)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected(workload, inputs))
    accel("check", "p.accel")
    (compared,) = accel("lockstep", "p.accel", "--engine", "pysim", "--json").json["programs"]
    assert compared["equal"]


def test_a_schedule_is_tuned(accel: Shell) -> None:
    words = [*SIZES["gemm"], *MACHINE, "--operation", "t_product=channel", "--shift", 3]
    accel("tune", "gemm", *words, "--trials", 3, "--records", "r.jsonl")
    accel("compile", "gemm", *words, "--tuned", "r.jsonl", "-o", "p.accel")
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--operation", "t_gap"],
            "operations has 't_gap'; it must be pairs of an operation and its operand, as ('max', 7), or "
            "text of the form NAME=N | NAME=channel",
        ),
        (["--operation", "t_gap=40000"], "the operand of t_gap is 40000; it must be in -32768..32767"),
        (
            ["--operation", "t_gap=0x7"],
            "the operand of t_gap is '0x7'; it must be a number, or 'channel' for one value per channel",
        ),
        (
            ["--operation", "t_sum=7"],
            "operation 't_sum' crosses the lanes of an element; a tensor expression has no lanes: declare an "
            "intrinsic whose emitter uses it",
        ),
        (
            ["--operation", "t_gap=7", "--scale", 0.5],
            "operations and quantized are given; the store unit requantizes sums, and the ALU has the "
            "operations: give shift and clip instead of a scale",
        ),
        (
            ["--operation", "t_gap=7,t_nor=channel"],
            "the program needs the ALU operation 't_nor'; configuration 'tiny' has "
            "alu_ops=min,max,add,shr,mul,t_gap,t_product: take a machine with "
            "alu_ops=+t_gap,t_product,t_nor",
        ),
    ],
)
def test_refusals(words: list[object], message: str, accel: Shell) -> None:
    accel.refused("compile", "gemm", *SIZES["gemm"], *MACHINE, *words, "-o", "p.accel", message=message)
