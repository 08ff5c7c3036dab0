"""Declarations of operators agree with their functions and reach all parts that use them."""

import inspect

import pytest

import accel
from accel.base.errors import ShapeError
from accel.cli.commands.compile import compile_command
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_registry import (
    OPERATORS,
    WORKLOADS,
    make_workload,
    parameters_of,
    takes_tuples,
)
from accel.sweeps.sweep_grid import grid_keys
from tests.expect import refused

EVERY = pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)

SMALL = {"M": 4, "N": 2, "K": 8, "IC": 8, "OC": 8, "C": 8, "H": 4, "W": 4, "kernel": 2}


@EVERY
def test_parameters_are_those_of_the_function(operator: Operator) -> None:
    signature = inspect.signature(operator.make).parameters
    assert [one.name for one in operator.parameters] == list(signature)
    assert list(parameters_of(operator.name)) == list(signature)
    assert WORKLOADS[operator.name] is operator.make
    for one in operator.parameters:
        if one.name in ("N", "M", "K"):
            continue
        annotation = str(signature[one.name].annotation)
        assert ("tuple" in annotation) == one.kind.is_tuple == takes_tuples(operator.name, one.name)
        assert ("bool" in annotation) == (one.kind.value == "flag")


@EVERY
def test_no_two_parameters_share_a_name_or_an_option(operator: Operator) -> None:
    options = [option for one in (*operator.parameters, *operator.joint_parameters) for option in one.options]
    assert len(set(options)) == len(options)
    for joint in operator.joint_parameters:
        assert operator.parameters_named(joint.name) == set(joint.names)
    for one in operator.parameters:
        assert (
            operator.parameters_named(one.name) == operator.parameters_named(one.name.lower()) == {one.name}
        )
    assert operator.parameters_named("nothing") == set()


@EVERY
def test_declarations_reach_all_users(operator: Operator) -> None:
    """The command line, sweeps and default schedules know each operator."""
    command = compile_command.commands[operator.command]
    single = [one for one in operator.parameters if one not in operator.records]
    fields = [field for record in operator.records for field in record.fields]
    assert {one.name for one in (*single, *fields, *operator.joint_parameters)} <= {
        p.name for p in command.params
    }
    assert {side.key for side in operator.planner.sides} <= set(grid_keys())
    assert all(example.startswith(f"{operator.command} ") for example in operator.examples)
    needed = {one.name: SMALL[one.name] for one in operator.parameters if operator.is_needed(one)}
    assert accel.build(make_workload(operator.name, needed), "tiny").run().mismatches == 0


def test_values_by_any_name() -> None:
    wanted = accel.conv2d(2, 8, 4, 5, 16, (3, 1), padding=1)
    for names in (
        {"N": 2, "IC": 8, "H": 4, "W": 5, "OC": 16, "kernel": (3, 1), "padding": 1},
        {"batch": 2, "ic": 8, "size": (4, 5), "oc": 16, "kernel": [3, 1], "padding": 1},
    ):
        found = make_workload("conv2d", names)
        assert found == wanted
    square = make_workload("conv2d", {"ic": 8, "size": 4, "oc": 16, "kernel": 3})
    assert square == accel.conv2d(1, 8, 4, 4, 16, 3)
    assert square == make_workload("conv2d", {"ic": 8, "size": (4,), "oc": 16, "kernel": 3})


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("gem", {}, "'gem' is not a workload; did you mean 'gemm'?"),
        ("gemm", {"shft": 1}, "'shft' is not a parameter of gemm; did you mean 'shift'?"),
        ("gemm", {"M": 1, "m": 1}, "M of gemm is given twice, as M and as m"),
        ("dense", {"OC": 1}, "dense lacks IC (inputs of the layer); each must be given"),
        ("conv2d", {"size": [1, 2, 3]}, "size is [1, 2, 3]; it must be one number, or H and W"),
    ],
)
def test_invalid_parameters(name: str, values: dict[str, object], message: str) -> None:
    with refused(ShapeError, message):
        make_workload(name, values)
