"""Sweep files: their content, and errors in them."""

from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError, ShapeError
from accel.sweeps import Spec, load_spec
from accel.sweeps.sweep_spec import make_spec

GEMM = {"name": "gemm", "M": 16, "N": 16, "K": 16}
DATA = {"workload": GEMM, "grid": [{"vthreads": [1, 2], "zip": {"inp_bytes": [512, 1024]}, "config": "tiny"}]}


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        title = "Mine"
        seed = 3
        [workload]
        name = "gemm"
        M = [8, 16]
        N = 8
        K = 8
        [[grid]]
        vthreads = 1
        run.read_latency = [4, 8]
        [[plot]]
        x = "read_latency"
        y = "cycles"
        by = "M"
        """
    )
    spec = load_spec(path)
    assert (spec.name, spec.title, len(spec.points)) == ("mine", "Mine", 4)
    assert {point.run.seed for point in spec.points} == {3}
    assert spec.plots[0].by == ("M",)


def settings(spec: Spec, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(point.settings()[name] for name in names) for point in spec.points]


def test_varied_values_replace_those_of_workloads_and_grids() -> None:
    assert settings(make_spec(DATA, vary={"M": [8, 24]}), "M", "vthreads") == [
        (m, v) for m in (8, 24) for v in (1, 1, 2, 2)
    ]
    assert settings(make_spec(DATA, vary={"vthreads": [1]}), "vthreads", "inp_bytes") == [(1, 512), (1, 1024)]
    assert settings(make_spec(DATA, vary={"inp_bytes": [2048]}), "inp_bytes") == [(2048,), (2048,)]
    assert settings(make_spec(DATA, vary={"run.bus_bits": [128]}), "bus_bits") == [(128,)] * 4
    assert DATA["grid"] == [{"vthreads": [1, 2], "zip": {"inp_bytes": [512, 1024]}, "config": "tiny"}]


def test_a_varied_field_replaces_that_of_the_run() -> None:
    data = {"workload": GEMM, "grid": {"run": {"read_latency": [1000, 2000]}}}
    (point,) = make_spec(data, vary={"read_latency": [4]}).points
    assert point.run.source.config.read_latency == 4
    assert point.run.timing == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plots": []}, "a sweep has 'plots'; did you mean 'plot'?"),
        ({"workload": []}, "the sweep has no workload"),
        ({"workload": "gemm"}, "workload is 'gemm'; it must be a table, as [[workload]]"),
        ({"grid": [3]}, "grid is [3]; it must be a table"),
        ({"title": 3}, "title is 3; it must be a line of text"),
        ({"seed": -1}, "seed is -1; it must be an integer from 0 on"),
        ({"plot": {"x": "M"}}, "a plot has no y; give the column"),
        ({"plot": {"x": "M", "y": "cycles", "bye": "N"}}, "a plot has 'bye'; did you mean 'by'?"),
    ],
    ids=str,
)
def test_other_tables_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AccelError) as error:
        make_spec(DATA | change)
    assert message in str(error.value)


@pytest.mark.parametrize("key", ["vthread", "zip", "run.inp_bytes"])
def test_unknown_keys_cannot_be_varied(key: str) -> None:
    with pytest.raises(AccelError, match=f"'{key}' cannot be varied"):
        make_spec(DATA, vary={key: [1]})


def test_an_unknown_workload_is_reported_before_its_parameters() -> None:
    with pytest.raises(AccelError, match="'gem' is not a workload; did you mean 'gemm'"):
        make_spec({"workload": {"name": "gem"}}, vary={"M": [1]})


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    for name, content, message in (
        ("no.toml", None, "cannot be read"),
        ("bad.toml", b"[", "is not TOML"),
        ("bytes.toml", b"\xff", "is not a text file"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(AccelError, match=message):
            load_spec(tmp_path / name)


def test_a_name_for_several_parameters_replaces_each() -> None:
    """A name for one of its parameters does not, since the other one would be lost."""
    conv = {"name": "conv2d", "IC": 8, "OC": 8, "H": 6, "W": 7, "kernel": 3}
    assert settings(make_spec({"workload": conv}, vary={"size": [8, 9]}), "H", "W") == [(8, 8), (9, 9)]
    assert settings(make_spec({"workload": conv}, vary={"ic": [16]}), "IC", "N") == [(16, 1)]
    square = {"name": "conv2d", "IC": 8, "OC": 8, "size": 6, "kernel": 3}
    with pytest.raises(ShapeError, match="H of conv2d is given twice, as size and as H"):
        make_spec({"workload": square}, vary={"H": [8]})
