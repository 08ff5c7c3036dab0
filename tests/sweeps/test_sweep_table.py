"""Tables: their figures, and their files."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import MismatchError, SweepError
from accel.compiler.operators.default_schedule import default_schedule
from accel.core.isa import Gemm
from accel.sweeps import Table, sweep_task
from accel.sweeps.sweep_grid import grid_points

MACHINE = accel.machine("gemm8x8")
FOUR = {"vthreads": [1, 2], "run": {"read_latency": [4, 400]}}


@pytest.fixture(scope="module")
def table() -> Table:
    return accel.sweep(accel.gemm(32, 24, 40, shift=6), **FOUR)


def test_figures_are_those_of_the_run(table: Table) -> None:
    for row in table.rows:
        program = accel.build(accel.gemm(32, 24, 40, shift=6), "gemm8x8", vthreads=row["vthreads"])
        result = program.run(read_latency=row["read_latency"])
        figures = result.to_dict()
        for name in ("cycles", "utilization", "load_bytes", "instructions", "mismatches"):
            assert row[name] == figures[name], name
        assert row["compute_token_stall"] == figures["stalls"]["compute"]["token_stall"]
        assert row["traffic_bytes"] == result.load_bytes + result.store_bytes
        assert row["macs_per_cycle"] / row["roof_macs_per_cycle"] == pytest.approx(result.roofline_fraction)
        assert row["utilization"] / row["roof_utilization"] == pytest.approx(result.roofline_fraction)
        assert row["intensity"] == pytest.approx(32 * 24 * 40 / (32 * 40 + 40 * 24))
        assert row["compulsory_bytes"] == 32 * 40 + 40 * 24 + 32 * 24


def test_axes_are_sequences_of_any_kind(table: Table) -> None:
    """numpy's numbers become Python's."""
    workload = accel.gemm(32, 24, 40, shift=6)
    again = accel.sweep(
        workload, seed=np.int64(0), vthreads=range(1, 3), run={"read_latency": np.array([4, 400])}
    )
    assert repr(again) == repr(table) == f"<Table of 4 rows, {len(table.columns)} columns>"
    for name in table.columns:
        if not name.endswith("seconds"):
            assert again.column(name) == table.column(name)
            assert list(map(type, again.column(name))) == list(map(type, table.column(name)))
    with pytest.raises(SweepError, match=r"seed is 1\.5; it must be an integer from 0 on"):
        accel.sweep(workload, seed=1.5)


def test_every_setting_is_a_column(table: Table) -> None:
    assert {"workload", "M", "N", "K", "shift", "config", *MACHINE.config.fields} <= set(table.columns)
    assert table.column("read_latency") == [4, 400, 4, 400]
    assert table.column("scratchpad_bytes") == [(64 + 64 + 128) << 10] * 4


def test_the_chosen_threads_are_a_column() -> None:
    (row,) = accel.sweep(accel.gemm(64, 64, 64)).rows
    assert 2 <= row["vthreads"] <= 8


def test_tiles_have_the_sides_of_the_grid() -> None:
    rows = accel.sweep(accel.gemm(64, 64, 64), vthreads=1, tile_m=32, tile_n=16, step_k=[8, 16, 64]).rows
    stores = [row["store_bytes"] for row in rows]
    assert stores == [64 * 64] * 3
    for row, steps in zip(rows, (8, 4, 1), strict=True):
        tile = {"tile_m": 32, "tile_n": 16, "step_k": 64 // steps}
        program = accel.build(default_schedule(accel.gemm(64, 64, 64), MACHINE, 1, tile), MACHINE)
        assert row["instructions"] == len(program.instructions)
        gemms = [one for one in program.instructions if isinstance(one, Gemm) and not one.reset]
        assert len(gemms) == 2 * 4 * steps
        assert {one.uop_count for one in gemms} == {4 * 2 * 8 // steps}


def test_a_refused_program_is_a_row_without_fault() -> None:
    table = accel.sweep(accel.gemm(64, 64, 64), vthreads=[1, 5000], tile_m=[8, 12, 64])
    assert [row["error"] for row in table.rows] == [None, "refused", None, "refused", "refused", "refused"]
    assert "it must be a multiple of 8" in table.rows[1]["message"]
    assert len(table.refused) == 4
    assert table.faults == []
    assert table.rows[1]["cycles"] is None


def test_a_program_at_fault_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: Any, **__: Any) -> None:
        raise MismatchError("3 of 4 output elements differ")

    monkeypatch.setattr(accel.Program, "run", wrong)
    (point,) = grid_points([{"name": "gemm", "M": 8, "N": 8, "K": 8}], [{}])
    figures = sweep_task.measure(point.run)
    assert figures == {"error": "mismatch", "message": "3 of 4 output elements differ"}
    table = Table([{**point.settings(), **figures}])
    assert table.faults == table.rows


def test_csv_has_all_values(table: Table, tmp_path: Path) -> None:
    table.save_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == table.columns
    assert [[row[c] for c in table.columns] for row in rows] == [
        ["" if row[c] is None else str(row[c]) for c in table.columns] for row in table.rows
    ]


def test_parquet_has_all_values(table: Table, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table.save_parquet(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == table.rows


def test_rows_can_be_chosen(table: Table) -> None:
    assert table.where(vthreads=2, read_latency=4).rows == [table.rows[2]]
    with pytest.raises(SweepError, match="'vthread' is not a column; did you mean 'vthreads'"):
        table.where(vthread=2)


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(SweepError, match="the executor is 'das'; did you mean 'dask'"):
        accel.sweep(accel.gemm(8, 8, 8), executor="das")
