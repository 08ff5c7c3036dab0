"""Points that a grid spans, and grids that are refused before anything runs."""

from pathlib import Path
from typing import Any

import pytest

import accel
from accel.base.errors import AccelError
from accel.compiler.schedule.schedule_files import save_steps
from accel.sweeps.sweep_grid import expand, grid_points
from accel.sweeps.sweep_points import Point, task_key
from accel.sweeps.sweep_spec import make_spec

GEMM = {"name": "gemm", "M": 16, "N": 16, "K": 16}


def spanned(workload: dict[str, Any] | None = None, **grid: Any) -> list[Point]:
    return grid_points([workload or GEMM], [grid])


def test_the_last_list_varies_fastest() -> None:
    assert list(expand({"a": [1, 2], "b": 0, "c": ["x", "y"]})) == [
        {"a": 1, "b": 0, "c": "x"},
        {"a": 1, "b": 0, "c": "y"},
        {"a": 2, "b": 0, "c": "x"},
        {"a": 2, "b": 0, "c": "y"},
    ]


def test_lists_under_zip_advance_together() -> None:
    spread = list(expand({"zip": {"a": [1, 2], "run": {"b": [3, 4]}}, "c": [5, 6]}))
    assert [(one["a"], one["run.b"], one["c"]) for one in spread] == [
        (1, 3, 5),
        (1, 3, 6),
        (2, 4, 5),
        (2, 4, 6),
    ]


def test_points_are_the_union_of_the_products_of_grids_and_workloads() -> None:
    found = grid_points(
        [GEMM, {**GEMM, "M": [32, 64]}],
        [{"vthreads": [1, 2]}, {"vthreads": 1, "serial": True}, {"vthreads": 2}],
    )
    assert len(found) == 3 * (2 + 1)  # the second grid's point is one of the first's
    assert {dict(one.run.source.parameters)["M"] for one in found} == {16, 32, 64}


def test_only_fields_of_the_machine_are_known_to_the_schedule() -> None:
    (known,), (unknown,) = spanned(read_latency=100), spanned(run={"read_latency": 100})
    assert known.run.machine == unknown.run.machine
    assert known.run.source.config.read_latency == 100
    assert unknown.run.source.config.read_latency == 64


def test_labels_contain_values() -> None:
    one, other = spanned(
        label="V{vthreads} at {read_latency}, {M} rows", vthreads=[1, 2], run={"read_latency": 5}
    )
    assert [dict(p.labels)["grid"] for p in (one, other)] == ["V1 at 5, 16 rows", "V2 at 5, 16 rows"]


def test_a_label_does_not_change_the_task() -> None:
    (one,), (other,) = spanned(label="a"), spanned(label="b")
    assert one != other
    assert task_key(one.run) == task_key(other.run)


@pytest.mark.parametrize(
    "change",
    [
        {"vthreads": 2},
        {"tile_m": 8},
        {"read_latency": 65},
        {"run": {"read_latency": 65}},
        {"config": "tiny"},
        {"inp_bytes": "32KiB"},
    ],
    ids=str,
)
def test_every_setting_changes_the_task(change: dict[str, Any]) -> None:
    (one,), (other,) = spanned(), spanned(**change)
    assert task_key(one.run) != task_key(other.run)


def test_tuples_are_no_axes() -> None:
    conv = {"name": "conv2d", "IC": 8, "OC": 8, "size": [6, 7]}
    found = grid_points([{**conv, "kernel": [3, 1]}], [{}])
    found += grid_points([{**conv, "IC": [8, 16], "kernel": [[1, 2], [3, 3]]}], [{}])
    parameters = [dict(one.run.source.parameters) for one in found]
    assert [(one["IC"], one["kernel"]) for one in parameters] == [
        (8, (3, 1)),
        *((channels, kernel) for channels in (8, 16) for kernel in ((1, 2), (3, 3))),
    ]
    assert {(one["H"], one["W"]) for one in parameters} == {(6, 7)}


def test_lists_of_operations_are_one_value() -> None:
    """Lists of lists are an axis."""
    gemm = {"name": "gemm", "M": 8, "N": 8, "K": 8}
    found = grid_points([{**gemm, "operations": ["max=3", "add=channel"]}], [{}])
    found += grid_points([{**gemm, "operations": [["max=3"], ["mul=2", "add=channel"]]}], [{}])
    assert [dict(one.run.source.parameters)["operations"] for one in found] == [
        ("max=3", "add=channel"),
        ("max=3",),
        ("mul=2", "add=channel"),
    ]
    workloads = [accel.gemm(8, 8, 8, operations=one) for one in ("max=3", "mul=2,add=channel")]
    table = accel.sweep(workloads, config="tiny", vthreads=1)
    assert table.column("mismatches") == [0, 0]
    assert table.column("operations") == [("max=3",), ("mul=2", "add=channel")]


@pytest.mark.parametrize(
    "table",
    [
        {"name": "conv2d", "N": 1, "IC": 8, "H": 6, "W": 6, "OC": 16, "kernel": 3},
        {"name": "conv2d", "ic": 8, "h": 6, "w": 6, "oc": 16, "kernel": 3},
        {"name": "conv2d", "batch": 1, "IC": 8, "size": 6, "oc": 16, "kernel": [3, 3]},
    ],
)
def test_sizes_have_the_names_of_the_command_line(table: dict[str, Any]) -> None:
    """The default batch is 1, as there."""
    (one,) = grid_points([table], [{}])
    workload = accel.conv2d(1, 8, 6, 6, 16, 3)
    assert dict(one.run.source.parameters) == {
        key: tuple(value) if isinstance(value, list) else value for key, value in workload.parameters.items()
    }


def test_means_over_whole_inputs_can_be_swept() -> None:
    (one,) = grid_points([{"name": "global_avg_pool2d", "channels": 8, "size": 4}], [{}])
    assert one.run.source.workload == "avg_pool2d"
    assert dict(one.run.source.parameters)["kernel"] == (4, 4)


def test_every_workload_can_be_swept() -> None:
    """Also those with tuples: from Python, from files, and varied."""
    conv = accel.conv2d(1, 8, 6, 6, 16, (3, 1), padding=1, bias=True, clip=(0, 9))
    table = accel.sweep([conv, accel.dense(1, 8, 8)], config="tiny", vthreads=1)
    assert table.column("mismatches") == [0, 0]
    assert table.column("kernel") == [(3, 1), None]
    assert not table.faults
    data = {"workload": {"name": "conv2d", "N": 1, "IC": 8, "H": 6, "W": 6, "OC": 16, "kernel": [3, 1]}}
    (one,) = make_spec(data).points
    assert dict(one.run.source.parameters)["kernel"] == (3, 1)
    varied = make_spec(data, vary={"kernel": [1, 3], "padding": [1]}).points
    assert [dict(one.run.source.parameters)["kernel"] for one in varied] == [(1, 1), (3, 3)]
    assert {dict(one.run.source.parameters)["padding"] for one in varied} == {(1, 1, 1, 1)}


def test_tiles_are_the_operators_own() -> None:
    """Each side of a convolution's tile is the one in the grid."""
    conv = accel.conv2d(1, 16, 8, 8, 32, 3, padding=1, shift=6)
    asked = {"tile_oc": 16, "tile_h": 4, "tile_w": 2, "step_ic": 8, "step_kh": 1}
    for side, size in asked.items():
        (row,) = accel.sweep(conv, config="tiny", vthreads=2, **{side: size}).rows
        assert (row["error"], row["mismatches"], row["vthreads"], row[side]) == (None, 0, 2, size)
    (row,) = accel.sweep(conv, config="tiny", vthreads=1, **asked).rows
    assert row["mismatches"] == 0
    assert {side: row[side] for side in asked} == asked
    (row,) = accel.sweep(conv, config="tiny", tile_m=8).rows
    assert row["error"] == "refused"
    assert row["message"] == "a tile of conv2d has no 'tile_m'; did you mean 'tile_w'?"


def test_schedule_files_are_relative_to_the_sweep(tmp_path: Path) -> None:
    program = accel.build(accel.gemm(16, 16, 16), "gemm8x8")
    save_steps(tmp_path / "mine.toml", program.schedule().steps)
    (one,) = grid_points([GEMM], [{"schedule": "mine.toml"}], folder=tmp_path)
    assert one.run.source.steps is not None
    assert dict(one.labels) == {"schedule": "mine.toml"}


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"vthread": 1}, "a grid has 'vthread'; did you mean 'vthreads'?"),
        (
            {"run": {"batch": [2]}},
            "a grid has 'run.batch'; a program is compiled for it, so the run cannot have another; "
            "give batch instead",
        ),
        ({"run": {"read_latncy": 64}}, "a grid has 'run.read_latncy'; did you mean 'run.read_latency'?"),
        ({"zip": {"vthread": [1]}}, "a grid has 'vthread'; did you mean 'vthreads'?"),
        (
            {"zip": {"vthreads": [1], "bus_bits": [64, 128]}},
            "lengths vthreads 1, bus_bits 2; they must be equal",
        ),
        ({"zip": {"vthreads": 1}}, "zip is not a table of lists"),
        ({"zip": 3}, "zip is not a table of lists"),
        ({"vthreads": []}, "vthreads is an empty list"),
        ({"vthreads": 0}, "vthreads is 0; it must be a positive integer"),
        ({"step_k": "x"}, "step_k is 'x'; it must be a positive integer"),
        ({"config": "gemm8"}, "'gemm8' is not a configuration; did you mean 'gemm8x8'?"),
        ({"config": 8}, "config is 8; it must be a configuration's name or file"),
        ({"bus_bits": [64, 65]}, "bus_bits is 65 in configuration 'gemm8x8'; it must be a power of two"),
        ({"label": "V = {vthread}", "vthreads": 1}, "names 'vthread'; did you mean 'vthreads'?"),
        ({"schedule": "missing.toml"}, "schedule 'missing.toml' cannot be read"),
    ],
    ids=str,
)
def test_impossible_grids_are_refused(grid: dict[str, Any], message: str) -> None:
    with pytest.raises(AccelError) as error:
        spanned(**grid)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"name": "gem", "M": 8}, "'gem' is not a workload; did you mean 'gemm'?"),
        ({"name": 8}, "a workload's name is 8; it must be text"),
        ({"M": 8}, "a workload has no name; give one"),
        ({**GEMM, "shft": 3}, "'shft' is not a parameter of gemm; did you mean 'shift'?"),
        (
            {"name": "gemm", "M": 8},
            "gemm lacks N (columns of B and C), K (columns of A, rows of B); each must be given",
        ),
        (
            {"name": "conv2d", "IC": 8, "OC": 8, "H": 6, "W": 6},
            "conv2d lacks kernel (size of the kernel); each must be given",
        ),
        (
            {"name": "conv2d", "IC": 8, "OC": 8, "size": 6, "H": 6, "kernel": 3},
            "H of conv2d is given twice, as size and as H",
        ),
        (
            {"name": "conv2d", "IC": 8, "OC": 8, "size": [6, 7, 8], "kernel": 3},
            "size is (6, 7, 8); it must be one number, or H and W",
        ),
        ({**GEMM, "M": [8, 0]}, "M is 0; it must be a positive integer"),
    ],
    ids=str,
)
def test_impossible_workloads_are_refused(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(AccelError) as error:
        spanned(workload)
    assert message in str(error.value)
