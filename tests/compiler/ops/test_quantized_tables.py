"""Tables: functions of requantized values that the store unit looks up."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError, ShapeError
from accel.core.isa import LoadTab, StoreAdd, StoreReq
from tests.compiler.quantized import any_inputs, convolved, epilogues, finished, products
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right, stages_are_right
from tests.expect import refused
from tests.strategies import examples

MACHINES = [
    accel.machine(name, tab_bytes="1KiB") for name in ("vta-int8", "gemm8x8-int8", "tiny-int8", "ecp5-int8")
]
SQUARES = tuple((value if value < 128 else value - 256) ** 2 // 65 - 128 for value in range(256))


def squares(**others: Any) -> accel.Quantized:
    """Return an epilogue that squares each value, in units of 1/65."""
    return accel.Quantized(scale=0.01, table=accel.QuantizedTable(entries=SQUARES), **others)


@examples(30)
@given(st.data())
def test_any_product(data: st.DataObject) -> None:
    M, N, K = (data.draw(st.integers(1, most)) for most in (20, 40, 40))
    quantized = data.draw(epilogues(N, table=True))
    workload = accel.gemm(M, N, K, bias=data.draw(st.booleans()), quantized=quantized)
    inputs = any_inputs(workload, data.draw(st.integers(0, 1000)))
    want = finished(products(inputs["A"], inputs["B"], quantized), inputs, quantized)
    program_is_right(as_it_is(workload, data.draw(st.sampled_from(MACHINES))), inputs, want)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_a_convolution_with_a_residual(machine: accel.Machine) -> None:
    residual = accel.QuantizedResidual(
        result_scale=0.0513477, scale=0.0312297, zero=3, dtype="uint8", sum_scale=0.0613371, sum_zero=-9
    )
    workload = accel.conv2d(1, 20, 9, 11, 24, 3, padding=1, bias=True, quantized=squares(residual=residual))
    inputs = any_inputs(workload, 2)
    quantized = workload.epilogue
    assert isinstance(quantized, accel.Quantized)
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    program = accel.build(workload, machine)
    program_is_right(program, inputs, want)
    loads = [one for one in program.instructions if isinstance(one, LoadTab)]
    stores = [one for one in program.instructions if isinstance(one, StoreReq)]
    assert len(loads) == 1
    assert {type(one) for one in stores} == {StoreAdd}
    assert {one.table for one in stores} == {loads[0].sram_base + 1}


def test_nests_on_the_way() -> None:
    quantized = squares(input_zero=9, input_dtype="uint8")
    workload = accel.conv2d(1, 5, 4, 4, 12, 3, padding=1, bias=True, quantized=quantized)
    program = as_it_is(workload, MACHINES[2])
    inputs = any_inputs(workload, 2)
    want = finished(convolved(workload, inputs, quantized), inputs, quantized)
    stages_are_right(program.schedule(), inputs, want)


def test_a_stage_without_a_look_up() -> None:
    workload = accel.gemm(4, 4, 4, quantized=squares())
    output = te.create_schedule(workload.output)[workload.output]
    with refused(ScheduleError, "C has no look-up for the store unit; call pack_parameters before"):
        output.pack_table()


def test_records() -> None:
    quantized = squares()
    data = json.loads(json.dumps(quantized.to_dict()))
    assert accel.Quantized.from_dict(data) == quantized
    assert data["table"] == list(SQUARES)
    with refused(ShapeError, "table_dtype needs the table's 256 entries; 'table' must be given"):
        accel.Quantized.from_dict({"scale": 1.0, "table_dtype": "int8"})
    with refused(ShapeError, "the table has values beyond 0..255; its results are uint8"):
        accel.QuantizedTable(entries=SQUARES, dtype="uint8")
    with refused(ShapeError, "the table is (1, 2, 3); it must be 256 values of int8 or uint8"):
        accel.QuantizedTable(entries=(1, 2, 3))
    with refused(ShapeError, "the table is 3; it must be a QuantizedTable"):
        accel.Quantized(scale=1.0, table=3)  # type: ignore[arg-type]


def test_a_machine_without_tables() -> None:
    workload = accel.gemm(4, 4, 4, quantized=squares())
    with refused(ScheduleError, "machine 'vta-int8' has tab_bytes=0, so it has no tables of functions"):
        accel.build(workload, "vta-int8")
