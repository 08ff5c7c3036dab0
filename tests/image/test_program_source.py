"""The source of a program, as data and back."""

import json
from typing import Any

import pytest
from hypothesis import given

import accel
from accel.base.errors import ProgramError
from accel.image.program_source import Options, Source
from tests.expect import refused
from tests.images import sources
from tests.programs import gemm_program


@given(source=sources())
def test_sources_are_read_back(source: Source) -> None:
    assert Source.from_data(json.loads(json.dumps(source.to_data()))) == source


def test_what_compilation_notes() -> None:
    workload = accel.gemm(3, 9, 5, bias=True, shift=3)
    program = accel.build(workload, "tiny")
    assert program.source is not None
    assert program.source.options == Options(workload="gemm", parameters=workload.parameters, fold=True)
    assert program.source.schedule == program.schedule().steps
    assert list(program.source.to_data()) == ["expression", "schedule", "options"]
    assert list(program.source.options.to_data()) == ["workload", *workload.parameters, "fold"]


def test_a_schedule_has_no_workload() -> None:
    program = accel.build(gemm_program().schedule(), "tiny")
    assert program.source is not None
    assert program.source.options == Options(fold=True)
    assert program.source.to_data()["options"] == {"fold": True}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the source is a list; a JSON object is needed"),
        ({"schedul": []}, "the source has 'schedul'; did you mean 'schedule'?"),
        ({"expression": 3}, "the expression of the source is an integer; a JSON object is needed"),
        ({"schedule": {}}, "the schedule of the source is an object; it must be a list of steps"),
        ({"options": "x"}, "the options of the source are text; a JSON object is needed"),
        ({"options": {"workload": 3}}, "the workload of the source is 3; it must be a name"),
        ({"options": {"fold": 1}}, "fold is 1 in the source; it must be true or false"),
    ],
)
def test_what_is_refused(data: Any, message: str) -> None:
    with refused(ProgramError, message):
        Source.from_data(data)
